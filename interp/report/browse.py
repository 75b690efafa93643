"""A browser of pairs: files beside a report's page, part of an embedded page, or for a notebook.

The page needs no server and fetches nothing but its own pieces (`interp.report.pieces`); a policy
in it forbids everything else, and scripts other than its own.
"""

import base64
import hashlib
import re
from functools import partial
from pathlib import Path

from markupsafe import Markup, escape

from interp.errors import UserError
from interp.files import make_folder, names_in, read_bytes, remove_plain, write_whole
from interp.report.html import render, source
from interp.report.pairs import Browser
from interp.report.pieces import PIECES, pieces, plain_json, script

PIECE = r"(index|[crsd][0-9]{1,7})\.js"
"""The name of a piece's file."""


def browser_of(page: str) -> str:
    """The name of the browser's page beside a report's page: "pairs.html" beside "report.html"."""
    stem = page.removesuffix(".html")
    return "pairs.html" if stem == "report" else f"{stem}.pairs.html"


def write_browser(browser: Browser, folder: Path, *, title: str, page: str) -> list[str]:
    """Write the browser's page and its pieces into a folder; remove pieces of an earlier page.

    `page` is the name of the report's page, to which the browser leads back. Returns the files'
    paths within the folder.

    Raises:
        UserError: a file cannot be written.
    """
    home = make_folder(folder, PIECES)
    written = []
    for name, data in pieces(browser, {"title": title}):
        content = script(name, data)
        write_whole(home / f"{name}.js", partial(_write, content))
        written.append(f"{name}.js")
    others = sorted(set(piece_names(folder)) - set(written))  # of an earlier, larger report
    remove_plain(home, [name for name in others if _is_piece(home / name)])
    content = _html(title, page)
    write_whole(folder / browser_of(page), partial(_write, content))
    return [browser_of(page), *(f"{PIECES}/{name}" for name in written)]


def _write(content: str, path: Path) -> None:
    # A text from Python may hold half of a character pair, which UTF-8 has no form for.
    path.write_bytes(content.encode("utf-8", "backslashreplace"))


def piece_names(folder: Path) -> list[str]:
    """The names of the pieces beside a page."""
    return [name for name in names_in(folder / PIECES) if re.fullmatch(PIECE, name)]


def _is_piece(file: Path) -> bool:
    try:
        return read_bytes(file).startswith(b"interpPairs(")
    except (UserError, FileNotFoundError):
        return False


def app() -> Markup:
    """The scripts of the browser."""
    return Markup("\n".join(source(file) for file in ("pairs.js", "panels.js", "mount.js")))


def embedded(browser: Browser, title: str) -> Markup:
    """The pieces as elements of a page, for a page without files beside it."""
    return Markup("\n").join(
        Markup('<script type="application/json" data-piece="{}">{}</script>').format(
            name, Markup(plain_json(data))
        )
        for name, data in pieces(browser, {"title": title})
    )


def standalone(browser: Browser, title: str) -> str:
    """The browser with all its pieces as a single page."""
    return _html(title, "", embedded(browser, title))


def in_frame(page: str, *, height: int) -> str:
    """A page as an element of a notebook, in a frame of its own."""
    return (
        f'<iframe srcdoc="{escape(str(page))}" sandbox="allow-scripts" title="Pairs" '
        f'style="width: 100%; height: {height}px; border: 1px solid #d0d7de"></iframe>'
    )


def _html(title: str, back: str, data: str = "") -> str:
    code = app()
    digest = base64.b64encode(hashlib.sha256(f"\n{code}\n".encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'self' file: 'sha256-{digest}'; "
        "style-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'"
    )
    return render("pairs.html.jinja", title=title, back=back, code=code, policy=policy, data=data)

"""`python -m interp view DIR`: a report in a browser, also of a machine reached by ssh."""

import http.server
import socket
import sys
from contextlib import suppress
from http import HTTPStatus
from pathlib import Path
from secrets import compare_digest, token_urlsafe
from typing import Annotated
from urllib.parse import unquote

from pydantic import Field

from interp.cli.fields import Folder, OptionsCommand
from interp.console import echo
from interp.errors import UserError
from interp.files import inside, read_bytes, reason_of

LOOPBACK = "127.0.0.1"

_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".tex": "text/plain; charset=utf-8",
    ".svg": "image/svg+xml",
    ".png": "image/png",
}
"""The types of the files that a report consists of."""

_HEADERS = {
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "no-store",
}
"""Headers of every answer. Pieces of the browser of pairs are scripts, which pages of other sites
could otherwise include and read.
"""


class ViewCommand(OptionsCommand):
    """Show the report in a folder in a browser, on this machine alone or through ssh."""

    EXAMPLES = ("view runs/study", "view runs/study --port 8080")

    folder: Folder
    """folder of a run or a study, whose report has been written"""
    port: Annotated[int, Field(ge=0, le=65535)] = 0
    """port on the loopback address; 0 is any free port"""

    def _execute(self) -> None:
        page, files = report_files(self.folder)
        secret = token_urlsafe(16)
        with server(self.folder, files, self.port, secret) as serving:
            port = serving.server_address[1]
            echo(f"http://{LOOPBACK}:{port}/{secret}/{page}")
            echo(f"from another machine: ssh -L {port}:{LOOPBACK}:{port} {socket.gethostname()}")
            echo("only who knows this address can read it, on this machine alone; Ctrl-C ends it")
            sys.stderr.flush()
            serving.serve_forever()


def report_files(folder: Path) -> tuple[str, frozenset[str]]:
    """The page of a folder's report, and all its files, by path within the folder.

    Raises:
        UserError: the folder holds neither a run nor a study, or its report was never written.
    """
    from interp.cli.folders import holder
    from interp.report.write import PAGE

    listed = holder(folder).record.report
    pages = [name for name in (PAGE, *sorted(listed)) if name in listed and "/" not in name]
    pages = [name for name in pages if name.endswith(".html") and not name.endswith("pairs.html")]
    if not pages:
        raise UserError(f"the report has not been written; run interp report {folder} first")
    return pages[0], frozenset(name for name in listed if Path(name).suffix in _TYPES)


def server(
    folder: Path, files: frozenset[str], port: int, secret: str
) -> http.server.ThreadingHTTPServer:
    """A server of a report's files, and of nothing else, on the loopback address.

    Each request must name the secret, the first part of all paths, which other users of the machine
    do not know, and come from a page of this server or from no page. Files are named by their paths
    within the folder; port 0 is any free one.

    Raises:
        UserError: the port cannot be used.
    """

    class Handler(http.server.BaseHTTPRequestHandler):
        """Answers requests for the files; what else is asked for is not found."""

        def handle(self) -> None:
            """Answer until the browser breaks off."""
            with suppress(ConnectionError):
                super().handle()

        def end_headers(self) -> None:
            """Add the headers of every answer."""
            for name, value in _HEADERS.items():
                self.send_header(name, value)
            super().end_headers()

        def log_message(self, format: str, *args: object) -> None:
            """Print nothing."""

        def do_GET(self) -> None:
            """Send a file or, if only these are asked for, its headers."""
            if not self._is_own():
                self.send_error(HTTPStatus.FORBIDDEN)
                return
            path = unquote(self.path.partition("?")[0])
            given, _, name = path.removeprefix("/").partition("/")
            allowed = compare_digest(given.encode(), secret.encode()) and name in files
            try:
                content = read_bytes(inside(folder, *name.split("/"))) if allowed else None
            except (UserError, FileNotFoundError):  # it is a link, or missing
                content = None
            if content is None:
                self.send_error(HTTPStatus.NOT_FOUND)
                return
            self.send_response(HTTPStatus.OK)
            self.send_header("Content-Type", _TYPES[Path(name).suffix])
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(content)

        def do_HEAD(self) -> None:
            """Send the headers of a file."""
            self.do_GET()

        def _is_own(self) -> bool:
            """Whether no page of another site asks, to which browsers say where they come from."""
            # Another site may let its own name lead to this address.
            host = self.headers.get("Host", "")
            sites = self.headers.get_all("Sec-Fetch-Site", ["none"])
            return (host.rpartition(":")[0] or host) in (LOOPBACK, "localhost") and all(
                site in ("none", "same-origin") for site in sites
            )

    try:
        return http.server.ThreadingHTTPServer((LOOPBACK, port), Handler)
    except OSError as error:
        raise UserError(
            f"port {port} cannot be used: {reason_of(error)}; pass another one as --port, or none"
        ) from error

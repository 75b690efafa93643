import ast
import re
from pathlib import Path

import pytest

from interp.errors import UserError, one_line, shortened, shortened_list

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "errors.md").read_text("utf-8")
FILES = {
    file.relative_to(ROOT): ast.parse(file.read_text("utf-8"))
    for folder in ("interp", "probes", "experiments")
    for file in (ROOT / folder).rglob("*.py")
}


def test_a_long_text_loses_its_middle():
    assert shortened("a" * 200) == "a" * 200
    assert shortened("x" * 100 + "y" * 101, most=9) == "xxx...yyy"


def test_a_part_of_a_line_holds_no_break_and_nothing_that_a_terminal_obeys():
    assert one_line("two\nlines\t\x1b[31mred") == "two lines\\t\\x1b[31mred"
    assert one_line("name " * 100) == one_line("name " * 100)[:80]


def test_every_public_class_of_errors_has_its_section():
    defined = {UserError.__name__}
    for tree in FILES.values():
        for node in ast.walk(tree):
            if not isinstance(node, ast.ClassDef) or node.name.startswith("_"):
                continue
            if {ast.unparse(base) for base in node.bases} & {"Exception", "UserError"}:
                defined.add(node.name)
    assert sorted(re.findall(r"(?m)^## (\w+)$", PAGE)) == sorted(defined)


def test_every_part_of_the_code_that_raises_one_has_its_theme():
    lists = re.findall(r"(?ms)^Source: (.*?)\.$", PAGE)
    known = [Path(name) for text in lists for name in re.findall(r"`([^`]+)`", text)]
    raising = {
        file
        for file, tree in FILES.items()
        for node in ast.walk(tree)
        if isinstance(node, ast.Raise) and raises_user_error(node)
    }
    assert raising
    for file in raising:
        assert any(file.is_relative_to(place) for place in known), file
    for place in known:
        assert any(file.is_relative_to(place) for file in raising), place


def test_every_message_on_the_page_is_one_of_the_code():
    known = [text for tree in FILES.values() for text in texts_of(tree)]
    quoted = re.findall(r"(?m)^\| `([^`|]+)`", PAGE.partition("## UserError")[2])
    assert len(quoted) > 40
    for message in quoted:
        assert any(follow_each_other(message.split("…"), text) for text in known), message


def follow_each_other(pieces, text):
    for piece in pieces:
        _, found, text = text.partition(piece) if piece else ("", True, text)
        if not found:
            return False
    return True


def raises_user_error(node):
    return isinstance(node.exc, ast.Call) and ast.unparse(node.exc.func) in (
        "UserError",
        "ModelError",
        "OptionError",
    )


def texts_of(tree):
    """The texts in the code, as they are printed, with "…" for what is filled in."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values
            )


def test_a_notebook_shows_the_message_and_its_line(capsys):
    shell = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell()
    shell.run_cell("import interp.options\n\ninterp.options.Options(x=1)\n")
    shown = capsys.readouterr().out.strip().splitlines()
    assert len(shown) == 2
    assert shown[0].startswith("OptionError: ")
    assert "line 3 of the cell" in shown[1]


@pytest.mark.parametrize("count", [1, 5, 60, 500])
def test_a_long_list_loses_whole_lines_which_are_counted(count):
    items = [f"  item {k} {'x' * (k % 50)}" for k in range(count)]
    text = "\n".join(["Faults:", *items, "Do this."])
    shown = shortened_list(text, 2000)
    assert len(shown) <= 2000
    first, *listed, last = shown.split("\n")
    assert (first, last) == ("Faults:", "Do this.")
    if shown == text:
        assert count <= 60
        return
    *kept, more = listed
    assert kept == items[: len(kept)]
    assert more == f"  ... and {count - len(kept):,} more"
    assert len(shown) > 1900  # no more is left out than must be


def test_a_long_text_without_a_list_loses_its_middle():
    assert shortened_list("a" * 3000, 2000) == shortened("a" * 3000, 2000)
    assert len(shortened_list("Faults:\n  " + "a" * 3000, 2000)) <= 2000

import re
import runpy
from collections import Counter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

import interp
import interp.extend
from interp.cli import parse
from interp.cli.listings import listing

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = sorted(path.stem for path in DOCS.glob("*.md") if path.stem != "index")
FILES = [*DOCS.glob("*.md"), *ROOT.glob("*.md"), ROOT / "benchmarks" / "rates.md"]
CONF = runpy.run_path(str(DOCS / "conf.py"))


def text_of(file):
    return file.read_text(encoding="utf-8")


def local_links(text):
    return re.findall(r"\]\((?![a-z]+:)([^)\s]+)\)", re.sub(r"(?s)```.*?```|`[^`]*`", "", text))


def anchors(text):
    """The names under which a repository's web page and MyST link headings."""
    headings = re.findall(r"(?m)^#+ (.+)$", re.sub(r"(?s)```.*?```", "", text))
    slugs = [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]
    return {
        slug if place == 0 else f"{slug}-{place}"
        for slug, count in Counter(slugs).items()
        for place in range(count)
    }


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_local_links_lead_somewhere(file):
    for link in local_links(text_of(file)):
        path, _, anchor = link.partition("#")
        target = file.parent / path if path else file
        assert target.exists(), link
        assert not anchor or anchor in anchors(text_of(target)), link


def test_every_command_of_the_paper_is_one_that_there_is():
    """What `python -m pytest FILE`, `-m MODULE` and `-m interp` in its table name exists."""
    table = text_of(ROOT / "paper.md").partition("# Claims")[2].partition("# Limits")[0]
    commands = [words.split() for words in re.findall(r"`python -m ([^`]+)`", table)]
    assert len(commands) > 15
    for module, *words in commands:
        if module == "pytest":
            assert words and all((ROOT / name).exists() for name in words), words
        elif module == "interp":
            parse(words)
        else:
            assert find_spec(module), module


def rows_of(text, columns):
    """The cells of the rows of all tables with so many columns, titles and rules left out."""
    rows = [line.strip("|\n ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [row for row in rows if len(row) == columns]


def test_the_questions_of_the_readme_are_those_of_the_page_for_agents():
    """With the same commands, each of which there is."""
    calls = {row[0]: row[1] for row in rows_of(text_of(DOCS / "agents.md"), columns=3)}
    questions = [row for row in rows_of(text_of(ROOT / "README.md"), columns=2) if "?" in row[0]]
    assert len(questions) == 8
    for question, commands in questions:
        named = re.findall(r"`interp ([^`]+)`", commands)
        assert named
        for command in named:
            assert f"`interp {command}" in calls[question], question
            parse(command.replace("DIR", "runs/first").split())


def test_the_readme_is_short():
    assert len(text_of(ROOT / "README.md").split()) <= 600


def test_the_menu_has_every_page_once():
    menu = CONF["navigation"](text_of(DOCS / "index.md"))
    assert sorted(re.findall(r"<(\w+)>", menu)) == PAGES


def test_the_menu_by_hand():
    index = (
        "# T\n\nText.\n\n## A\n\n- [One](one.md): first\n- [Two](two.md)\n\n## B\n\n- [C](c.md)\n"
    )
    assert CONF["navigation"](index) == (
        "```{toctree}\n:hidden:\n:caption: A\n\nOne <one>\nTwo <two>\n```\n\n"
        "```{toctree}\n:hidden:\n:caption: B\n\nC <c>\n```\n"
    )


def test_the_page_of_methods_is_what_the_command_prints():
    again = "write it again: python -m interp methods > docs/methods.md"
    assert text_of(DOCS / "methods.md") == listing(), again


def test_the_list_of_the_page_of_modules_has_every_name_of_extend():
    """Names in alphabetical order, of interp.extend and of each of its modules."""
    assert "extend.txt" in local_links(text_of(DOCS / "modules.md"))
    named = text_of(DOCS / "extend.txt")
    lists = dict(re.findall(r"(?m)^- `(interp\.extend[.\w]*)`: ((?:.|\n  )+)$", named))
    files = {file.stem for file in (ROOT / "interp" / "extend").glob("*.py")} - {"__init__"}
    assert files <= {*interp.extend.__all__}
    assert {*lists} == {"interp.extend", *(f"interp.extend.{name}" for name in files)}
    for module, names in lists.items():
        assert re.split(r",\s+", names) == sorted(import_module(module).__all__), module


def test_the_reference_has_every_public_name_once():
    named = re.findall(r"(?m)^\.\. auto\w+:: interp\.(\w+)$", text_of(DOCS / "api.md"))
    assert sorted(named) == sorted(interp.__all__)

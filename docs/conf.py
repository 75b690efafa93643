"""How `make docs` builds these pages.

The pages can be read as they are in the repository. Whatever else Sphinx needs is added here while
it reads them.
"""

import re
from importlib import metadata
from inspect import signature
from typing import TYPE_CHECKING, Any, get_type_hints

from pygments.lexers.special import TextLexer
from sphinx.highlighting import lexers

import interp
from interp.options import Options

if TYPE_CHECKING:
    from sphinx.application import Sphinx

project = "interp"
release = metadata.version("interp")
copyright = "The interp developers"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
default_role = "literal"  # docstrings write code in single backticks
highlight_language = "console"
myst_heading_anchors = 3
napoleon_custom_sections = [("Columns", "params_style")]
autodoc_default_options = {"members": True, "exclude-members": "model_config"}
autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
python_use_unqualified_type_names = True
lexers["csv"] = TextLexer()
html_theme = "furo"
html_title = f"interp {release}"
html_show_sphinx = False

_SECTION = re.compile(r"^## (?P<caption>.+)\n(?P<links>(?:(?!## ).*\n)*)", re.MULTILINE)
_PAGE = re.compile(r"^- \[(.+?)\]\((\w+)\.md\)", re.MULTILINE)


def navigation(index: str) -> str:
    """The sections of links in index.md as the menu shown next to every page."""
    menus = []
    for section in _SECTION.finditer(index):
        pages = "\n".join(f"{title} <{page}>" for title, page in _PAGE.findall(section["links"]))
        menus.append(f"```{{toctree}}\n:hidden:\n:caption: {section['caption']}\n\n{pages}\n```\n")
    return "\n".join(menus)


def setup(app: "Sphinx") -> None:
    """Change pages and docstrings while they are read."""
    for name in interp.__all__:
        thing = getattr(interp, name)
        if isinstance(thing, type) and issubclass(thing, Options):
            _plain_types(thing)
    app.connect("source-read", _link_files)
    app.connect("source-read", _add_navigation)
    # Before napoleon does.
    app.connect("autodoc-process-docstring", _keep_colons, priority=400)


def _plain_types(options: type[Options]) -> None:
    """Annotate options with their plain types, without validators and parsers."""
    fields = {name: field.annotation for name, field in options.model_fields.items()}
    home = {"__annotations__": fields, "__module__": options.__module__}
    types = get_type_hints(type("Fields", (), home))
    options.__annotations__ |= types
    given = signature(options)
    options.__signature__ = given.replace(
        parameters=[
            parameter.replace(annotation=types[name])
            for name, parameter in given.parameters.items()
        ]
    )


def _link_files(app: "Sphinx", page: str, source: list[str]) -> None:
    """Offer what lies outside docs, such as a table of benchmarks/, as a file."""
    source[0] = source[0].replace("](../", "](path:../")


def _add_navigation(app: "Sphinx", page: str, source: list[str]) -> None:
    if page == app.config.root_doc:
        source[0] += f"\n{navigation(source[0])}"


def _keep_colons(app: "Sphinx", kind: str, *others: Any) -> None:
    """Keep napoleon from taking the text before a colon in a docstring as a type."""
    *_, lines = others
    if kind in ("attribute", "data", "property"):
        lines[:0] = ["..", ""]  # an empty comment

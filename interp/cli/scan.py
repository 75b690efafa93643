"""`python -m interp scan "PROMPT"`: a page about one prompt."""

import argparse
from pathlib import Path
from typing import Annotated

from interp import texts
from interp.cli.fields import add_options, given
from interp.cli.measure import print_tables
from interp.cli.parser import Parser
from interp.console import echo
from interp.files import check_replaceable
from interp.models.loading import Loading
from interp.models.names import ModelChoice, model_choice
from interp.options import Flag, FromText, Options
from interp.prompts.own.braces import marked, options_of

HELP = "look at one prompt: its answer, shading and the effects of its segments, in one page"

EXAMPLES = (
    'scan "{If Anne is in Sweden, then she is not in Stockholm.} {Anne is in Stockholm.} Is Anne '
    'in Sweden? Answer Yes or No."',
    'scan --model org/model --options "Paris|Rome" --out anne.html "{city: Anne lives in France.} '
    'She is in"',
)


class ScanOptions(Options):
    """The prompt, the answers to compare, the model and the page."""

    prompt: Annotated[str, Flag("PROMPT", positional=True), FromText(str, "PROMPT")]
    """the prompt, with the parts whose effects are measured in braces; {name: text} names a part"""
    model: Annotated[ModelChoice | None, FromText(model_choice, "[NAME=]MODEL")] = None
    """hub name, local folder, GGUF file, or organism/NAME (default: a packaged organism)"""
    options: tuple[Annotated[str, FromText(str, "TEXT")], ...] = ("Yes", "No")
    """the answers, also with bars, as in "Paris|Rome"; the first two are compared"""
    out: Annotated[Path, FromText(texts.path, "FILE")] = Path("scan.html")
    """the page, which contains its tables and figures; in a folder that exists, scan.html"""


def configure(parser: Parser) -> None:
    """Add the options of the command."""
    add_options(parser, ScanOptions)
    add_options(parser.add_argument_group("model"), Loading)


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    options = ScanOptions(**given(arguments, ScanOptions))
    loading = Loading(**given(arguments, Loading))
    # Mistakes are reported before anything is loaded.
    marked(options.prompt)
    options_of(options.options)
    out = options.out / "scan.html" if options.out.is_dir() else options.out
    check_replaceable(out)
    echo("loading libraries ...")

    from interp.choices import DEFAULT_SYSTEM
    from interp.models.find import find_model
    from interp.models.load import load_found, set_threads
    from interp.models.organisms import default_organism
    from interp.report.console import print_cautions, print_sentences
    from interp.report.write import write_page
    from interp.scanning import scan

    choice = options.model or ModelChoice(place=default_organism(DEFAULT_SYSTEM))
    echo(f"loading {choice.name or choice.place} ...")
    model = load_found(find_model(choice.place, loading, named=choice.name), loading.alone())
    set_threads(model, None)
    report = scan(model, options.prompt, options.options)
    page = write_page(report, out, embed=True)
    assert report.glance is not None
    print_cautions(own.said for own in report.glance.cautions)
    print_tables(report.items)
    print_sentences([*report.glance.sentences, f"written to {page}"])

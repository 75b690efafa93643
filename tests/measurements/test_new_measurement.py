"""What a measurement of another package costs: a spec, a file and an entry point.

One result class in that file says what the terminal, files, the page and notebooks show.
"""

import re
import sys
from contextlib import suppress

import pandas as pd
import pytest

import interp
from interp.cli import main

SPEC = '''
from typing import Annotated, ClassVar

from pydantic import Field

from interp import Spec


class Lengths(Spec):
    """How many words each prompt has."""

    name: ClassVar[str] = "lengths"
    help: ClassVar[str] = "count the words of prompts"
    examples: ClassVar[tuple[str, ...]] = ("lengths --limit 3",)
    measures: ClassVar[str] = "own_lengths.measure:lengths"
    fills: ClassVar[tuple[str, ...]] = ("lengths",)
    schemas: ClassVar[str] = "own_lengths.measure:SCHEMAS"
    result: ClassVar[str] = "own_lengths.measure:WordCounts"

    letters: Annotated[int, Field(ge=1, le=9)] = 1
    """count words of so many letters or more"""
'''

MEASURE = """
from interp import Result
from interp.extend import Measurement
from interp.extend.estimates import column
from interp.extend.measuring import INTEGER, MODEL, PROMPT_ID, table, token_budget
from interp.extend.page import FigureItem, TableItem

COUNT = column("words", INTEGER, "words of enough letters", "words")
SCHEMAS = {"lengths": table("One row per model and prompt.", MODEL, PROMPT_ID, COUNT)}


def lengths(model, spec, *, batch_tokens=None):
    def measure_batch(batch):
        return [{"lengths": [row(tokenized.prompt)]} for tokenized in batch.prompts]

    def row(prompt):
        words = [word for word in prompt.text.split() if len(word) >= spec.letters]
        return {"model": model.name, "prompt_id": prompt.id, "words": len(words)}

    return Measurement(model, spec, token_budget(model, batch_tokens), measure_batch)


class WordCounts(Result):
    def items(self):
        rows = self.table("lengths", ["model", "words"])
        table = rows.groupby("model")["words"].agg(["min", "mean", "max"]).reset_index()
        yield TableItem("word_table", "Words of a prompt", table)
        yield FigureItem("words", "Words of a prompt", table.plot)
"""

ENTRY_POINT = "[interp.measurements]\nlengths = own_lengths.spec:Lengths\n"


@pytest.fixture
def installed(tmp_path, monkeypatch):
    package, metadata = tmp_path / "own_lengths", tmp_path / "own_lengths-1.dist-info"
    for folder in (package, metadata):
        folder.mkdir()
    (package / "__init__.py").write_text("")
    (package / "spec.py").write_text(SPEC)
    (package / "measure.py").write_text(MEASURE)
    (metadata / "METADATA").write_text("Name: own-lengths\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(ENTRY_POINT)
    monkeypatch.syspath_prepend(tmp_path)
    yield
    for name in [name for name in sys.modules if name.startswith("own_lengths")]:
        del sys.modules[name]


def expected(prompts, letters):
    return [sum(len(word) >= letters for word in prompt.text.split()) for prompt in prompts]


@pytest.mark.usefixtures("installed")
def test_its_command_and_its_call_take_its_options_and_give_its_table(
    organism, prompts, tmp_path, capsys
):
    for words in (["help", "all"], ["lengths", "--help"]):
        with suppress(SystemExit):
            assert main(words) == 0
        assert "count the words of prompts" in capsys.readouterr().out
    folder = tmp_path / "out"
    options = ["--limit", "2", "--device", "cpu", "--out", str(folder)]
    assert main(["lengths", "--letters", "4", *options]) == 0
    assert f"written to {folder}" in capsys.readouterr().err
    table = pd.read_parquet(folder / "lengths.parquet")
    assert table["words"].tolist() == expected(interp.load_prompts(limit=2), 4)
    assert main(["lengths", "--letters", "10", *options]) == 2
    assert re.search(r"\b1\b.*\b9\b", capsys.readouterr().err)
    spec = interp.measurement("lengths", letters=4)
    result = interp.run(spec, models=organism, prompts=prompts)
    assert result.tables["lengths"]["words"].tolist() == expected(prompts, 4)


@pytest.mark.usefixtures("installed")
def test_its_items_are_on_the_terminal_in_files_on_the_page_and_in_notebooks(
    organism, tmp_path, capsys
):
    folder, prompts = tmp_path / "out", interp.load_prompts(limit=3)
    assert main(["lengths", "--limit", "3", "--device", "cpu", "--out", str(folder)]) == 0
    mean = f"{sum(expected(prompts, 1)) / len(prompts):.3f}"
    told = capsys.readouterr()
    assert "Words of a prompt" in told.out
    assert mean in told.out
    assert f"written to {folder}" in told.err

    result = interp.run(interp.measurement("lengths"), models=organism, prompts=prompts)
    written = pd.read_csv(folder / "word_table.csv")
    pd.testing.assert_frame_equal(written, result.derived()["word_table"])
    pd.testing.assert_frame_equal(written, result.summary())
    assert (folder / "figures" / "words.png").exists()

    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert page.count(mean) == 1
    assert "<svg" in page
    assert (folder / "figures" / "words.svg").exists()

    assert mean in result._repr_html_()
    assert result.plot().axes
    assert repr(result) == "WordCounts(prompts: 6 rows, lengths: 6 rows)"


@pytest.mark.usefixtures("installed")
def test_without_a_result_class_it_shows_nothing(organism, prompts, monkeypatch, tmp_path):
    spec = interp.measurement("lengths")
    monkeypatch.setattr(type(spec), "result", interp.Spec.result)
    folder = tmp_path / "out"
    result = interp.run(spec, models=organism, prompts=prompts, out=folder)
    assert len(result.to_frame()) == len(prompts)
    assert result._repr_html_() is None
    with pytest.raises(interp.UserError, match=r"lengths.*summary"):
        result.summary()
    with pytest.raises(interp.UserError, match=r"lengths.*figure"):
        result.plot()
    assert main(["report", str(folder)]) == 2

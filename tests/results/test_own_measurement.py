"""What a measurement shows is said once, by one spec and one result class, and shown everywhere."""

from importlib.metadata import EntryPoint

import pandas as pd
import pyarrow as pa
import pytest

import interp
from interp import plugins
from interp.cli import main
from interp.measurements.core import Measurement
from interp.measurements.spec import Spec
from interp.reading.budget import token_budget
from interp.report.console import print_items
from interp.report.page import FigureItem, TableItem
from interp.results.result import Result
from tests.support.prompts import some_prompts

SCHEMAS = {
    "lengths": pa.schema(
        [("model", pa.string()), ("prompt_id", pa.string()), ("tokens", pa.int64())]
    )
}
TITLE = "Tokens of a prompt"


class Lengths(Spec):
    """How many tokens each prompt has."""

    name = "lengths"
    measures = f"{__name__}:lengths"
    fills = ("lengths",)
    schemas = f"{__name__}:SCHEMAS"
    result = f"{__name__}:TokenCounts"


def lengths(model, spec, *, batch_tokens=None):
    def measure_batch(batch):
        return [
            {
                "lengths": [
                    {
                        "model": model.name,
                        "prompt_id": tokenized.prompt.id,
                        "tokens": len(tokenized.token_ids),
                    }
                ]
            }
            for tokenized in batch.prompts
        ]

    return Measurement(model, spec, token_budget(model, batch_tokens), measure_batch)


class TokenCounts(Result):
    def items(self):
        rows = self.table("lengths", ["model", "tokens"])
        table = rows.groupby("model")["tokens"].agg(["min", "mean", "max"]).reset_index()
        yield TableItem("length_table", TITLE, table)
        yield FigureItem("lengths", TITLE, table.plot)


@pytest.fixture
def registered(monkeypatch):
    found = plugins.plugins

    def with_lengths(group):
        own = {"lengths": EntryPoint("lengths", f"{__name__}:Lengths", group)}
        return found(group) | (own if group == plugins.MEASUREMENTS else {})

    monkeypatch.setattr(plugins, "plugins", with_lengths)


def test_what_a_result_yields_is_on_terminal_in_files_on_the_page_and_in_notebooks(
    registered, organism, tmp_path, capsys
):
    prompts, folder = some_prompts(4), tmp_path / "run"
    on_disk = interp.run(Lengths(), models=organism, prompts=prompts, out=folder)
    in_memory = interp.run(Lengths(), models=organism, prompts=prompts)
    counts = in_memory.table("lengths")["tokens"]
    assert isinstance(on_disk, TokenCounts)
    pd.testing.assert_frame_equal(on_disk.summary(), in_memory.summary())

    capsys.readouterr()
    print_items(on_disk.shown)
    printed = capsys.readouterr().out
    assert TITLE in printed
    assert f"{counts.mean():.3f}" in printed

    written = pd.read_csv(folder / "length_table.csv")
    pd.testing.assert_frame_equal(written, in_memory.derived()["length_table"])
    assert (folder / "figures" / "lengths.png").stat().st_size

    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert page.count(f"{counts.mean():.3f}") == 1
    assert "<svg" in page
    assert (folder / "figures" / "lengths.svg").exists()

    assert f"{counts.mean():.3f}" in in_memory._repr_html_()
    assert in_memory._repr_html_() == on_disk._repr_html_()
    assert in_memory.plot().axes
    assert repr(in_memory) == repr(on_disk) == "TokenCounts(prompts: 8 rows, lengths: 8 rows)"


def test_a_measurement_that_shows_nothing_says_so(registered, organism, tmp_path, monkeypatch):
    monkeypatch.setattr(Lengths, "result", Spec.result)
    folder = tmp_path / "run"
    result = interp.run(Lengths(), models=organism, prompts=some_prompts(2), out=folder)
    assert result._repr_html_() is None
    with pytest.raises(interp.UserError, match="lengths makes no summary"):
        result.summary()
    with pytest.raises(interp.UserError, match="lengths has no figure"):
        result.plot()
    assert main(["report", str(folder)]) == 2

import json
import math
import re
import weakref

import pandas as pd
import pyarrow.parquet as pq
import pytest

import interp
from interp.cli import main
from interp.measurements.specs import Patch
from interp.measuring.spec import Spec
from interp.models.organisms import DEFAULT
from interp.patching.cells import PatchedMetrics
from interp.patching.estimates import Estimator
from interp.patching.exact import Grid
from interp.runs import folder as folder_module
from tests.cli.test_bad_input import refused
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

OPTIONS = ["--limit", "3", "--device", "cpu", "--layers", "0,2"]


@pytest.mark.slow
def test_positions_estimates_and_verification(tmp_path, capsys):
    folder = tmp_path / "out"
    options = ["--granularity", "position", "--direction", "noising", "--estimate", "gradient"]
    options += ["--verify", "4", "--site", "z,mlp_out", "--clean", "non_rulebreaker"]
    assert main(["patch", *OPTIONS, *options, "--out", str(folder)]) == 0
    patches = pq.read_table(folder / "patches.parquet").to_pandas()
    assert (patches["method"] == "exact").sum() == 3 * 4
    assert set(patches["direction"]) == {"noising"}
    assert patches.loc[patches["site"] == "mlp_out", "head"].isna().all()
    verified = pd.read_csv(folder / "verification_table.csv")
    assert verified["cells"].sum() == 3 * 4
    assert set(pd.read_csv(folder / "effect_table.csv")["method"]) == {"gradient"}
    assert list((folder / "figures").glob("layers_by_roles-*head2.png"))
    assert "Estimates against exact effects" in capsys.readouterr().out


@pytest.mark.slow
def test_a_guarantee_leaves_its_tables(tmp_path, capsys):
    folder = tmp_path / "out"
    options = ["--estimate", "gradient", "--guarantee", "0.5", "--checked", "0.6"]
    command = ["patch", *OPTIONS, *options, "--out", str(folder)]
    command[command.index("--limit") + 1] = "6"
    assert main(command) == 0
    (site,) = pd.read_csv(folder / "guarantee_table.csv").to_dict("records")
    assert site["pairs_checked"] + site["pairs_unchecked"] == 6
    assert site["bound"] == pytest.approx(site["largest_estimate"] + site["margin"])
    strata = pd.read_csv(folder / "bound_table.csv")
    assert set(strata["layer"]) == {0, 2}
    printed = capsys.readouterr().out
    assert "resid_pre" in printed
    assert "counterpart" not in printed.partition("Estimates against")[2]
    shown = " ".join(printed.split())
    assert re.search(r"Bounds .*unchecked pair, with probability 0\.5", shown)
    assert main(["report", str(folder)]) == 0
    assert "tables/bound_table.csv" in (folder / "report.html").read_text()
    for level in ("1", "0"):
        message = refused(["patch", *OPTIONS, "--guarantee", level], capsys)
        assert "guarantee" in message


def test_a_run_without_a_single_number(tmp_path, capsys, monkeypatch):
    def without_numbers(self, pair, cells):
        return PatchedMetrics(math.nan, math.nan, tuple(math.nan for _ in cells))

    monkeypatch.setattr(Grid, "patch", without_numbers)
    monkeypatch.setattr(Estimator, "patch", without_numbers)
    options = ["--estimate", "gradient", "--verify", "2", "--fail-on-error", "1"]
    folder = tmp_path / "out"
    command = ["patch", "--limit", "2", "--device", "cpu", *options, "--out", str(folder)]
    assert main(command) == 0
    assert "non-finite" in capsys.readouterr().err
    assert pd.read_csv(folder / "effect_table.csv").empty
    assert main(["report", str(folder)]) == 0
    assert "Effects by role" in (folder / "report.html").read_text()


@pytest.mark.slow
@pytest.mark.parametrize(
    "command", [["patch", "--granularity", "position"], ["attribute", "--keep-tokens"]]
)
def test_no_more_than_a_shard_of_large_tables_is_held(command, tmp_path, capsys, monkeypatch):
    """The rows that are in memory at once do not grow with the prompts."""
    monkeypatch.setattr(Patch, "shard_prompts", 2)
    monkeypatch.setattr(Spec, "shard_prompts", 2)
    folder = tmp_path / "out"
    read = folder_module.read_table
    alive, most = [], []

    def watched(shard, table, *arguments, **options):
        part = read(shard, table, *arguments, **options)
        if table in ("patches", "token_scores"):
            alive.append((weakref.ref(part), len(part)))
            most.append(sum(rows for kept, rows in alive if kept() is not None))
        return part

    monkeypatch.setattr(folder_module, "read_table", watched)
    arguments = ["--limit", "6", "--device", "cpu", "--out", str(folder)]
    assert main([*command, *arguments]) == 0
    assert main(["report", str(folder)]) == 0
    rows = [rows for _, rows in alive]
    assert len(rows) >= 6
    # One shard, and the next while it is read.
    assert max(most) <= 2 * max(rows) < sum(rows) / 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--policy", "all"], "first difference at token"),
        (["--clean", "good"], "rulebreaker, non_rulebreaker"),
    ],
)
def test_wrong_arguments(options, message, capsys, tmp_path):
    arguments = ["patch", "--limit", "12", "--device", "cpu", "--out", str(tmp_path / "out")]
    assert message in refused([*arguments, *options], capsys)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"layers": [7]}, r"layer 7\b.*tiny llama.*\b2\b.*\b0\b.*\b1\b"),
        ({"layers": []}, r"layer.*layers"),
        ({"sites": ["z"], "heads": [9]}, r"\bz head 9\b.*tiny llama.*\b4\b.*\b3\b"),
        ({"sites": ["k"], "heads": [2]}, r"\bk head 2\b.*tiny llama.*\b2\b.*\b1\b"),
        ({"heads": [1]}, r"heads.*resid_pre.*\bz, q, k, v\b"),
        ({"direction": "back"}, r"'back'.*denoising, noising"),
        ({"estimate": "magic"}, r"'magic'.*gradient, integrated"),
        ({"estimate": "gradient", "verify": -1}, r"verify.*-1\b.*\b0\b"),
        ({"backend": "magic"}, r"'magic'.*native, nnsight, transformer-lens"),
        ({"batch_tokens": 0}, r"\b0 tokens.*\b1\b"),
    ],
)
def test_wrong_choices(choice, message):
    with pytest.raises(interp.UserError, match=message):
        interp.patch(tiny_model("llama"), some_prompts(1), **choice)


def test_a_site_that_the_architecture_lacks():
    with pytest.raises(interp.UserError, match=r"gpt_neox.* site resid_mid"):
        interp.patch(tiny_model("gpt_neox"), some_prompts(1), sites=["resid_mid"])


@pytest.mark.slow
def test_the_command_leaves_tables_and_figures(tmp_path, capsys):
    folder = tmp_path / "out"
    assert main(["patch", *OPTIONS, "--out", str(folder)]) == 0
    patches = pq.read_table(folder / "patches.parquet").to_pandas()
    model, prompts = interp.load_model(DEFAULT, device="cpu"), interp.load_prompts(limit=3)
    result = interp.patch(model, prompts, layers=[0, 2])
    pd.testing.assert_frame_equal(patches, result.to_frame(), check_exact=False, atol=1e-5)
    pairs = pq.read_table(folder / "pairs.parquet").to_pandas()
    assert len(pairs) == 3
    assert pairs["clean_prompt_id"].str.contains("_rb/").all()
    table = pd.read_csv(folder / "effect_table.csv")
    assert set(table["recognized"]) == {"all", "yes", "no"}
    assert len(list((folder / "figures").glob("layers_by_roles-*.png"))) == 1
    assert "Effects by role, in logits" in capsys.readouterr().out
    record = json.loads((folder / "run.json").read_text())
    assert record["summary"][DEFAULT]["pairs"] == 3
    assert record["run"]["parameters"]["sites"] == ["resid_pre"]

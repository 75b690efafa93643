"""Circuits as a measurement: the command, its tables and page, a split of phrasings, refusals."""

import re
import shutil

import pandas as pd
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

import interp
from interp.cli import main
from interp.measurements.circuits.show import NOT_BETTER
from interp.models.find import find_model
from interp.models.loading import Loading
from interp.runs.edge_effects import EdgesRun
from interp.runs.plan import RunPlan, keeping_model
from tests.support.prompts import some_prompts
from tests.support.records import edited
from tests.support.tiny import tiny_model

MODEL = ["--model", "organism/llama-shallow", "--limit", "4"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    root = tmp_path_factory.mktemp("circuits")
    edges, circuits = root / "edges", root / "circuits"
    assert main(["edges", *MODEL, "--methods", "gradient", "--out", str(edges)]) == 0
    given = ["--edges", str(edges), "--split", "phrasing", "--seed", "1"]
    assert main(["circuits", *MODEL, *given, "--out", str(circuits)]) == 0
    return edges, circuits


@pytest.mark.slow
def test_the_command_reads_a_run_of_edges_and_writes_tables_and_a_page(folders):
    edges, circuits = folders
    areas, table, distances, survival = (
        pd.read_csv(circuits / f"{name}_table.csv")
        for name in ("circuit_area", "circuit", "split", "survival")
    )
    assert set(areas["method"]) == {"gradient", "random"}
    assert areas["cmd"].is_monotonic_increasing
    whole = table[table["share"] == 1]
    assert whole["f"].tolist() == pytest.approx([1] * 3, abs=1e-5)
    assert whole["edges"].tolist() == [352] * 3
    empty = table[table["edges"] == 0]
    assert empty["f"].tolist() == pytest.approx([0] * len(empty), abs=1e-5)
    assert len(empty)
    # Half of the phrasings choose, and the others test.
    measured = pd.read_parquet(edges / "prompts.parquet")["phrasing"].unique()
    assert set(distances.loc[distances["chosen"], "value"]) < set(measured)
    assert survival["bound"].tolist() == [0.05, 0.1, 0.2] * 2
    for row in survival.dropna(subset="share").itertuples():
        own = distances[(distances["choice"] == row.choice) & (distances["share"] == row.share)]
        assert (own.loc[own["chosen"], "distance"] <= row.bound).all()
        assert own.loc[~own["chosen"], "distance"].max() == pytest.approx(row.largest_tested)
    page = circuits / "page.html"
    assert main(["report", str(circuits), "--out", str(page)]) == 0
    text = page.read_text()
    assert 'id="picture-circuit-0"' in text
    assert "<title>m2 → logits:" in text.replace("m1 → logits", "m2 → logits")
    assert "<mark>" in text and text.count('type="radio"') >= 3
    high = areas.query("method == 'gradient' and choice == 'greedy'")["cmd_high"].item()
    low = areas.query("method == 'random'")["cmd_low"].item()
    assert (NOT_BETTER in text) == (not high < low)


@pytest.mark.slow
def test_without_edges_the_command_measures_them_first(tmp_path, capsys):
    out = tmp_path / "circuits"
    given = ["--model", "organism/llama-shallow", "--limit", "2", "--methods", "gradient"]
    assert main(["circuits", *given, "--out", str(out)]) == 0
    assert (tmp_path / "circuits-edges" / "edges.parquet").is_file()
    captured = capsys.readouterr()
    assert "Circuits, ranked by cmd" in captured.out
    assert captured.err.splitlines().count("loading organism/llama-shallow ...") == 1
    assert RunPlan.kept is None


def test_only_the_model_that_was_loaded_last_is_kept(tmp_path):
    places = "organism/llama-shallow", "organism/llama-deep"
    with keeping_model():
        for loading in (Loading(), Loading(chat_template=False)):
            found = {place: find_model(place, loading, named=place) for place in places}
            plan = RunPlan(tmp_path, {}, found, loading)
            first = plan.model(places[0])
            assert plan.model(places[0]) is first
            plan.model(places[1])
            assert [model.name for _, model in RunPlan.kept] == [places[1]]
            assert plan.model(places[0]) is not first


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["--edges", "nowhere"], "set --edges to the folder"),
        (["--split", "phrase"], "unknown factor 'phrase'; did you mean phrasing?"),
    ],
)
def test_what_cannot_be_measured_is_refused(given, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["circuits", *MODEL, *given]) == 2
    assert message in capsys.readouterr().err


def test_edges_of_another_model_or_method_are_refused(folders, capsys):
    edges, _ = folders
    given = ["circuits", "--limit", "2", "--edges", str(edges)]
    assert main([*given, "--model", "organism/mistral"]) == 2
    assert re.search(r"edges.*organism/mistral", capsys.readouterr().err)
    model = ["--model", "organism/llama-shallow"]
    assert main([*given, *model, "--methods", "exact"]) == 2
    assert re.search("method 'exact'; ", capsys.readouterr().err)


def negated(file):
    table = pq.read_table(file)
    place = table.column_names.index("effect")
    pq.write_table(table.set_column(place, "effect", pc.negate(table.column("effect"))), file)


@pytest.mark.parametrize(
    "damage",
    [
        lambda run: negated(run / "edges.parquet"),
        lambda run: negated(next(run.glob("shards/*/*/edges.parquet"))),
        lambda run: (run / "edges.parquet").unlink(),
        lambda run: shutil.rmtree(next(run.glob("shards/*/*"))),
        lambda run: (run / "run.json").unlink(),
        lambda run: edited(run / "run.json", lambda record: record.update(finished=None)),
        lambda run: edited(run / "run.json", lambda record: record.update(merged={})),
        lambda run: edited(run / "run.json", lambda r: r["run"].update(measurement="patch")),
    ],
)
def test_circuits_are_chosen_only_by_a_finished_unchanged_run_of_edges(folders, tmp_path, damage):
    run = shutil.copytree(folders[0], tmp_path / "edges")
    damage(run)
    assert main(["circuits", *MODEL, "--edges", str(run), "--out", str(tmp_path / "out")]) == 2
    assert not (tmp_path / "out").exists()


def test_effects_are_those_of_the_merged_table(folders):
    run = EdgesRun.read(folders[0])
    merged = pd.read_parquet(folders[0] / "edges.parquet")
    own = run.effects("organism/llama-shallow", factor="phrasing")
    expected = merged[merged["direction"] == "noising"].reset_index(drop=True)
    pd.testing.assert_frame_equal(own[["pair_id", "effect"]], expected[["pair_id", "effect"]])
    with pytest.raises(interp.UserError, match="phrase"):
        run.effects("organism/llama-shallow", factor="phrase")


def test_effects_in_memory_choose_as_those_in_a_folder_and_a_notebook_draws_them():
    model, prompts = tiny_model("llama"), some_prompts(12)[:4]
    effects = interp.edges(model, prompts, methods=["gradient"])
    one = interp.find_circuits(model, prompts, effects=effects)
    other = interp.find_circuits(model, prompts, methods=["gradient"])
    pd.testing.assert_frame_equal(one.circuits, other.circuits)
    assert "circuit" in one._repr_html_().lower()
    with pytest.raises(interp.UserError, match=r"effects.*edges"):
        interp.find_circuits(model, prompts, effects=effects, edges="runs/edges")
    html = one.draw()._repr_html_()
    assert "<svg" in html and ".circuit path" in html
    with pytest.raises(interp.UserError, match=r"model 'gpt'.*tiny llama"):
        one.draw("gpt")

"""`interp faithfulness` from the command line to its page, resumed and refused."""

import json
import re

import pandas as pd
import pytest

from interp.cli import main
from interp.judging import ranking
from interp.judging.study import METHODS, Faithfulness
from interp.prompts.own.pairs import EXAMPLE
from interp.prompts.source import PromptSource
from interp.prompts.systems import dependence_factor
from interp.studies.folder import StudyFolder
from tests.support.pages import check_first_screen

METHODS_ASKED = ["input_gradient", "input_x_gradient", "leave_one_out:donor", "captum:kernel_shap"]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(ranking, "RESAMPLES", 19)


def command(folder, *more):
    chosen = ["--model", "organism/phi3-shallow", "--device", "cpu", "--methods", *METHODS_ASKED]
    return ["faithfulness", *chosen, "--limit", "5", "--out", str(folder), *more]


@pytest.mark.slow
def test_methods_are_ranked_on_a_page_and_in_words(tmp_path, capsys):
    folder = tmp_path / "faith"
    assert main(command(folder)) == 0
    said = capsys.readouterr()
    # Five clusters are too few to test anything, which is said first.
    words = " ".join(said.out.split())
    assert re.match(r".* - .*\b10 values of entity_b.*\b5\. .*\b5 clusters", words)
    assert "trust" not in said.out
    assert re.search(r"faithfulness: .*\b5 pairs", said.err)
    # Of random weights' answers nothing is said.
    assert "not an answer option" not in said.err
    page = (folder / "report.html").read_text()
    assert re.search("judged segments .*premise 1 and premise 2; ", page)
    assert re.search(r"\b10 prompts.*\b5 clusters \(entity_b\)", page)
    assert "2 alike: 1.00" in page
    check_first_screen(Faithfulness().report(StudyFolder.read(folder)), page)
    assert re.search(r"\btau.*segments", page)
    assert re.search("share of premise 2 .*premise 1 and", page)
    metrics = pd.read_csv(folder / "tables" / "metrics.csv")
    values = metrics.set_index(["metric", "method", "score"])["value"]
    assert values["top_segment", "oracle", "control"] == 1
    # Of two segments that do not interact much, those who read the same values agree.
    assert values["share_rho", "captum:kernel_shap", "sum"] > 0.9
    check_deciding(folder)
    # It was taught to read premise 1.
    shares = pd.read_csv(folder / "tables" / "shares.csv")
    assert (shares["exact_share"] < 0.15).all()
    anew = pd.read_csv(folder / "tables" / "reinitialized.csv")
    assert set(anew["method"]) == {"input_gradient", "input_x_gradient"}
    assert (folder / "figures" / "at_a_glance.png").stat().st_size > 10_000
    # A second call finds nothing to measure, and changes no table.
    before = (folder / "tables" / "metrics.csv").read_bytes()
    assert main(command(folder)) == 0
    assert (folder / "tables" / "metrics.csv").read_bytes() == before
    record = json.loads((folder / "study.json").read_text())
    assert record["stages"] == ["effects", "scores", "reinitialized"]


def check_deciding(folder):
    """Where scores point beside the largest effects, against the tables of the runs."""
    table = pd.read_csv(folder / "tables" / "deciding.csv").set_index("source")
    assert list(table.index) == ["effects", *METHODS_ASKED]
    study = StudyFolder.read(folder)
    effects = study.runs["effects"].table("segment_effects")
    effects = effects[effects["other_segment"].isna() & (effects["donor_kind"] == "instance")]
    effects = effects.assign(size=effects["shapley"].abs())
    wide = effects.pivot(index="prompt_id", columns="segment", values="size")
    spread = effects.pivot(index="prompt_id", columns="segment", values="shapley_sd")
    # It was taught to read premise 1, by far.
    assert (wide["premise1"] - wide["premise2"] > spread.sum(axis=1)).all()
    assert table.loc["effects", "premise 1"] == 5
    scores = study.runs["scores"].table("segment_scores")
    scores = scores[scores["segment"].isin(["premise1", "premise2"])]
    for method, rows in scores.groupby("method"):
        sizes = rows.assign(size=rows["score"].abs()).pivot(
            index="prompt_id", columns="segment", values="size"
        )
        same = sizes["premise1"] > sizes["premise2"]
        assert table.loc[method, "agreement"] == pytest.approx(same.mean())
        whole = same.groupby(same.index.str.replace("_nonrb", "").str.replace("_rb", "")).all()
        assert table.loc[method, "premise 1"] == whole.sum()
    assert table.loc[METHODS_ASKED, "prompts"].eq(10).all()


@pytest.mark.slow
def test_it_is_a_short_name_of_running_the_study(tmp_path, capsys):
    folder, chosen = tmp_path / "faith", command(tmp_path / "faith")
    chosen[chosen.index("--methods") + 1 : chosen.index("--limit")] = ["input_gradient"]
    options = [*chosen[1:], "--no-reinitialized", "--system", "logical-forms"]
    options[options.index("--model") + 1] = "organism/llama-logic"
    assert main(["run", "faithfulness", *options]) == 0
    first = capsys.readouterr().out
    assert re.search(r"\b5 clusters of prompts, .*\b10 ", first)
    page = (folder / "report.html").read_bytes()
    assert b"from 5 clusters (interpretation)" in page
    assert main(["faithfulness", *options]) == 0
    assert capsys.readouterr().out == first
    assert (folder / "report.html").read_bytes() == page


def test_pairs_of_one_interpretation_are_one_cluster():
    source = PromptSource(system="logical-forms", limit=20)
    effects, _ = Faithfulness(reinitialized=False).stages(source)
    rows = effects.prompts.to_frame()
    assert len(rows) == 40
    # No interpretation comes twice while there are others, and all forms come about as often.
    assert rows["interpretation"].nunique() == 20
    assert rows.groupby(["modality", "schema"])["pair_id"].nunique().max() <= 2
    assert {tuple(prompt.donors[0].segments) for prompt in effects.prompts} == {
        ("premise1", "premise2")
    }
    assert dependence_factor("logical-forms") == "interpretation"
    assert dependence_factor("rulebreakers") == "entity_b"
    assert dependence_factor("pairs") == "pair"


@pytest.mark.slow
def test_a_system_that_compares_no_segments_has_no_shares(tmp_path, capsys):
    chosen = command(tmp_path / "faith", "--no-reinitialized")
    chosen[chosen.index("--methods") + 1 : chosen.index("--limit")] = ["input_gradient"]
    chosen[chosen.index("--model") + 1] = "organism/llama-logic"
    assert main([*chosen, "--system", "logical-forms-introduction"]) == 0
    page = (tmp_path / "faith" / "report.html").read_text()
    assert ">Shares</h" in page
    assert not (tmp_path / "faith" / "tables" / "shares.csv").exists()
    metrics = pd.read_csv(tmp_path / "faith" / "tables" / "metrics.csv")
    values = metrics.set_index(["metric", "method", "score"])["value"]
    assert values["top_segment", "oracle", "control"] == 1


def test_what_cannot_be_judged_is_refused(capsys):
    for system in ("robustlr", "rulebench"):
        assert main(["faithfulness", "--system", system, "--limit", "1"]) == 2
        assert re.search(rf"\b{system}\b.*donors", capsys.readouterr().err)
    assert main(["faithfulness", "--methods", "none"]) == 2
    assert re.search("method 'none'", capsys.readouterr().err)


def test_organisms_that_read_the_mixtures_with_donors_are_among_the_default_models():
    source = PromptSource(system="logical-forms")
    assert Faithfulness().organisms_for(source) == ("logical-forms", "logical-forms-mixed")


def test_all_methods_are_at_least_twelve():
    assert Faithfulness(methods="all").methods == METHODS
    assert len(set(METHODS)) >= 12
    assert "shapley" not in METHODS


def test_pairs_of_ones_own_are_judged_in_their_template(tmp_path):
    EXAMPLE.to_csv(tmp_path / "own.csv", index=False)
    source = {"data": str(tmp_path / "own.csv"), "template": ("{premise2} {premise1} {question}",)}
    stages = Faithfulness(methods=("attention",)).stages(PromptSource(**source))
    for stage in stages:
        first = stage.prompts[0]
        assert first.text.index(first.segment_text("premise2")) == 0
        assert "\n" not in first.text

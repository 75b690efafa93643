"""Scores of other tools beside the methods: verdicts, numbers and folders."""

import json
import re

import numpy as np
import pandas as pd
import pytest

import interp
from interp.cli import main
from interp.judging import ranking, read_scores
from interp.judging.study import Faithfulness
from interp.prompts.files import write_table

METHODS = ("input_gradient", "input_x_gradient", "leave_one_out:donor")
FEW, CHOSEN = 5, ("metrics", "verdicts", "shares", "share_distances", "deciding")


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Scores of our own methods given back as files: whole, shuffled, and of a few prompts."""
    folder = tmp_path_factory.mktemp("given")
    model = interp.load_model("organism/phi3-shallow", device="cpu")
    prompts = interp.load_prompts("rulebreakers", limit=12)
    options = {"methods": METHODS, "target": "margin"}
    found = interp.attribute(model, prompts, keep_tokens=True, **options)
    texts = {prompt.id: prompt.text for prompt in prompts}
    segments = found.table("segment_scores")
    segments = segments.assign(prompt=segments["prompt_id"].map(texts))
    segments = segments.set_index("method")[["prompt", "segment", "score"]]
    tokens = found.table("token_scores").merge(found.table("tokens"))
    tokens = tokens.rename(columns={"prompt_id": "prompt"})
    tokens = tokens.set_index("method")[["prompt", "token", "score"]]
    gradient = segments.loc["input_gradient"]
    mixed = np.random.default_rng(0).permutation(gradient["score"])
    write_table(tokens.loc["input_x_gradient"], folder / "tokens.csv")
    few = gradient[gradient["prompt"].isin(list(texts.values())[:FEW])]
    most = gradient[~gradient["prompt"].isin(list(texts.values())[:2])]
    scores = {
        "by_segment": gradient,
        "by_token": folder / "tokens.csv",
        "by_donor": segments.loc["leave_one_out:donor"],
        "shuffled": gradient.assign(score=mixed),
        "few": few,
        "most": most,
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranking, "RESAMPLES", 19)
        return interp.faithfulness(
            model, prompts, scores=scores, out=folder / "study", reinitialized=False,
            methods=METHODS,
        )  # fmt: skip


def lines_of(study, table, method):
    """The rows of a table about a method as they are written, without its name."""
    text = (study.folder / "tables" / f"{table}.csv").read_text()
    return [line.replace(method, "") for line in text.splitlines() if f",{method}," in f",{line},"]


@pytest.mark.slow
@pytest.mark.parametrize("table", CHOSEN)
def test_our_own_scores_given_back_get_the_numbers_of_our_own_rows(study, table):
    own = lines_of(study, table, "input_x_gradient")
    assert own and lines_of(study, table, "by_token") == own
    summed = [line for line in lines_of(study, table, "input_gradient") if ",mean," not in line]
    assert lines_of(study, table, "by_segment") == summed


@pytest.mark.slow
def test_scores_from_donors_get_the_same_numbers_in_the_league_of_the_model(study):
    rows = study.table("verdicts").set_index("method")
    columns = ["value", "low", "high", "chance", "prompts", "clusters"]
    assert rows.loc["by_donor", columns].equals(rows.loc["leave_one_out:donor", columns])
    assert rows.loc["by_donor", "league"] == "model"


@pytest.mark.slow
def test_shuffled_scores_lose_their_verdict(study):
    rows = study.table("verdicts").set_index(["method", "score"])
    assert rows.loc[("by_segment", "sum"), "verdict"] == "trust"
    assert rows.loc[("shuffled", "sum"), "verdict"] == "refuted"
    distances = study.table("share_distances").set_index("contender")["distance"]
    assert distances["shuffled"] > 2 * distances["by_segment"]


@pytest.mark.slow
def test_scores_of_some_prompts_are_judged_on_these_alone(study):
    rows = study.table("verdicts").set_index(["method", "score"])
    assert rows["prompts"].drop(["few", "most"], level="method").eq(24).all()
    assert rows.loc[("few", "sum"), ["prompts", "verdict"]].tolist() == [FEW, "not tested"]
    assert rows.loc[("most", "sum"), "prompts"] == 22
    assert rows.loc[("most", "sum"), "verdict"] == "trust"
    # By hand, from the measured effects and the scores of our own method.
    effects = study.runs["effects"].table("segment_effects")
    effects = effects[effects["other_segment"].isna() & (effects["donor_kind"] == "instance")]
    true = effects.pivot(index="prompt_id", columns="segment", values="shapley").abs()
    scores = study.runs["given"].table("segment_scores")
    scores = scores[scores["method"] == "most"]
    scores = scores.pivot(index="prompt_id", columns="segment", values="score").abs()
    assert len(scores) == 22
    true = true.loc[scores.index]
    same = (scores["premise1"] > scores["premise2"]) == (true["premise1"] > true["premise2"])
    weights = study.runs["effects"].table("prompts").set_index("prompt_id")["weight"]
    expected = np.average(same, weights=weights[scores.index])
    metrics = study.table("metrics").set_index(["metric", "method", "score"])
    assert metrics.loc[("top_segment", "most", "sum"), "value"] == pytest.approx(expected)
    page = (study.folder / "report.html").read_text()
    assert re.search(rf"\bfew has scores for {FEW} of 24 judged prompts", page)
    assert re.search(rf"not tested \(n = {FEW}\)", page)
    assert re.search(r"\bmost has scores for 22 of 24 judged prompts", page)
    assert not re.search(r"\bshuffled has scores for", page)


@pytest.mark.slow
def test_the_browser_shows_scores_of_files_as_those_of_methods(study):
    browser = Faithfulness().report(study).browser
    bars = {
        (panel.of["method"], pair): {
            side: {name: share for name, share in segments if name != "template"}
            for side, segments in panel.groups.items()
        }
        for pair, panel in browser.panels(browser.prompts)
        if panel.title == "Shares of segments"
    }
    pairs = browser.prompts["pair_id"].unique()
    for given, method in (("by_segment", METHODS[0]), ("by_token", METHODS[1])):
        for pair in pairs:
            for side, shares in bars[method, pair].items():
                assert bars[given, pair][side] == pytest.approx(shares, rel=1e-5)
    assert {pair for name, pair in bars if name == "few"} == {*pairs[:3]}
    assert [own for own in browser.numbers if own.of.get("method") == "shuffled"]


@pytest.mark.slow
def test_a_study_resumes_with_the_same_scores_alone(tmp_path, capsys):
    prompts = interp.load_prompts("rulebreakers", limit=2)
    rows = [
        {"prompt": own.text, "segment": name, "score": place + 1, "model": model}
        for model in ("organism/phi3-shallow", "org/other")
        for own in prompts
        for place, name in enumerate(own.segments)
    ]
    mine, other = tmp_path / "mine.jsonl", tmp_path / "other.csv"
    write_table(pd.DataFrame(rows), mine)
    write_table(pd.DataFrame(rows[len(rows) // 2 :]), other)
    folder = tmp_path / "study"
    command = ["faithfulness", "--model", "organism/phi3-shallow", "--device", "cpu"]
    command += ["--limit", "2", "--methods", "input_gradient", "--no-reinitialized"]
    command += ["--out", str(folder), "--scores", f"mine={mine}", "--scores", f"other={other}"]
    assert main(command) == 0
    said = capsys.readouterr().out
    assert re.search(r"\bother has scores for 0 of 4 judged prompts", " ".join(said.split()))
    assert "mine has scores for" not in said
    found = pd.read_csv(folder / "tables" / "verdicts.csv")
    assert set(found["method"]) == {"input_gradient", "mine"}
    files = json.loads((folder / "study.json").read_text())["options"]["scores"]
    assert set(files) == {"mine", "other"}
    before = (folder / "tables" / "metrics.csv").read_bytes()
    mine.rename(tmp_path / "moved.jsonl")
    command[-3] = f"mine={tmp_path}/moved.jsonl"
    assert main(command) == 0
    # The page needs no file; another file is another study.
    (tmp_path / "moved.jsonl").rename(mine)
    assert main(["report", str(folder)]) == 0
    assert (folder / "tables" / "metrics.csv").read_bytes() == before
    assert main(["validate", str(folder)]) == 0
    write_table(pd.DataFrame(rows).assign(score=1), mine)
    command[-3] = f"mine={mine}"
    assert main(command) == 2
    assert "different study" in capsys.readouterr().err


@pytest.mark.slow
def test_folders_whose_rows_name_several_targets_are_reported_like_others(tmp_path, monkeypatch):
    """As those of earlier releases do."""
    model = interp.load_model("organism/phi3-shallow", device="cpu")
    prompts = interp.load_prompts("rulebreakers", limit=1)
    rows = [
        {"prompt": own.text, "segment": name, "score": place - 0.5, "target": target}
        for target in ("gold", "margin")
        for own in prompts
        for place, name in enumerate(own.segments)
    ]
    options = {"scores": {"mine": pd.DataFrame(rows)}, "methods": ("input_gradient",)}
    options["reinitialized"] = False
    plain = interp.faithfulness(model, prompts, out=tmp_path / "plain", **options)

    def with_targets(*given):
        return {
            prompt: [row | {"target": row["method"].partition(":")[2]} for row in rows]
            for prompt, rows in read(*given).items()
        }

    read = read_scores.read_scores
    monkeypatch.setattr(read_scores, "read_scores", with_targets)
    older = interp.faithfulness(model, prompts, out=tmp_path / "older", **options)
    assert set(older.runs["given"].table("segment_scores")["target"]) == {"gold", "margin"}
    found = older.table("metrics")
    assert {"mine:gold", "mine:margin"} <= set(found["method"])
    assert found.equals(plain.table("metrics"))


@pytest.mark.slow
def test_other_prompts_are_another_study(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = interp.load_model("organism/phi3-shallow", device="cpu")
    options = {"methods": ("input_gradient",), "reinitialized": False}
    made = [
        interp.faithfulness(model, interp.load_prompts(limit=limit), **options).folder.resolve()
        for limit in (1, 2, 2)
    ]
    assert made[0] != made[1] == made[2] and made[0].parent == tmp_path / "runs"


@pytest.mark.usefixtures("unchecked_types")
def test_what_is_no_scores_is_refused():
    prompts = interp.load_prompts("rulebreakers", limit=1)
    for scores, said in (
        ([1], "scores is .1."),
        ({"mine": 3}, "scores are 3"),
        ({"mine": pd.DataFrame({"score": [1, "x"]})}, "cannot read scores"),
        ({"mine": pd.DataFrame({"score": [1j]})}, "cannot read scores"),
        ({"mine": pd.DataFrame({"score": [2**64]}, dtype=object)}, "cannot read scores"),
        ({"mine": pd.DataFrame({"score": [1.0]})}, "lacks the columns prompt"),
        ({"mine": "nowhere.csv"}, r"mine are in nowhere\.csv"),
    ):
        with pytest.raises(interp.UserError, match=said):
            interp.faithfulness("organism/phi3-shallow", prompts, scores=scores)

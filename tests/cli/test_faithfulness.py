"""`interp faithfulness` from the command line to its page, resumed and refused."""

import json

import pandas as pd
import pytest

from interp.analysis.faithfulness import ranking
from interp.cli import main
from interp.studies.faithfulness.study import METHODS, Faithfulness

METHODS_ASKED = ["input_gradient", "input_x_gradient", "leave_one_out:donor", "captum:kernel_shap"]


@pytest.fixture(autouse=True)
def few_draws(monkeypatch):
    monkeypatch.setattr(ranking, "RESAMPLES", 19)


def command(folder, *more):
    chosen = ["--model", "organism/phi3-shallow", "--device", "cpu", "--methods", *METHODS_ASKED]
    return ["faithfulness", *chosen, "--limit", "5", "--out", str(folder), *more]


def test_methods_are_ranked_on_a_page_and_in_words(tmp_path, capsys):
    folder = tmp_path / "faith"
    assert main(command(folder)) == 0
    said = capsys.readouterr()
    assert "organism/phi3-shallow: judged on 10 prompts" in said.out
    assert "leave_one_out:donor 1.00" in said.out
    # Of random weights' answers nothing is said.
    assert "no answer option" not in said.err
    assert (folder / "report.html").exists()
    metrics = pd.read_csv(folder / "tables" / "metrics.csv")
    values = metrics.set_index(["metric", "method", "score"])["value"]
    assert values["top_segment", "oracle", "control"] == 1
    # Of two segments that do not interact much, those who read the same values agree.
    assert values["share_rho", "captum:kernel_shap", "sum"] > 0.9
    gained = values["pi_soft"]
    assert gained["oracle", "control"] > gained["random", "control"] == 0
    assert gained["reversed", "control"] < 0 < gained["input_gradient", "sum"]
    # It was taught to read premise 1.
    shares = pd.read_csv(folder / "tables" / "shares.csv")
    assert (shares["exact_share"] < 0.15).all()
    anew = pd.read_csv(folder / "tables" / "reinitialized.csv")
    assert set(anew["method"]) == {"input_gradient", "input_x_gradient"}
    for name in ("methods_by_metrics_1", "shares_by_method"):
        assert (folder / "figures" / f"{name}.png").stat().st_size > 10_000
    # A second call finds nothing to measure, and changes no table.
    before = (folder / "tables" / "metrics.csv").read_bytes()
    assert main(command(folder)) == 0
    assert (folder / "tables" / "metrics.csv").read_bytes() == before
    record = json.loads((folder / "study.json").read_text())
    assert record["stages"] == ["effects", "scores", "reinitialized"]


def test_what_cannot_be_judged_is_refused(capsys):
    assert main(["faithfulness", "--system", "robustlr", "--limit", "1"]) == 2
    assert "no packaged organism" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["faithfulness", "--methods", "none"])
    assert "unknown method 'none'" in capsys.readouterr().err


def test_all_methods_are_at_least_twelve():
    assert Faithfulness(methods="all").methods == METHODS
    assert len(set(METHODS)) >= 12
    assert "shapley" not in METHODS

"""Agreement of the rankings of methods: by hand, of unlike models, and from studies."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import spearmanr

from benchmarks.verdicts import Judged, agreement_table, main, read_judged, value_table
from interp.cli import main as interp_main
from interp.errors import UserError
from interp.judging import ranking
from interp.runs.folder import RunFolder

NAMES = ("a", "b", "c", "d")


def judged(means, *, model="m", clusters=40, noise=0.0):
    """A model on which each method finds the top segment in about its share of the clusters."""
    chance = np.random.default_rng(0)
    drawn = np.asarray(means)[:, None] + noise * chance.standard_normal((len(means), clusters))
    names = tuple(str(number) for number in range(clusters))
    return Judged(model, NAMES[: len(means)], drawn, names, np.ones(clusters))


def test_rankings_that_agree_differ_or_are_turned():
    one = judged([0.1, 0.4, 0.6, 0.9])
    others = [
        judged([0.2, 0.5, 0.7, 0.8], model="alike"),
        judged([0.2, 0.7, 0.5, 0.8], model="exchanged"),
        judged([0.9, 0.6, 0.4, 0.1], model="turned"),
        judged([0.5] * 4, model="constant"),
    ]
    rows = agreement_table([one], others).set_index("other")
    assert rows["kendall"].tolist()[:3] == pytest.approx([1, 4 / 6, -1])
    assert rows["spearman"].tolist()[:3] == pytest.approx([1, 0.8, -1])
    assert rows.loc["constant", ["kendall", "spearman"]].isna().all()
    # Clusters that do not differ leave nothing to draw.
    for name in ("alike", "exchanged", "turned"):
        assert rows.loc[name, "kendall_low"] == rows.loc[name, "kendall_high"]
    with pytest.raises(UserError, match="2 methods"):
        agreement_table([judged([0.1, 0.2])], [judged([0.1, 0.2])])


def test_the_interval_is_that_of_the_clusters():
    one, other = judged([0.1, 0.4, 0.6, 0.9]), judged([0.5, 0.52, 0.48, 0.5], noise=0.3)
    (row,) = agreement_table([one], [other]).to_dict("records")
    assert row["kendall_low"] < -0.3
    assert row["kendall_high"] > 0.3


def test_prompts_of_a_cluster_are_drawn_together():
    values = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 1.0]])
    own = Judged("m", ("a", "b"), values, ("x", "y", "y"), np.ones(3))
    chance = np.random.default_rng(0)
    draws = {tuple(own.drawn(chance).round(6)) for _ in range(50)}
    assert draws == {(1.0, 0.0), (0.333333, 0.666667), (0.0, 1.0)}
    # Undefined prompts do not count.
    values = np.array([[1.0, np.nan], [0.0, np.nan]])
    own = Judged("m", ("a", "b"), values, ("x", "y"), np.ones(2))
    assert value_table([own]).to_dict("list") == {"method": ["a", "b"], "m": [1, 0]}


def test_studies_are_read_and_methods_of_only_one_left_out(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ranking, "RESAMPLES", 19)
    methods = ["input_gradient", "attention", "leave_one_out:donor"]
    for folder, own in (("one", [*methods, "input_x_gradient"]), ("other", methods)):
        arguments = ["--methods", *own, "--no-reinitialized", "--limit", "4", "--device", "cpu"]
        model = ["--model", "organism/dose-100"]
        assert (
            interp_main(["faithfulness", *model, *arguments, "--out", f"{tmp_path}/{folder}"]) == 0
        )
    one, other = (read_judged(tmp_path / name, "top_segment") for name in ("one", "other"))
    (row,) = agreement_table(one, other).to_dict("records")
    assert row["methods"] == 3
    assert row["kendall"] == pytest.approx(1)
    table = pd.read_csv(tmp_path / "other" / "tables" / "metrics.csv")
    own = table[(table["metric"] == "top_segment") & (table["score"] == "sum")]
    expected = dict(zip(own["method"], own["value"], strict=True))
    found = value_table(other).set_index("method")["organism/dose-100"].to_dict()
    assert found == pytest.approx(expected)
    capsys.readouterr()
    assert main([str(tmp_path / "one"), str(tmp_path / "other")]) == 0
    assert "leave_one_out:donor" in capsys.readouterr().out
    assert main([str(tmp_path / "one"), str(tmp_path / "other"), "--metric", "top"]) == 2
    assert "top_segment" in capsys.readouterr().err


def test_estimates_of_edges_are_ranked_by_their_correlation_with_exact_ones(tmp_path, capsys):
    methods = ["gradient", "integrated", "activations", "exact"]
    folder = tmp_path / "edges"
    model = ["--model", "organism/llama-shallow", "--device", "cpu"]
    limits = ["--limit", "2", "--sample", "8"]
    command = ["edges", *model, "--methods", *methods, *limits, "--out", str(folder)]
    assert interp_main(command) == 0
    (found,) = read_judged(folder, "top_segment")
    edges = RunFolder.read(folder).table("edges").assign(size=lambda rows: rows["effect"].abs())
    pair = edges["pair_id"].min()
    wide = edges[edges["pair_id"] == pair].pivot(
        index=["writer", "reader"], columns="method", values="size"
    )
    wide = wide.dropna()
    place = found.methods.index("integrated")
    assert spearmanr(wide["integrated"], wide["exact"]).statistic == pytest.approx(
        found.by_prompt[place, 0]
    )
    assert found.by_prompt.shape == (3, 2)
    capsys.readouterr()
    assert main([str(folder), str(folder)]) == 0
    assert "integrated" in capsys.readouterr().out
    without = [*command[:-1], str(tmp_path / "without")]
    without.remove("exact")
    without[without.index("--sample") : without.index("--sample") + 2] = []
    assert interp_main(without) == 0
    with pytest.raises(UserError, match="--methods exact"):
        read_judged(tmp_path / "without", "top_segment")

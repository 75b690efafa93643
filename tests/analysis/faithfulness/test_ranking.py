"""Judging methods on made-up games whose best method is known."""

import numpy as np
import pandas as pd
import pytest

from interp.analysis.faithfulness import ranking
from interp.analysis.faithfulness.ranking import (
    check_table,
    cluster_note,
    difference_table,
    judge,
    metric_table,
)
from interp.analysis.faithfulness.trials import CONTROL, Contender, Tables, donor_names, trials_of
from interp.analysis.faithfulness.verdicts import (
    REFUTED,
    TRUST,
    across_models,
    advice,
    of_random_weights,
    verdict_table,
)
from interp.choices import LENGTH, ORACLE, RANDOM, REVERSED

SEGMENTS = ["premise1", "premise2", "conclusion"]
KNOWS, GUESSES, KNOWS_TOO = "input_x_gradient", "input_gradient", "leave_one_out:donor"


def made_up(prompts=60, clusters=20, donors=4, seed=0):
    """Additive games: two methods score each segment by its effect, `GUESSES` by chance."""
    chance = np.random.default_rng(seed)
    scores, effects, values, rows = [], [], [], []
    for number in range(prompts):
        id_ = f"p{number}"
        own = chance.normal(size=3) * 2
        names = [f"d{place}" for place in chance.choice(10, size=donors, replace=False)]
        other = chance.normal(size=(donors, 3))
        games = [
            [sum((own - d)[i] for i in range(3) if c >> i & 1) for c in range(8)] for d in other
        ]
        phi = own - other.mean(0)
        for coalition in range(8):
            by_donor = [game[coalition] for game in games]
            values.append([id_, "instance", SEGMENTS, coalition, by_donor])
        effects += [[id_, "instance", name, names] for name in SEGMENTS]
        guess = chance.random(3)
        for method, found in ((KNOWS, phi), (GUESSES, guess), (KNOWS_TOO, phi)):
            scores += [[id_, method, name, 5, found[place]] for place, name in enumerate(SEGMENTS)]
        rows.append([id_, f"c{number % clusters}", 1.0, 0, 40, 80])
    return Tables(
        segment_scores=pd.DataFrame(
            scores, columns=["prompt_id", "method", "segment", "tokens", "score"]
        ),
        segment_effects=pd.DataFrame(
            effects, columns=["prompt_id", "donor_kind", "segment", "donor_names"]
        ),
        coalition_values=pd.DataFrame(
            values, columns=["prompt_id", "donor_kind", "segments", "coalition", "values"]
        ),
        prompts=pd.DataFrame(
            rows,
            columns=["prompt_id", "entity", "weight", *(f"{name}_start" for name in SEGMENTS)],
        ),
        cluster="entity",
        ratio=("premise2", "premise1"),
    )


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ranking, "RESAMPLES", 49)
        yield


@pytest.fixture(scope="module")
def judged(few_draws):
    tables = made_up()
    trials = trials_of(tables)
    return trials, judge(trials, len(donor_names(tables)))


@pytest.fixture(scope="module")
def tables(judged):
    trials, judgements = judged
    clusters = [name for own in trials for name in own.clusters]
    differences = difference_table(
        judgements, clusters, np.concatenate([t.weights for t in trials])
    )
    return metric_table(judgements), check_table(judgements), differences


def test_who_knows_the_effects_is_worth_what_the_oracle_is(tables):
    metrics, _, _ = tables
    values = metrics.set_index(["metric", "method", "score"])["value"]
    for metric in metrics["metric"].unique():
        found = values[metric, KNOWS, "sum"]
        assert found == pytest.approx(values[metric, ORACLE, CONTROL], nan_ok=True)
    assert values["top_segment", KNOWS, "sum"] == 1
    assert values["lds", KNOWS, "sum"] == pytest.approx(1, abs=0.01)
    assert values["sign", REVERSED, CONTROL] == 0
    assert values["top_segment", REVERSED, CONTROL] == 0
    assert values["top_segment", RANDOM, CONTROL] == pytest.approx(1 / 3)
    assert values["cpr_of_means", KNOWS, "sum"] > values["cpr_of_means", GUESSES, "sum"]
    # All segments have five tokens here.
    assert (KNOWS, "mean") in values["lds"].index
    # A method that scores segments alone has no mean of a token, and sizes have no sign.
    assert (KNOWS_TOO, "mean") not in values["lds"].index
    assert np.isnan(values["sign", GUESSES, "sum"])


def test_intervals_are_of_clusters_and_donors(tables):
    metrics, _, _ = tables
    rows = metrics[metrics["metric"] == "top_segment"].set_index(["method", "score"])
    guess = rows.loc[(GUESSES, "sum")]
    assert guess["low"] < guess["value"] < guess["high"]
    # 60 prompts with a hit in about a third: a standard error of about 0.06.
    assert 0.15 < guess["high"] - guess["low"] < 0.4
    assert (rows.loc[(ORACLE, CONTROL), ["low", "high"]] == 1).all()
    # Other donors would have other effects, which the scores of these donors do not know.
    knows = rows.loc[(KNOWS, "sum")]
    assert 0.5 < knows["low"] < knows["value"] == knows["high"] == 1
    assert (metrics["low"].isna() | (metrics["low"] <= metrics["value"])).all()
    assert (metrics["high"].isna() | (metrics["high"] >= metrics["value"])).all()


def test_the_best_method_and_those_that_tie(tables):
    _, _, differences = tables
    rows = differences[differences["metric"] == "top_segment"].set_index(["method", "score"])
    assert set(rows["best"]) == {KNOWS}
    worse = rows.loc[(GUESSES, "sum")]
    assert worse["difference"] > 0.4
    assert worse["low"] > 0
    assert worse["p_holm"] < 0.01
    assert not worse["ties"]
    assert rows.loc[(KNOWS, "mean"), "ties"]


def test_verdicts_and_advice(tables):
    metrics, checks, differences = tables
    table = verdict_table(metrics, checks, differences)
    verdicts = table.set_index(["method", "score"])["verdict"]
    assert verdicts[KNOWS, "sum"] == TRUST
    assert verdicts[GUESSES, "sum"] == REFUTED
    text = advice("m", "60 prompts", table, metrics)
    assert f"trust {KNOWS} 1.00 [0." in text
    assert f"Refuted, since no better than chance and worse than the best: {GUESSES}" in text
    assert "Beware" not in text
    long = metrics.assign(low=metrics["low"].mask(metrics["method"] == LENGTH, 0.6))
    assert "is above a random order too (length" in advice("m", "p", table, long)
    assert of_random_weights(table, metrics.iloc[:0]) == ""
    own = metrics[(metrics["metric"] == "top_segment") & (metrics["score"] == "sum")]
    warning = of_random_weights(table, own)
    assert f"may read the prompt and not the model: {KNOWS} 1.00" in warning
    # Of one that is refuted nothing more is to be said.
    assert GUESSES not in warning
    assert text.index(KNOWS_TOO) > text.index("as the truth itself does")


def test_several_models_are_summed_up_by_where_a_method_does_worst(tables):
    metrics, _, _ = tables
    worst = metrics[metrics["metric"] == "top_segment"].assign(model="m")
    text = across_models(worst, undefined=[])
    assert text.startswith("Over all models, by the top segment: Above a random order on every")
    assert f"{KNOWS} 1.00 (m)" in text
    assert GUESSES not in text
    assert text.index(KNOWS_TOO) > text.index("Of those that read donors' prompts, at worst:")
    text = across_models(worst.assign(low=0.0), undefined=["m"])
    assert "No method that reads the model alone is above a random order on every model" in text
    assert f"the least {GUESSES}" in text
    assert text.startswith("Over all models but m, where it is undefined, by the top segment: No")
    assert across_models(worst.iloc[:0], undefined=[]) == ""


def test_a_metric_that_does_not_rank_what_is_known_is_not_used(tables):
    _, checks, _ = tables
    used = checks.set_index("metric")["used"]
    assert used[["top_segment", "lds", "morf_lerf", "cpr_of_means"]].all()
    # Nothing is planted.
    assert not used["planted"]
    assert checks.set_index("metric").loc["planted", "problem"] == "undefined"
    own = made_up(prompts=20, clusters=5)
    scores = own.segment_scores
    # Where all methods say the opposite, the middle one is below a random order.
    worse = scores.assign(score=-scores["score"]).replace({GUESSES: "gim"})
    turned = trials_of(Tables(**{**vars(own), "segment_scores": worse}))
    assert "is not above a random order" in check_table(judge(turned, 10))["problem"][4]


def test_no_verdict_without_a_metric_that_can_be_used(tables):
    metrics, checks, differences = tables
    nothing = verdict_table(metrics, checks.assign(used=False), differences)
    assert nothing.empty
    assert "no advice" in advice("m", "60 prompts", nothing, metrics)


def test_too_few_clusters_have_no_intervals():
    tables = made_up(prompts=20, clusters=5)
    trials = trials_of(tables)
    assert "5 clusters, at least 10 needed" in cluster_note(trials)
    found = metric_table(judge(trials, len(donor_names(tables))))
    assert found[["low", "high"]].isna().all(axis=None)
    assert found["value"].notna().any()


def test_a_prompt_without_a_score_is_left_out_and_a_method_without_any():
    tables = made_up(prompts=12)
    scores = tables.segment_scores
    gone = (scores["prompt_id"] == "p3") & (scores["method"] == GUESSES)
    scores = scores.assign(score=scores["score"].mask(gone | (scores["method"] == KNOWS_TOO)))
    (trials,) = trials_of(Tables(**{**vars(tables), "segment_scores": scores}))
    assert len(trials.prompt_ids) == 11
    assert "p3" not in trials.prompt_ids
    methods = {contender.method for contender in trials.contenders}
    assert KNOWS_TOO not in methods
    assert Contender(GUESSES, "mean") in trials.contenders


def test_a_model_without_any_score_yet_has_nothing_to_judge():
    tables = made_up(prompts=2)
    none = tables.segment_scores.iloc[:0]
    assert trials_of(Tables(**{**vars(tables), "segment_scores": none})) == []


def test_planted_segments_are_hit_or_missed():
    tables = made_up(prompts=30, clusters=5)
    ids = tables.prompts["prompt_id"]
    planted = pd.Series(1.0, index=ids)
    (trials,) = trials_of(Tables(**{**vars(tables), "planted": planted}))
    judgements = judge([trials], len(donor_names(tables)))
    rows = metric_table(judgements).query("metric == 'planted'").set_index("method")
    # Hits are the prompts in which the second premise has the larger effect.
    shapley = np.abs(trials.judged().shapley)
    assert rows.loc[ORACLE, "value"] == pytest.approx((shapley[:, 1] > shapley[:, 0]).mean())
    assert rows.loc[RANDOM, "value"] == 0.5


def kept_softly(tables, seed=0):
    """Rows of the soft_keeping table, in which `KNOWS` gains 2 logits and the oracle 3."""
    chance = np.random.default_rng(seed)
    gains = {KNOWS: 2.0, GUESSES: 0.0, KNOWS_TOO: 1.0, ORACLE: 3.0, REVERSED: -3.0}
    rows = []
    for id_ in tables.prompts["prompt_id"]:
        ramp = np.linspace(-1, 1, 9) + chance.normal()
        for method, gain in {**gains, RANDOM: 0.0, LENGTH: 0.5, "position": 0.1}.items():
            noise = 0.0 if method in (RANDOM, ORACLE, REVERSED) else 0.3 * chance.normal()
            rows.append([id_, method, list(ramp + gain + noise), ""])
    return pd.DataFrame(rows, columns=["prompt_id", "method", "values", "error"])


def test_what_is_gained_by_keeping_tokens_softly():
    tables = made_up()
    rows = kept_softly(tables)
    (trials,) = trials_of(Tables(**{**vars(tables), "soft_keeping": rows}))
    judgements = judge([trials], len(donor_names(tables)))
    (own,) = [judged for judged in judgements if judged.metric.name == "pi_soft"]
    assert own.problem() == ""
    assert own.prompts == 60
    values = metric_table([own]).set_index(["method", "score"])
    # The same random numbers: what prompts differ in by themselves is gone.
    assert values.loc[(ORACLE, CONTROL), "value"] == pytest.approx(3)
    assert values.loc[(RANDOM, CONTROL), ["value", "low", "high"]].tolist() == [0, 0, 0]
    assert values.loc[(KNOWS, "sum"), "value"] == pytest.approx(2, abs=0.15)
    assert values.loc[(KNOWS, "sum"), "high"] - values.loc[(KNOWS, "sum"), "low"] < 0.3
    assert np.isnan(values.loc[(KNOWS, "mean"), "value"])
    differences = difference_table([own], trials.clusters, trials.weights)
    worse = differences.set_index("method").loc[GUESSES]
    assert worse["best"] == KNOWS
    assert worse["p_holm"] < 0.05
    # A prompt with an error is undefined.
    gone = rows.assign(error=rows["error"].mask(rows["prompt_id"] == "p3", "non-finite"))
    (trials,) = trials_of(Tables(**{**vars(tables), "soft_keeping": gone}))
    assert np.isnan(trials.soft[:, 3]).all()
    assert np.isfinite(trials.soft[0, :3]).all()
    nothing = rows.assign(error="non-finite")
    (trials,) = trials_of(Tables(**{**vars(tables), "soft_keeping": nothing}))
    assert np.isnan(trials.soft).all()


def test_without_masked_passes_their_metric_is_undefined(tables):
    metrics, checks, _ = tables
    assert metrics.loc[metrics["metric"] == "pi_soft", "value"].isna().all()
    assert checks.set_index("metric").loc["pi_soft", "problem"] == "undefined"


def test_donors_weigh_in_the_value():
    (trials,) = trials_of(made_up(prompts=1, donors=2))
    names = trials.donors[0]
    weights = np.zeros(names.max() + 1)
    weights[names] = [3.0, 1.0]
    expected = 0.75 * trials.by_donor[0, 0] + 0.25 * trials.by_donor[0, 1]
    np.testing.assert_allclose(trials.judged(weights).values[0], expected)
    assert np.isnan(trials.judged(np.zeros_like(weights)).values).all()

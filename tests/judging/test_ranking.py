"""Judging methods on made-up games whose best method is known."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from interp.choices import LENGTH, ORACLE, RANDOM, REVERSED
from interp.judging import ranking
from interp.judging.first_screen import first_screen
from interp.judging.metrics import LEAST_EFFECT, METRICS
from interp.judging.page import _wide, blanks, distances_of, verdict_matrix, worst_items
from interp.judging.ranking import check_table, difference_table, judge, metric_table
from interp.judging.results import ModelResults, _of_part, described, segments_of, shares_of
from interp.judging.trials import CONTROL, Contender, Tables, trials_of
from interp.judging.verdicts import REFUTED, TRUST, UNTESTED, at_worst, verdict_table
from interp.report.page import MOST_WORDS

SEGMENTS = ["premise1", "premise2", "conclusion"]
KNOWS, GUESSES, KNOWS_TOO = "input_x_gradient", "input_gradient", "leave_one_out:donor"

NONE = pd.DataFrame()


def made_up(prompts=60, clusters=20, donors=4, seed=0):
    """Additive games: two methods score each segment by its effect, `GUESSES` by chance."""
    chance = np.random.default_rng(seed)
    scores, values, rows = [], [], []
    for number in range(prompts):
        id_ = f"p{number}"
        own = chance.normal(size=3) * 2 + 1
        other = chance.normal(size=(donors, 3))
        games = [
            [sum((own - d)[i] for i in range(3) if c >> i & 1) for c in range(8)] for d in other
        ]
        phi = own - other.mean(0)
        for coalition in range(8):
            by_donor = [game[coalition] for game in games]
            values.append([id_, "instance", SEGMENTS, coalition, by_donor])
        guess = chance.random(3)
        for method, found in ((KNOWS, phi), (GUESSES, guess), (KNOWS_TOO, phi)):
            scores += [[id_, method, name, 5, found[place]] for place, name in enumerate(SEGMENTS)]
        rows.append([id_, f"c{number % clusters}", 1.0, 0, 40, 80])
    starts = [f"{name}_start" for name in SEGMENTS]
    named = (
        (scores, ["prompt_id", "method", "segment", "tokens", "score"]),
        (values, ["prompt_id", "donor_kind", "segments", "coalition", "values"]),
        (rows, ["prompt_id", "entity", "weight", *starts]),
    )
    frames = (pd.DataFrame(cells, columns=columns) for cells, columns in named)
    return Tables(*frames, cluster="entity", ratio=("premise2", "premise1"))


@pytest.fixture(scope="module", autouse=True)
def few_draws():
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(ranking, "RESAMPLES", 49)
        yield


@pytest.fixture(scope="module")
def judged(few_draws):
    trials = trials_of(made_up())
    return trials, judge(trials)


@pytest.fixture(scope="module")
def tables(judged):
    _, judgements = judged
    return metric_table(judgements), check_table(judgements), difference_table(judgements)


@pytest.fixture
def metrics(tables):
    return tables[0]


def test_who_knows_the_effects_is_worth_what_the_oracle_is(metrics):
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


def test_intervals_hold_for_all_contenders_but_those_that_are_known(metrics):
    rows = metrics[metrics["metric"] == "top_segment"].set_index(["method", "score"])
    guess = rows.loc[(GUESSES, "sum")]
    assert guess["low"] < guess["value"] < guess["high"]
    # 60 prompts with a hit in about a third: a standard error of about 0.06.
    assert 0.2 < guess["high"] - guess["low"] < 0.5
    assert rows.loc[[ORACLE, REVERSED, RANDOM], ["low", "high"]].isna().all(axis=None)
    # Right in 60 of 60 prompts of 20 clusters is not right for certain.
    knows = rows.loc[(KNOWS, "sum")]
    assert 0.6 < knows["low"] < 0.95 < knows["value"] == knows["high"] == 1
    assert (metrics["low"].isna() | (metrics["low"] <= metrics["value"])).all()
    assert (metrics["high"].isna() | (metrics["high"] >= metrics["value"])).all()


def test_the_best_method_and_those_that_may_be_it(tables):
    _, _, differences = tables
    rows = differences[differences["metric"] == "top_segment"].set_index(["method", "score"])
    assert set(rows["best"]) == {KNOWS}
    assert set(rows["methods"]) == {4}
    worse = rows.loc[(GUESSES, "sum")]
    assert worse["difference"] > 0.4
    assert worse["low"] > 0
    assert worse["p"] < 0.01
    assert not worse["may_be_best"]
    assert rows.loc[[(KNOWS, "sum"), (KNOWS, "mean")], "may_be_best"].all()
    # These two are right in every prompt: nothing is known of how they differ.
    assert np.isnan(rows.loc[(KNOWS, "mean"), "low"])
    assert rows["corrected"].between(0.98, 1).all()


def test_verdicts(tables):
    metrics, checks, differences = tables
    table = verdict_table(metrics, checks, differences)
    verdicts = table.set_index(["method", "score"])["verdict"]
    assert verdicts[KNOWS, "sum"] == TRUST
    assert verdicts[GUESSES, "sum"] == REFUTED
    assert table["may_be_best"].tolist() == [True, True, True, False, False]
    wide = verdict_matrix(pd.concat([table.assign(model="m"), table.assign(model="n")]))
    assert wide.columns.tolist() == ["method", "league", "m", "n"]
    assert wide["league"].tolist() == ["model", "model", "coalitions", "model", "model"]
    shown = wide.set_index("method")["n"]
    assert shown[KNOWS].startswith("1.00 [0.") and shown[KNOWS].endswith("1.00] trust")
    assert shown[GUESSES].endswith(" refuted")
    assert verdict_table(metrics, checks.assign(used=False), differences).empty


def of_two_models(metrics, **changed):
    """The top segment on two models; on the second, some contenders have other ends."""
    one = metrics[metrics["metric"] == "top_segment"].assign(model="m")
    return pd.concat([one, one.assign(model="n", **changed)], ignore_index=True)


def results_of(model, trials):
    """The results of a model without random weights."""
    judgements = judge(trials)
    tables = metric_table(judgements), check_table(judgements), difference_table(judgements)
    return ModelResults(model, tuple(trials), *tables, verdict_table(*tables), NONE, "")


def screen(judged, metrics, random_weights=NONE):
    """The first screen of two models that have the same trials."""
    trials, judgements = judged
    checks = check_table(judgements)
    results = [
        ModelResults(model, tuple(trials), metrics, checks, NONE, NONE, random_weights, "")
        for model in metrics["model"].unique()
    ]
    return first_screen(results, metrics, random_weights)


def test_the_first_screen_names_the_best_of_each_league_at_its_worst(judged, metrics):
    first = screen(judged, of_two_models(metrics))
    model, donors = first.sentences
    assert re.match(rf"2 of 4 .*: {KNOWS}, 1\.00 \[0\.", model)
    assert model.endswith("; n = 20 clusters.")
    assert re.match(r"1 of 1 .*donors", donors)
    numbers = first.items[0].frame.set_index(["model", "number"])
    best = numbers.loc[("n", "best that uses only the model")]
    assert (best["label"], best["value"], best["n"]) == (KNOWS, 1.0, 20)
    assert numbers.loc[("m", "random order"), "value"] == pytest.approx(1 / 3)
    assert numbers.loc[("m", "best control"), "label"] in (LENGTH, "position")
    assert max(len(line.split()) for line in first.sentences) <= MOST_WORDS
    # What is above chance on one model only is not above chance on every model.
    first = screen(judged, of_two_models(metrics, low=0.0))
    assert first.sentences[0].startswith("0 of 4 ")
    assert re.match(r"0 of 1 .*donors", first.sentences[1])


def test_none_of_several_equal_methods_is_called_the_best(judged, metrics):
    chance = metrics["value"].where(metrics["method"] == RANDOM, 1.0)
    rows = metrics.assign(value=chance, low=np.nan, high=np.nan)
    table, figure = screen(judged, of_two_models(rows).query("model == 'm'")).items
    one = screen(judged, of_two_models(metrics).query("model == 'm'")).sentences
    assert one and "every" not in " ".join(one)
    label = table.frame.set_index("number")["label"]
    assert label["best control"] == label["best that uses only the model"] == "2 alike:"
    assert label["random order"] == "" and "95%" not in figure.note


@pytest.mark.parametrize(("clusters", "untested"), [(9, 1), (10, 0)])
def test_ten_clusters_are_the_fewest_that_are_tested(clusters, untested):
    trials = trials_of(made_up(prompts=20, clusters=clusters))
    judged = trials, judge(trials)
    first = screen(judged, metric_table(judged[1]).assign(model="m"))
    assert sum(f"n = {clusters} clusters" in own for own in first.sentences[:1]) == 1
    assert sum("but 10 are needed" in own for own in first.sentences) == untested


def test_a_metric_that_ranks_the_oracle_below_its_reverse_is_void():
    own = made_up()
    opposite = own.coalition_values["values"].map(lambda values: [-value for value in values])
    values = own.coalition_values.assign(values=opposite)
    judgements = judge(trials_of(replace(own, coalition_values=values)))
    checks, metrics = check_table(judgements), metric_table(judgements)
    void = checks.set_index("metric")["void"]
    ratios = {"nc", "ns", "cpr", "cpr_of_means", "cmd"}
    assert set(void.index[void]) == ratios == set(metrics.loc[metrics["void"], "metric"])
    notes = difference_table(judgements).set_index("metric")["note"]
    assert notes[sorted(ratios)].str.startswith("void").all()
    assert set(verdict_table(metrics, checks, NONE)["metric"]) == {"top_segment"}
    own = ModelResults("m", (), metrics, checks, NONE, NONE, NONE, "")
    wide = _wide(own).set_index("contender")
    assert (wide.loc[[KNOWS, GUESSES], sorted(ratios)] == "void").all(axis=None)
    assert "void" not in {*wide.loc[[ORACLE, REVERSED], "nc"], wide.loc[KNOWS, "lds"]}


def test_controls_and_random_weights_are_warned_of(judged, metrics):
    rows = of_two_models(metrics)
    rows["low"] = rows["low"].mask(rows["method"] == LENGTH, 0.9)
    random_weights = rows[rows["score"] == "sum"].query("model == 'm'")
    *_, control, again = screen(judged, rows, random_weights).sentences
    assert re.match(rf".*\b{LENGTH}\b.*chance", control)
    # Nothing more is said about methods that are not above chance.
    assert re.match(r".*random weights.*\b2\b.*\b3 scores.*chance", again)
    assert {len(line.split()) <= MOST_WORDS for line in (control, again)} == {True}
    assert set(at_worst(rows)["method"]) >= {ORACLE, LENGTH, KNOWS}


def test_a_model_whose_controls_are_ranked_wrongly_is_blank_with_its_reason(judged, metrics):
    trials, judgements = judged
    wrong = check_table(judgements).assign(problem="gim is above the oracle")
    rows = of_two_models(metrics)
    results = [
        ModelResults("m", tuple(trials), rows, wrong, NONE, NONE, NONE, ""),
        ModelResults("n", tuple(trials), rows, wrong.assign(problem=""), NONE, NONE, NONE, ""),
    ]
    first = first_screen(results, rows, NONE)
    assert re.match(r".*\b1 of 2 models.*top_segment.*controls", first.sentences[0])
    assert re.search(r"\bm: gim .*oracle", first.items[0].note)


def test_a_model_whose_top_segment_is_undefined_may_be_tested_by_another_metric(judged):
    trials, _ = judged
    own = made_up()
    small = [[value / 1e4 for value in row] for row in own.coalition_values["values"]]
    weak = trials_of(replace(own, coalition_values=own.coalition_values.assign(values=small)))
    results = [results_of(name, found) for name, found in (("strong", trials), ("weak", weak))]
    metrics = pd.concat([own.metrics.assign(model=own.model) for own in results])
    undefined, *others = first_screen(results, metrics, NONE).sentences
    assert re.match(r"On 1 of 2 models, .*\b0\.1 logits.*top_segment", undefined)
    assert not [line for line in others if "Nothing" in line or "controls" in line]


def test_the_prompts_counted_are_those_in_which_the_metric_is_defined():
    own = made_up()
    rows = zip(own.coalition_values["prompt_id"], own.coalition_values["values"], strict=True)
    values = [[0.0] * 4 if id_ == "p3" else by_donor for id_, by_donor in rows]
    trials = trials_of(replace(own, coalition_values=own.coalition_values.assign(values=values)))
    top, *_ = judge(trials)
    told = "59 of 60 prompts (1 without an effect of at least 0.1 logits) from 20 clusters (entity)"
    assert described(top, "entity", 60) == told
    assert re.match(
        r"59 of 62 prompts \(1 .*effect.*\b0\.1 logits, 2 .*score\)",
        described(top, "entity", 62),
    )
    named = re.findall(r"premise \d|\w+$", segments_of([results_of("m", trials)]))
    assert named == ["premise 1", "premise 2", "conclusion"]


def test_where_nothing_was_tested_that_is_said_first_and_no_method_is_judged():
    trials = trials_of(made_up(prompts=20, clusters=5))
    judgements = judge(trials)
    metrics, checks = metric_table(judgements), check_table(judgements)
    assert metrics[["low", "high"]].isna().all(axis=None)
    assert metrics["value"].notna().any()
    differences = difference_table(judgements)
    assert differences[["p", "corrected", "low", "high"]].isna().all(axis=None)
    notes = differences.set_index("metric")["note"]
    assert re.match(r"not tested: 5 clusters; .*\b10\b", notes["top_segment"].iloc[0])
    verdicts = verdict_table(metrics, checks, differences)
    assert (verdicts["verdict"] == UNTESTED).all()
    assert differences["may_be_best"].isna().all() and verdicts["may_be_best"].isna().all()
    first = screen((trials, judgements), of_two_models(metrics))
    (only,) = first.sentences
    assert "any model" in only and "n = 5 clusters" in only
    assert f"{KNOWS} 1.00" in first.items[0].on_page.iloc[0, 1]


def test_a_metric_that_does_not_rank_what_is_known_is_not_used(tables):
    _, checks, _ = tables
    used = checks.set_index("metric")["used"]
    assert used[["top_segment", "lds", "morf_lerf", "cpr_of_means"]].all()
    # Nothing is planted.
    assert not used["planted"]
    problem = checks.set_index("metric").loc["planted", "problem"]
    assert re.match(r"undefined: .*segment", problem)
    own = made_up(prompts=20, clusters=5)
    scores = own.segment_scores
    # Where all methods say the opposite, the middle one is below a random order.
    worse = scores.assign(score=-scores["score"]).replace({GUESSES: "gim"})
    turned = trials_of(replace(own, segment_scores=worse))
    assert "random order" in check_table(judge(turned))["problem"][4]


def test_distances_from_the_exact_share_are_means_over_prompts(judged):
    trials, _ = judged
    shares = shares_of("m", trials)
    table = distances_of(shares).frame.set_index("contender")
    sums = shares[shares["score"] == "sum"]
    expected = (sums["share"] - sums["exact_share"]).abs().groupby(sums["method"]).mean()
    assert table.loc[[*expected.index], "distance"].to_dict() == pytest.approx(expected.to_dict())
    assert table.loc[KNOWS, "distance"] == pytest.approx(0, abs=1e-9)
    assert set(table["prompts"]) == {60} and set(table["clusters"]) == {20}


def test_what_is_undefined_is_blank_with_a_reason(metrics):
    rows = metrics.set_index(["metric", "method", "score"])["value"]
    # Nothing is planted, so a random order has no value either.
    assert rows["planted"].isna().all()
    assert rows["sign", RANDOM, CONTROL] == 0.5
    told = "sign needs scores with a sign, and an effect of at least 0.1 logits; planted needs a"
    assert blanks(metrics).startswith(told)
    own = made_up(prompts=20)
    two = own.coalition_values["segments"].map(lambda names: names[:2])
    values = own.coalition_values.assign(segments=two).query("coalition < 4")
    checks = check_table(judge(trials_of(replace(own, coalition_values=values))))
    problem = checks.set_index("metric").loc["tau", "problem"]
    assert re.match(r"undefined: .*segments", problem)


def test_a_prompt_without_a_score_is_left_out_and_a_method_without_any():
    tables = made_up(prompts=12)
    scores = tables.segment_scores
    gone = (scores["prompt_id"] == "p3") & (scores["method"] == GUESSES)
    scores = scores.assign(score=scores["score"].mask(gone | (scores["method"] == KNOWS_TOO)))
    (trials,) = trials_of(replace(tables, segment_scores=scores))
    assert len(trials.prompt_ids) == 11
    assert "p3" not in trials.prompt_ids
    methods = {contender.method for contender in trials.contenders}
    assert KNOWS_TOO not in methods
    assert Contender(GUESSES, "mean") in trials.contenders
    assert trials_of(replace(tables, segment_scores=tables.segment_scores.iloc[:0])) == []


def test_planted_segments_are_hit_or_missed_and_decide_whatever_the_effects():
    tables = made_up(prompts=30, clusters=5)
    ids = tables.prompts["prompt_id"]
    for planted in (0.0, 1.0):
        own = replace(tables, planted=pd.Series(planted, index=ids))
        (trials,) = trials_of(own)
        assert shares_of("m", [trials])["decides"].eq(planted).all()
    rows = metric_table(judge([trials])).query("metric == 'planted'").set_index("method")
    # Hits are the prompts in which the second premise has the larger effect.
    shapley = np.abs(trials.shapley)
    assert rows.loc[ORACLE, "value"] == pytest.approx((shapley[:, 1] > shapley[:, 0]).mean())
    assert rows.loc[RANDOM, "value"] == 0.5
    compared = metric_table(judge(trials_of(replace(own, ratio=None))))
    assert compared.query("metric == 'planted'")["value"].isna().all()


def test_prompts_whose_compared_effects_are_weak_have_no_exact_share(judged):
    ((trials,), _) = judged
    (metric,) = (own for own in METRICS if own.name == "share_rho")
    weak = replace(trials, values=trials.values * (LEAST_EFFECT / 99))
    assert np.isnan(metric.parts(weak)[1]).all()
    assert np.isfinite(metric.parts(trials)[1]).any()


def test_who_has_no_value_on_some_model_has_no_lowest_value(metrics):
    both = of_two_models(metrics)
    absent = (both["model"] == "n") & (both["method"] == KNOWS)
    found = at_worst(both.assign(value=both["value"].mask(absent)))
    assert KNOWS not in set(found["method"]) and GUESSES in set(found["method"])
    items = worst_items(both.assign(void=False))
    assert items[0].frame["model"].isin(["m", "n"]).all() and worst_items(both[:9]) == ()


def test_the_reversed_oracle_has_the_same_sizes_the_other_way_round(judged):
    ((trials,), _) = judged
    oracle, reversed_ = (
        trials.sizes[trials.contenders.index(Contender(name, CONTROL))]
        for name in (ORACLE, REVERSED)
    )
    np.testing.assert_allclose(oracle + reversed_, (oracle + reversed_)[:, :1].repeat(3, 1))
    np.testing.assert_allclose(reversed_.max(-1), oracle.max(-1))


@pytest.mark.parametrize(
    ("control", "value", "problem"),
    [(REVERSED, 0.5, "reversed oracle"), (ORACLE, 0.95, "above the oracle")],
)
def test_metrics_that_rank_known_controls_wrongly_are_not_used(judged, control, value, problem):
    (judgement,) = (own for own in judged[1] if own.metric.name == "top_segment")
    assert judgement.problem() == ""
    values = judgement.values.copy()
    values[judgement.contenders.index(Contender(control, CONTROL))] = value
    assert problem in replace(judgement, values=values).problem()


def test_scores_of_some_prompts_are_untested_by_a_metric_that_is_unfit_there(tables):
    _, checks, _ = tables
    by_lds, own = checks.assign(used=checks["metric"] == "lds"), made_up()
    worse = own.segment_scores.assign(score=-own.segment_scores["score"])
    turned = replace(own, segment_scores=worse.replace({GUESSES: "gim"}))
    found = [_of_part(KNOWS, trials_of(part), by_lds)[-1]["verdict"] for part in (own, turned)]
    assert TRUST in set(found[0])
    assert set(found[1]) == {UNTESTED}


def test_values_are_means_over_donors_of_other_instances_alone():
    tables = made_up(prompts=2, donors=3)
    values = tables.coalition_values
    deleted = values.assign(donor_kind="deletion", values=[[9.0]] * len(values))
    (trials,) = trials_of(replace(tables, coalition_values=pd.concat([values, deleted])))
    rows = values.set_index(["prompt_id", "coalition"])["values"]
    expected = [[np.mean(rows[name, place]) for place in range(8)] for name in ("p0", "p1")]
    np.testing.assert_allclose(trials.values, expected)


def cancelling(tables, prompts):
    """The same with effects of 3 and -2.8 in so many prompts, which sum to next to nothing."""
    names = [f"p{number}" for number in range(prompts)]
    game = [3.0 * (c & 1) - 2.8 * (c >> 1 & 1) for c in range(8)]
    rows = tables.coalition_values
    made = [
        [game[row.coalition]] * 4 if row.prompt_id in names else row.values_
        for row in rows.rename(columns={"values": "values_"}).itertuples()
    ]
    return replace(tables, coalition_values=rows.assign(values=made))


@pytest.mark.parametrize(
    ("prompts", "left_out"),
    [(1, {"nc", "ns", "cpr", "cmd"}), (60, {"nc", "ns", "cpr", "cmd", "cpr_of_means"})],
)
def test_ratios_with_next_to_nothing_below_are_not_used(prompts, left_out):
    judgements = judge(trials_of(cancelling(made_up(), prompts)))
    checks = check_table(judgements)
    rows = checks.set_index("metric")
    assert left_out <= set(rows.index[~rows["divisor"]])
    assert not rows.loc[list(left_out), "used"].any()
    assert re.search(r"tenth.*absolute effects", rows["problem"]["nc"])
    if prompts == 60:
        assert (
            rows["problem"]["cpr_of_means"]
            == "v(N) - v(0) is 0.20 on average, which is almost zero"
        )

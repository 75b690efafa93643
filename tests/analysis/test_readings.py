"""Readings of answers, checked by hand, by scikit-learn and by brute force."""

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import expit
from scipy.stats import t as student
from sklearn.metrics import accuracy_score, roc_auc_score
from statsmodels.stats.multitest import multipletests

from interp.analysis import reading_tables
from interp.analysis.constant import ALIKE
from interp.analysis.reading_tables import (
    ABOVE,
    CHANCE,
    CONSTANT,
    EQUAL,
    FORCED,
    FREE,
    MEDIAN,
    NO_MODEL,
    Sample,
    in_words,
    reading_table,
    readings_of,
)
from interp.analysis.readings import (
    content_free_choice,
    forced_choice,
    free_choice,
    left_out_medians,
    median_choice,
    scored_options,
)
from interp.analysis.told_apart import pair_order, part_rows, side_row
from interp.statistics.clusters import too_few
from interp.statistics.decisions import UNTESTED, out_of_reach
from interp.tables import TIE

MODEL = "m"


def data(shares, golds, *, names=("A", "B", "C"), phrasing=None, sides=2, outside=0.5):
    """Prompts in groups of `sides`, their answers, and options with these shares of half of 1."""
    shares, ids = np.asarray(shares, dtype=float), [f"p{n}" for n in range(len(golds))]
    places = np.arange(len(golds))
    prompts = pd.DataFrame(
        {
            "prompt_id": ids,
            "pair_id": [f"g{n}" for n in places // sides],
            "side": [f"s{n}" for n in places % sides],
            "gold": golds,
            "weight": 1.0,
            "phrasing": "p" if phrasing is None else phrasing,
        }
    )
    answer = [names[n] for n in shares.argmax(axis=1)]
    answers = pd.DataFrame({"model": MODEL, "prompt_id": ids, "answer": answer, "error": ""})
    answers["correct"] = (answers["answer"] == prompts["gold"]).astype(object)
    rows = [
        {
            "model": MODEL,
            "prompt_id": prompt,
            "option": name,
            "probability": outside * share,
            "relative_probability": share,
        }
        for prompt, row in zip(ids, shares, strict=True)
        for name, share in zip(names, row, strict=False)
    ]
    return prompts, answers, pd.DataFrame(rows)


def random_data(seed, *, options, groups, shift=1.0, phrasings=1):
    """Groups with one member for each correct option; a model that prefers the first option."""
    rng, count = np.random.default_rng(seed), options * groups
    golds = np.tile(np.arange(options), groups)
    logits = rng.normal(size=(count, options)) + np.arange(options)[::-1]
    logits[np.arange(count), golds] += shift
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    names = tuple("ABCD"[:options])
    phrasing = np.repeat(rng.integers(0, phrasings, groups).astype(str), options)
    return data(shares, [names[g] for g in golds], names=names, phrasing=phrasing, sides=options), (
        golds,
        shares,
    )


def read(sample, answers, options):
    """The table of the readings of one model."""
    readings = readings_of(sample, answers, options)
    return reading_table(sample, {(MODEL, name): own for name, own in readings.items()})


def test_a_forced_choice_ignores_what_the_model_would_write():
    prompts, answers, options = data([[0.9, 0.1], [0.4, 0.6]], ["A", "B"])
    answers = answers.assign(answer="", correct=False)  # another token is more probable
    readings = readings_of(Sample(prompts, options), answers, options)
    assert readings[FREE]["outside"].tolist() == [True, True]
    assert readings[FREE]["credit"].tolist() == [0, 0]
    assert readings[FORCED]["credit"].tolist() == [1, 1]


@pytest.mark.parametrize("options", [2, 3, 4])
def test_forced_accuracy_is_that_of_scikit_learn(options):
    (prompts, _, rows), (golds, shares) = random_data(0, options=options, groups=20)
    credit = forced_choice(scored_options(rows, prompts))["credit"]
    assert credit.mean() == pytest.approx(accuracy_score(golds, shares.argmax(axis=1)))


def test_tied_options_share_the_point():
    prompts, _, options = data([[0.4, 0.4, 0.2], [0.4, 0.4, 0.2], [1 / 3] * 3], ["A", "C", "B"])
    found = forced_choice(scored_options(options, prompts))
    assert found["credit"].tolist() == pytest.approx([1 / 2, 0, 1 / 3])
    assert found["tied"].all()
    prompts, _, options = data([[0.9, 0.1]], ["A"], outside=0.0, sides=1)  # too small to be stored
    assert forced_choice(scored_options(options, prompts))["credit"].tolist() == [1]


def test_ties_and_unjudged_prompts_in_the_free_reading():
    _, answers, _ = data([[0.5, 0.5]] * 3, ["A"] * 3)
    answers = answers.assign(answer=[TIE, "A", "A"], correct=[False, True, None])
    found = free_choice(answers)
    assert found["tied"].tolist() == [True, False]
    assert found["credit"].tolist() == [0, 1]


@given(
    st.lists(st.floats(-4, 4).map(lambda x: round(x, 1)), min_size=1, max_size=24),
    st.integers(1, 6),
    st.randoms(use_true_random=False),
)
def test_left_out_medians_by_brute_force(values, clusters, random):
    own = np.array([random.randrange(clusters) for _ in values])
    given_values = np.array(values)
    expected = [
        np.median(given_values[own != c]) if (own != c).sum() >= ALIKE else np.nan for c in own
    ]
    np.testing.assert_allclose(left_out_medians(given_values, own), expected)


def test_medians_uncover_what_a_bias_hides():
    """A model that always says A, but is surer where A is correct."""
    odds = np.tile([4.0, 2.0], 12)
    shares = np.column_stack([1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds))])
    prompts, answers, options = data(shares, ["A", "B"] * 12)
    sample = Sample(prompts, options)
    table = read(sample, answers, options).set_index("reading")
    assert table.loc[[FREE, FORCED, MEDIAN], "accuracy"].tolist() == [0.5, 0.5, 1.0]
    assert table.loc[[FREE, MEDIAN], "paired_accuracy"].tolist() == [0.0, 1.0]
    assert table.loc[[FREE, MEDIAN], "verdict"].tolist() == [EQUAL, ABOVE]
    assert table.loc[[CHANCE, CONSTANT], "accuracy"].tolist() == [0.5, 0.5]
    assert table.loc[[CHANCE, CONSTANT], "paired_accuracy"].tolist() == [0.25, 0.0]
    assert side_row(sample, options)["concordance"] == 1.0


def test_a_model_that_reads_nothing_gets_half_of_the_points_after_calibration():
    prompts, _, options = data([[0.1, 0.9]] * 12, ["A", "B"] * 6)
    found = median_choice(scored_options(options, prompts))
    assert found["credit"].eq(0.5).all()
    assert found["tied"].all()


def test_phrasings_have_their_own_medians():
    odds = np.array([3.0, 2.0, -2.0, -3.0] * 6)
    shares = np.column_stack([1 / (1 + np.exp(-odds)), 1 / (1 + np.exp(odds))])
    phrasing = ["x", "x", "y", "y"] * 6
    prompts, _, options = data(shares, ["A", "B"] * 12, phrasing=phrasing)
    assert median_choice(scored_options(options, prompts))["credit"].eq(1).all()
    without = scored_options(options, prompts.drop(columns="phrasing"))
    assert median_choice(without)["credit"].mean() == 0.5


def test_content_free_calibration_divides_shares_by_those_without_content():
    prompts, _, options = data([[0.8, 0.15, 0.05]] * 2, ["B", "C"])
    scored = scored_options(options, prompts)
    prior = pd.Series([0.9, 0.1, 0.05] * 2, scored.index)  # ratios 0.89, 1.5 and 1
    assert content_free_choice(scored, prior)["credit"].tolist() == [1, 0]
    assert content_free_choice(scored, prior.where(prior > 0.2))["credit"].isna().all()


@pytest.mark.parametrize("options", [2, 3, 4])
def test_the_area_is_the_mean_of_scikit_learns_over_options(options):
    (prompts, _, rows), (golds, shares) = random_data(1, options=options, groups=30)
    found = side_row(Sample(prompts, rows), rows)
    each = [roc_auc_score(golds == place, shares[:, place]) for place in range(options)]
    assert found["auroc"] == pytest.approx(np.mean(each))
    assert found["auroc_low"] < found["auroc"] < found["auroc_high"]


def test_areas_and_pairs_are_compared_within_phrasings():
    (prompts, _, rows), (golds, shares) = random_data(2, options=2, groups=40, phrasings=3)
    found = side_row(Sample(prompts, rows), rows)
    own = prompts["phrasing"].to_numpy()
    sizes = prompts["phrasing"].value_counts(normalize=True)
    area = sum(
        size * roc_auc_score(golds[own == name] == 0, shares[own == name, 0])
        for name, size in sizes.items()
    )
    assert found["auroc"] == pytest.approx(area)
    # Members of a group that differ in phrasing are not compared.
    apart = prompts.assign(phrasing=prompts["side"])
    assert pair_order(scored_options(rows, apart)).empty


@pytest.mark.parametrize("options", [2, 3])
def test_concordance_by_hand(options):
    (prompts, _, rows), (golds, shares) = random_data(3, options=options, groups=15)
    order = pair_order(scored_options(rows, prompts))["order"]
    expected = []
    for group in range(15):
        members = range(group * options, (group + 1) * options)
        expected.append(
            np.mean(
                [
                    np.log(shares[i, golds[i]] / shares[i, golds[j]])
                    > np.log(shares[j, golds[i]] / shares[j, golds[j]])
                    for i, j in itertools.combinations(members, 2)
                ]
            )
        )
    assert order.tolist() == pytest.approx(expected)


def test_the_p_of_concordance_is_that_of_signs():
    """Of 12 pairs, 10 are in order: as far or farther are 2 * (1 + 12 + 66) of 4,096 signs."""
    right, wrong = [[0.6, 0.4], [0.4, 0.6]], [[0.4, 0.6], [0.6, 0.4]]
    prompts, _, options = data([*right * 10, *wrong * 2], ["A", "B"] * 12)
    found = side_row(Sample(prompts, options), options)
    assert found["concordance"] == pytest.approx(10 / 12)
    assert found["p"] == pytest.approx(2 * 79 / 4096, abs=0.012)
    assert (found["low"], found["high"]) == (pytest.approx(0.55, abs=0.02), 1.0)


@pytest.mark.parametrize("fallen", [3, 4, 5, 6, 7, 9])
def test_a_loss_of_concordance_is_shown_if_and_only_if_its_interval_says_so(fallen):
    """Of 12 pairs in order, some are not without the premises."""
    right, wrong = [[0.6, 0.4], [0.4, 0.6]], [[0.4, 0.6], [0.6, 0.4]]
    prompts, _, whole = data(right * 12, ["A", "B"] * 12)
    *_, changed = data([*right * (12 - fallen), *wrong * fallen], ["A", "B"] * 12)
    changed = changed.assign(change="without", what="all premises")
    _, row = part_rows(Sample(prompts, whole), whole, changed)
    assert row["difference"] == pytest.approx(-fallen / 12)
    assert (row["p"] <= 0.05) == (row["difference_high"] < 0) == (fallen > 5)


def test_a_constant_answer_is_the_better_baseline_where_answers_are_unbalanced():
    prompts, answers, options = data([[0.2, 0.8]] * 60, ["A", "B", "B", "B"] * 15)
    sample = Sample(prompts, options)
    assert sample.better == CONSTANT
    table = read(sample, answers, options).set_index("reading")
    assert table.loc[[FREE, CONSTANT], "accuracy"].tolist() == [0.75, 0.75]
    assert table.at[FREE, "verdict"] == EQUAL  # although it is far above 0.5
    assert table.at[FREE, "verdict_chance"] == ABOVE
    assert table.at[MEDIAN, "verdict_chance"] == EQUAL  # without a bias, nothing is left
    assert table.at[CHANCE, "accuracy"] == 0.5
    of_constant, of_chance = in_words(table.reset_index()).split(f"Compared with {CHANCE}")
    assert re.search(rf"{FREE}: .*{CONSTANT}", of_constant)
    assert f"{FREE}: above {CHANCE}" in of_chance


def test_tests_against_both_baselines_are_one_family():
    (prompts, answers, rows), _ = random_data(5, options=2, groups=30)
    rare = prompts[(prompts["gold"] == "A") & (prompts.index % 4 == 0)]["prompt_id"]
    prompts, answers, rows = (t[~t["prompt_id"].isin(rare)] for t in (prompts, answers, rows))
    sample = Sample(prompts, rows)
    assert sample.better == CONSTANT
    table = read(sample, answers, rows)[:3]
    _, expected, *_ = multipletests([*table["p"], *table["p_chance"]], method="holm")
    found = [*table["p_holm"], *table["p_holm_chance"]]
    assert found == pytest.approx(expected.tolist())
    assert table["p"].tolist() != table["p_chance"].tolist()


@pytest.mark.slow
def test_without_a_better_constant_answer_chance_is_tested_once():
    (prompts, answers, rows), _ = random_data(6, options=2, groups=30)
    sample = Sample(prompts, rows)
    table = read(sample, answers, rows)[:3]
    assert table["compared"].eq(CHANCE).all()
    for name in ("p", "p_holm", "verdict"):
        assert table[name].tolist() == table[f"{name}_chance"].tolist()
    _, expected, *_ = multipletests(table["p"], method="holm")
    assert table["p_holm"].tolist() == pytest.approx(expected.tolist())
    assert in_words(table).count(f"{CHANCE}: ") == 1


@pytest.mark.slow
def test_of_many_models_and_few_clusters_nothing_is_tested():
    """Of ten groups, each all right, p is 2 / 1024 at least, and 40 tests bring it above 0.05."""
    golds = ["A", "B"] * 10
    prompts, answers, options = data([[0.9, 0.1], [0.1, 0.9]] * 10, golds)
    sample = Sample(prompts, options)
    own = readings_of(sample, answers, options)[FORCED]
    for models, verdict in ((10, ABOVE), (40, UNTESTED)):
        table = reading_table(sample, {(f"m{n}", FORCED): own for n in range(models)})[:models]
        assert table["accuracy"].eq(1).all()
        assert table["verdict"].eq(verdict).all()
        assert out_of_reach(table).eq(verdict == UNTESTED).all()


def test_models_that_could_not_be_tested_are_counted():
    verdicts = [ABOVE, UNTESTED, UNTESTED]
    table = pd.DataFrame({"reading": FREE, "verdict": verdicts, "compared": CHANCE})
    table["verdict_chance"] = table["verdict"]
    assert re.search(rf"{CHANCE}.*\b1\b.*\b3 models.*\b0\b.*\b2\b", in_words(table))
    assert in_words(table[:1]).endswith(f"{FREE}: above {CHANCE}.")
    assert in_words(table[1:]).endswith(f"{FREE}: {UNTESTED}.")


@pytest.mark.slow
@settings(max_examples=25, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(["A", "", TIE]), st.floats(0.1, 9)), min_size=4))
def test_shares_of_prompts_count_by_weights(drawn):
    """Correct, outside and tied replies are all replies, so their weighted shares sum to 1."""
    prompts, answers, options = data([[0.6, 0.4]] * len(drawn), ["A"] * len(drawn), sides=1)
    said, weights = zip(*drawn, strict=True)
    prompts, answers = prompts.assign(weight=weights), answers.assign(answer=said)
    answers["correct"] = (answers["answer"] == "A").astype(object)
    sample = Sample(prompts, options)
    row = read(sample, answers, options).set_index("reading").loc[FREE]
    outside = sum(w for name, w in drawn if not name) / sum(weights)
    assert row["outside"] == pytest.approx(outside)
    assert row[["accuracy", "outside", "tied"]].sum() == pytest.approx(1)


def test_a_note_counts_the_prompts_that_are_not_calibrated():
    phrasing = [*"aaaaaaaabb"]
    prompts, answers, options = data([[0.1, 0.9]] * 10, ["A", "B"] * 5, phrasing=phrasing)
    sample = Sample(prompts, options)
    row = read(sample, answers, options).set_index("reading").loc[MEDIAN]
    assert row["prompts"] == 8
    assert re.match(r"2 .*\b10 prompts", row["note"])
    assert row["note"].endswith(too_few(4))
    prompts, answers, options = data([[0.1, 0.9]] * 4, ["A", "B"] * 2, phrasing=[*"aabb"])
    row = read(Sample(prompts, options), answers, options).set_index("reading").loc[MEDIAN]
    assert row["prompts"] == 0 and row["note"]


def test_exactly_chance_is_not_different_from_chance_with_three_options():
    prompts, answers, options = data([[0.6, 0.3, 0.1]] * 36, [*"ABC"] * 12, sides=3)
    sample = Sample(prompts, options)
    table = read(sample, answers, options).set_index("reading")
    for reading in (FREE, FORCED, MEDIAN):
        assert table.at[reading, "accuracy"] == pytest.approx(1 / 3)
        assert table.at[reading, "p"] == 1
        assert table.at[reading, "verdict"] == EQUAL
    assert table.loc[[CHANCE, CONSTANT], "paired_accuracy"].tolist() == pytest.approx([1 / 27, 0])


def of_names(names):
    """Prompts with these options each, of which the first is correct."""
    parts = [data([[0.3, 0.7]], [own[0]], names=own, sides=1) for own in names]
    prompts, _, options = (pd.concat(own, ignore_index=True) for own in zip(*parts, strict=True))
    ids = [f"p{n}" for n in range(len(names))]
    prompts = prompts.assign(prompt_id=ids, pair_id=ids)
    return Sample(prompts, options.assign(prompt_id=np.repeat(ids, 2)))


def test_options_that_are_always_listed_with_the_correct_one_first_have_no_constant_answer():
    assert list(of_names([(f"x{n}", f"y{n}") for n in range(8)]).baselines) == [CHANCE]
    other_order = of_names([("Yes", "No"), ("No", "Yes")] * 6)
    assert other_order.baselines[CONSTANT].mean() == 0.5


def test_chance_depends_on_the_number_of_options():
    two, three = data([[0.5, 0.5]] * 6, ["A", "B"] * 3), data([[0.4, 0.3, 0.3]] * 6, [*"ABCABC"])
    prompts = pd.concat(
        [two[0], three[0].assign(prompt_id=lambda t: "q" + t["prompt_id"])], ignore_index=True
    )
    options = pd.concat(
        [two[2], three[2].assign(prompt_id=lambda t: "q" + t["prompt_id"])], ignore_index=True
    )
    assert Sample(prompts, options).baselines[CHANCE].mean() == pytest.approx(5 / 12)


def test_no_interval_stands_beside_a_baseline():
    (prompts, answers, rows), _ = random_data(4, options=2, groups=12)
    sample = Sample(prompts, rows)
    table = read(sample, answers, rows)
    of_none = table["model"] == NO_MODEL
    assert table.loc[of_none, ["low", "high", "s0_low", "p"]].isna().all(axis=None)
    assert table.loc[~of_none, ["low", "high", "s0_low", "p"]].notna().all(axis=None)
    assert (table["low"].dropna() <= table["accuracy"][~of_none]).all()


@pytest.mark.parametrize("differing", [2, 4, 8])
def test_few_units_that_differ_are_tested_by_their_signs(differing):
    """As a sign test of the units that differ, all of them upward."""
    over = pd.DataFrame({"unit": range(64), "weight": 1.0, "over": 0.0})
    over.loc[: differing - 1, "over"] = 0.5
    assert reading_tables.mean_over(over).p == pytest.approx(2 ** (1 - differing), abs=0.015)


def test_the_difference_of_areas_is_that_of_a_jackknife_over_clusters():
    rng, count = np.random.default_rng(3), 40
    right = np.array([True, False] * (2 * count))
    common, noise = rng.normal(size=len(right)), rng.normal(size=(2, len(right)))
    scores = [common + shift * right + one for shift, one in zip((0.5, 1.5), noise, strict=True)]
    shares = [np.column_stack([expit(own), expit(-own)]) for own in scores]
    golds = np.where(right, "A", "B")
    (prompts, _, changed), (*_, whole) = (data(own, golds) for own in shares)
    prompts["town"] = np.repeat(range(count), 4).astype(str)

    def difference(left):
        kept = prompts["town"] != left
        one, other = (roc_auc_score(right[kept], score[kept]) for score in scores)
        return one - other

    changed = changed.assign(change="without", what="all premises")
    _, row = part_rows(Sample(prompts, whole, "town"), whole, changed)
    assert row["auroc_difference"] == pytest.approx(difference(None))
    without = np.array([difference(str(town)) for town in range(count)])
    error = np.sqrt((count - 1) / count * ((without - without.mean()) ** 2).sum())
    half = student.ppf(0.975, count - 1) * error
    ends = row["auroc_difference_low"], row["auroc_difference_high"]
    assert (ends[1] - ends[0]) / 2 == pytest.approx(half, rel=0.1)
    same = whole.assign(change="without", what="all premises")
    _, row = part_rows(Sample(prompts, whole, "town"), whole, same)
    assert row["auroc_difference"] == 0 and np.isnan(row["auroc_difference_low"])

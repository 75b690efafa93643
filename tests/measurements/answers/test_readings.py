"""What the tables of readings say beside their numbers."""

from interp.measurements.answers.readings import reading_items
from interp.report.glance import with_interval
from tests.analysis.test_readings import data

OVER = ["over", "over_low", "over_high"]


def test_a_constant_answer_that_is_better_stands_with_the_interval_of_the_difference():
    golds = ["A", "A", "A", "B"] * 12
    shares = [[0.8, 0.2] if gold == "A" else [0.2, 0.8] for gold in golds]
    prompts, answers, options = data(shares, golds)
    table, *_ = reading_items(answers, prompts, options)
    assert table.frame.loc[0, ["accuracy", "over", "over_chance"]].tolist() == [1.0, 0.25, 0.5]
    shown = table.on_page.set_index("reading")["minus_constant_answer"]
    assert shown["most probable option"] == with_interval(*table.frame.loc[1, OVER])


def test_pairs_are_told_apart_by_the_values_of_a_factor():
    """By the right word in one half of the pairs, by the wrong one in the other."""
    golds = ["A", "B"] * 24
    right = [index % 48 < 24 for index in range(48)]
    first = [own == (gold == "A") for own, gold in zip(right, golds, strict=True)]
    shares = [[0.8, 0.2] if own else [0.2, 0.8] for own in first]
    prompts, answers, options = data(shares, golds)
    prompts["mood"] = ["certain" if own else "plain" for own in right]
    *_, apart, by = reading_items(answers, prompts, options, by=["mood"])
    assert (apart.name, by.name) == ("told_apart", "told_apart_by_mood")
    assert apart.frame["concordance"].tolist() == [0.5]
    assert by.frame.set_index("mood")["concordance"].to_dict() == {"certain": 1.0, "plain": 0.0}
    assert by.frame["pairs"].tolist() == [12, 12]
    assert (by.frame["p_holm"] < 0.01).all()

"""What a careful reader objects to, in tables that are made up here; its numbers by hand."""

import math
import re

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.analysis.cautions.answers import FORCED, answer_cautions
from interp.analysis.cautions.caution import (
    CONSTANT,
    FOREIGN,
    OUTSIDE_OPTIONS,
    PART_ALONE,
    REACH,
    ROUNDING,
    SHARED,
    SYSTEM_PROMPT,
    UNTESTED,
    WEIGHTS,
    Caution,
    ordered,
    void_models,
)
from interp.analysis.cautions.collected import cautions_on, reach_cautions, sample_cautions
from interp.analysis.cautions.models import model_cautions, side_differences
from interp.measuring.spec import ModelFacts
from interp.prompts.systems import FACT_SIDE
from interp.statistics.decisions import holm


def prompts_of(golds, **columns):
    """Pairs of prompts, with the correct answers of their prompts in order."""
    count = len(golds)
    table = {
        "prompt_id": [f"p{place}" for place in range(count)],
        "pair_id": [f"pair{place // 2}" for place in range(count)],
        "side": ["wrong", "right"] * (count // 2),
        "gold": golds,
        "weight": 1.0,
    }
    return pd.DataFrame({**table, **columns})


def answers_of(answers, model="m", tokens=None):
    ids = [f"p{place}" for place in range(len(answers))]
    table = pd.DataFrame({"model": model, "prompt_id": ids, "answer": answers, "error": ""})
    return table if tokens is None else table.assign(predicted_token=tokens)


def options_of(yes, model="m", names=("Yes", "No")):
    """Option probabilities: the share of the first option for each prompt."""
    rows = [
        (model, f"p{place}", name, share, share)
        for place, own in enumerate(yes)
        for name, share in zip(names, (own, 1 - own), strict=True)
    ]
    columns = ["model", "prompt_id", "option", "probability", "relative_probability"]
    return pd.DataFrame(rows, columns=columns)


BALANCED = ["No", "Yes"] * 12


def test_a_constant_answer_is_reported_with_what_it_scores_alone():
    given_ = ["No"] * 23 + ["Yes"]
    (found,) = answer_cautions(answers_of(given_), prompts_of(BALANCED))
    assert (found.kind, found.voids) == (CONSTANT, True)
    assert (found.numbers["same"], found.numbers["answers"]) == (23, 24)
    alone = {"accuracy": 0.5, "paired_accuracy": 0, "wrong_accuracy": 1, "right_accuracy": 0}
    assert found.numbers["alone"] == pytest.approx(alone)
    assert found.numbers["model"]["accuracy"] == pytest.approx(13 / 24)
    assert re.search(r"\b23\b.*\b24\b.*\bNo\b", found.text)
    # "No" alone is right on 12 of 24 prompts; of these, the model leaves 4 without an answer.
    given_ = ["No", "No", "", "No", "No", ""] * 4
    outside, found = answer_cautions(answers_of(given_), prompts_of(BALANCED))
    assert (outside.kind, found.kind, found.voids) == (OUTSIDE_OPTIONS, CONSTANT, True)
    assert (found.numbers["same"], found.numbers["answers"]) == (16, 16)
    assert found.numbers["alone"]["accuracy"] == pytest.approx(12 / 24)
    assert found.numbers["model"]["accuracy"] == pytest.approx(8 / 24)
    # Being right shows nothing if the correct answer never varies.
    (found,) = answer_cautions(answers_of(["No"] * 24), prompts_of(["No"] * 24))
    assert found.numbers["alone"]["accuracy"] == found.numbers["model"]["accuracy"] == 1


@pytest.mark.parametrize("given_", [["", "Yes"], ["Yes", ""]])
def test_a_model_that_is_silent_on_one_side_alone_depends_on_the_prompt(given_):
    answers = answers_of([*given_ * 11, "Yes", "Yes"])
    (found,) = answer_cautions(answers, prompts_of(BALANCED))
    assert (found.kind, found.voids) == (OUTSIDE_OPTIONS, False)


def test_preferences_among_options_are_not_called_answers():
    answers = answers_of(["No"] * 24)
    (own,) = answer_cautions(answers, prompts_of(BALANCED))
    (forced,) = answer_cautions(answers.assign(**{FORCED: True}), prompts_of(BALANCED))
    assert own.numbers == forced.numbers
    assert "answers" in own.text and "answers" not in forced.text and "choices" in forced.text


def test_options_of_texts_are_known_from_the_correct_answers_of_their_pair():
    golds = ["No", "Yes"] * 6 + ["False", "True"] * 6
    (found,) = answer_cautions(answers_of(["No"] * 12 + ["False"] * 12), prompts_of(golds))
    assert found.numbers["same"] == 24 and set(found.numbers["usual"]) == {"No", "False"}


def test_a_place_among_the_options_is_named_by_the_few_answers_at_it():
    names = [(f"Yes {place % 4}", f"No {place % 4}") for place in range(8)]
    options = [options_of([0.1] * 8, names=own)[2 * n : 2 * n + 2] for n, own in enumerate(names)]
    golds = [own[n % 2] for n, own in enumerate(names)]
    answers = answers_of([second for _, second in names])
    (found,) = answer_cautions(answers, prompts_of(golds), pd.concat(options))
    assert found.numbers["place"] == 1 and "option 2" in found.text
    assert set(found.numbers["usual"]) == {second for _, second in names}
    # Options that all differ are named by their place alone.
    names = [(f"Yes {place}", f"No {place}") for place in range(24)]
    every = [options_of([0.1] * 24, names=own)[2 * n : 2 * n + 2] for n, own in enumerate(names)]
    chosen, right = [second for _, second in names], [own[n % 2] for n, own in enumerate(names)]
    (found,) = answer_cautions(answers_of(chosen), prompts_of(right), pd.concat(every))
    assert (found.numbers["place"], found.numbers["usual"]) == (1, [])
    # Scores that are the same are not said twice, nor is a share that does not vary by phrasing.
    phrased = prompts_of(golds, phrasing=["a"] * 4 + ["b"] * 4)
    (found,) = answer_cautions(answers, phrased, pd.concat(options))
    assert found.text.count("0.50") == 1 and found.text.count("100%") == 1


@pytest.mark.parametrize("known", [True, False])
def test_few_prompts_with_each_of_several_options_are_counted_together(known):
    golds = ["True", "False"] * 2 + ["Yes", "No"] * 2
    options = pd.concat([options_of([0.1] * 4, names=("True", "False")), options_of([0.1] * 8)[8:]])
    answers = answers_of(["False"] * 4 + ["No"] * 4)
    (found,) = answer_cautions(answers, prompts_of(golds), options if known else None)
    assert found.voids and set(found.numbers["usual"]) == {"False", "No"}


def test_one_phrasing_among_others_is_named_without_voiding_the_accuracy():
    prompts = prompts_of(BALANCED, phrasing=["a"] * 12 + ["b"] * 12)
    (found,) = answer_cautions(answers_of(["No"] * 23 + ["Yes"]), prompts)
    assert found.numbers["by_phrasing"] == pytest.approx({"a": 1.0, "b": 11 / 12})
    (found,) = answer_cautions(answers_of(["No"] * 12 + ["Yes"] * 12), prompts)
    assert found.numbers["within"] and found.numbers["same"] == 24
    golds = ["No", "Yes"] * 24
    prompts = prompts_of(golds, phrasing=["a"] * 24 + ["b"] * 24)
    (found,) = answer_cautions(answers_of(golds[:24] + ["No"] * 24), prompts)
    assert (found.voids, found.numbers["phrasings"]) == (False, {"b": "No"})


@given(st.lists(st.booleans(), min_size=3, max_size=12))
def test_a_model_that_is_always_right_reads_its_prompts(first):
    golds = [name for yes in first for name in (("Yes", "No") if yes else ("No", "Yes"))]
    assert not list(answer_cautions(answers_of(golds), prompts_of(golds)))


def test_replies_outside_the_options_come_with_the_accuracy_of_a_forced_choice():
    tokens = ["No", "Yes"] * 6 + ["The"] * 12
    answers = answers_of(BALANCED[:12] + [""] * 12, tokens=tokens)
    yes = [0.1, 0.9] * 10 + [0.9, 0.1] * 2
    (found,) = answer_cautions(answers, prompts_of(BALANCED), options_of(yes))
    assert (found.kind, found.voids) == (OUTSIDE_OPTIONS, True)
    assert (found.numbers["share"], found.numbers["token"]) == (0.5, "The")
    assert found.numbers["forced_accuracy"] == pytest.approx(20 / 24)


@pytest.mark.parametrize(
    ("texts", "words"),
    [(["The answer is No."] * 3 + ["\n\nI think"] * 2, "The answer"), (["", " \n", None], "")],
)
def test_texts_without_an_answer_are_told_by_their_first_words(texts, words):
    written = {"completion": ["Yes"] * 4 + texts, "finished": "eos"}
    answers = answers_of(["Yes"] * 4 + [""] * len(texts)).assign(**written)
    (found,) = answer_cautions(answers, prompts_of(BALANCED))
    assert (found.kind, found.numbers["words"]) == (OUTSIDE_OPTIONS, words)
    assert words in found.text and "Yes" not in found.text and "options" not in found.text
    assert "--shots" in found.text
    (cut,) = answer_cautions(answers.assign(finished="length"), prompts_of(BALANCED))
    assert cut.numbers["cut_off"] == 1.0 and "--max-new-tokens" in cut.text
    assert "--shots" not in cut.text


def test_tied_options_share_the_point_and_are_nobodys_usual_answer():
    answers = answers_of([""] * 24, tokens=["The"] * 24)
    prompts = prompts_of(BALANCED)
    (found,) = answer_cautions(answers, prompts, options_of([0.5] * 12 + [0.2] * 12))
    assert (found.numbers["tied"], found.numbers["forced_accuracy"]) == (0.5, 0.5)
    assert found.numbers["forced"]["same"] == found.numbers["forced"]["answers"] == 12
    assert found.numbers["forced"]["usual"] == ["No"]
    (found,) = answer_cautions(answers, prompts, options_of([0.5] * 24))
    assert (found.numbers["tied"], found.numbers["forced_accuracy"]) == (1.0, 0.5)
    assert "forced" not in found.numbers


def test_few_equal_answers_free_texts_and_failed_prompts_are_no_cautions():
    assert not list(answer_cautions(answers_of(["No"] * 4), prompts_of(["No", "Yes"] * 2)))
    answers = answers_of(BALANCED)
    answers.loc[:3, "answer"] = None
    answers.loc[4:7, ["answer", "error"]] = ["", "it is too long"]
    assert not list(answer_cautions(answers, prompts_of(BALANCED)))


@pytest.mark.parametrize(("difference", "said"), [(0.1, True), (10.0, False)])
def test_rounding_is_compared_with_the_difference_between_the_sides(difference, said):
    facts = {"m": ModelFacts("bfloat16", spacing=0.125)}
    found = list(model_cautions(facts, {"m": difference}))
    assert [own.kind for own in found] == [ROUNDING] * said
    # Four logits, each with an error that is uniform over a spacing: variance spacing^2 / 12.
    assert all(own.numbers["error"] == pytest.approx(0.125 / math.sqrt(3)) for own in found)


def test_a_system_prompt_of_the_template_is_quoted_on_one_line():
    (found,) = model_cautions({"m": ModelFacts("float32", "You are\na helper")}, {})
    assert found.kind == SYSTEM_PROMPT and "\n" not in found.said


def test_sides_differ_by_the_median_over_pairs_of_their_log_odds():
    def share(odds):
        return 1 / (1 + math.exp(-odds))

    options = options_of([share(own) for own in (0.0, 1.0, 0.0, 2.0, -3.0, 4.0)])
    found = side_differences(options, prompts_of(["No", "Yes"] * 3))
    assert found == {"m": pytest.approx(2.0)}


def test_effective_numbers_stand_beside_unequal_weights():
    prompts = prompts_of(["No", "Yes"] * 20, weight=[10.0] * 4 + [0.5] * 36)
    (found,) = sample_cautions(prompts)
    assert found.kind == WEIGHTS
    # Two pairs of weight 10 and 18 of 0.5: 29^2 / (200 + 4.5).
    assert found.numbers["effective"] == pytest.approx(29**2 / 204.5)
    assert found.numbers["half"] == 2
    assert not list(sample_cautions(prompts.assign(weight=2.0)))


def test_pairs_that_share_a_prompt_are_counted_unless_they_are_one_cluster():
    own = [f"text {place}" for place in range(len(BALANCED))]
    assert not list(sample_cautions(prompts_of(BALANCED, text=own)))
    # Pairs 0 to 3 have one text on a side; pair 4 asks one text twice, which no other pair asks.
    shared = [*("same", "a", "same", "b", "c", "same", "same", "d", "e", "e"), *own[10:]]
    prompts = prompts_of(BALANCED, text=shared)
    (found,) = sample_cautions(prompts)
    assert (found.kind, found.numbers) == (SHARED, {"units": 12, "shared": 4})
    of_first = prompts["pair_id"].isin(["pair0", "pair1", "pair2", "pair3"])
    story = prompts["pair_id"].mask(of_first, "one")
    said = sample_cautions(prompts.assign(story=story), "story")
    assert SHARED not in [one.kind for one in said]


def test_too_few_clusters_are_counted_by_the_factor_that_groups_prompts():
    prompts = prompts_of(BALANCED, city=["Bern", "Bern", "Rome", "Rome"] * 6)
    assert not list(sample_cautions(prompts))
    (found,) = sample_cautions(prompts, "city")
    assert (found.kind, found.numbers["units"]) == (UNTESTED, 2)
    (found,) = sample_cautions(prompts[:2].assign(side=FACT_SIDE))
    assert "fact" in found.text and "pair" not in found.text


def test_what_voids_accuracies_comes_first():
    small, void = Caution(UNTESTED, "", "few"), Caution(CONSTANT, "m", "always No", voids=True)
    found = ordered([small, Caution(CONSTANT, "n", "one phrasing"), void])
    assert [own.model for own in found] == ["m", "n", ""]
    assert list(void_models(found)) == ["m"]
    alone = Caution(PART_ALONE, "m", "told apart without premises")
    assert ordered([void, alone, Caution(FOREIGN, "m", "foreign")])[1:] == (alone, void)


def test_each_model_is_judged_by_its_own_answers():
    answers = pd.concat([answers_of(["No"] * 24, "constant"), answers_of(BALANCED, "reader")])
    facts = {"reader": ModelFacts("float32", "Be nice to all.")}
    found = cautions_on(prompts_of(BALANCED), answers=answers, facts=facts)
    assert [(own.model, own.kind) for own in found] == [
        ("constant", CONSTANT),
        ("reader", SYSTEM_PROMPT),
    ]


def test_names_from_files_stay_on_one_line():
    answers = answers_of(["a\nb"] * 24, "my\nmodel")
    (found,) = answer_cautions(answers, prompts_of(["a\nb", "c"] * 12))
    assert "\n" not in found.said


def test_tests_that_cannot_be_significant_are_said_with_what_would_help():
    family = pd.DataFrame({"model": "m", "p": 0.5, "p_least": 0.0005, "clusters": 12}, range(360))
    table = holm(family, family="cells")
    few = holm(family[:20], family="cells").assign(model="n")
    (found,) = reach_cautions([table, few], clusters_for=lambda tests: tests // 20)
    assert (found.kind, found.model) == (REACH, "m")
    assert found.numbers == {
        "tests": 360,
        "clusters": 12,
        "p_holm_least": pytest.approx(0.18),
        "most_tests": 99,
    }
    assert all(word in found.text for word in ("360", "12 clusters", "0.18", "99 ", "18 clusters"))
    (found,) = reach_cautions([table], clusters_for=lambda _: None)
    assert found.text.count("clusters") == 1


@pytest.mark.parametrize(
    ("token", "shown"),
    [("\n\n", r"\n\n"), ("\t", r"\t"), (" ", "␣"), ("\r\n ", r"\r\n␣"), (" The", "The")],
)
def test_replies_are_shown_as_text_that_can_be_seen(token, shown):
    answers = answers_of([""] * 24, tokens=[token] * 24)
    (found,) = answer_cautions(answers, prompts_of(BALANCED))
    assert f"“{shown}”" in found.text and found.numbers["token"] == token


FLAGS = ["--answer-prefix Answer:", "--shots 4", "--answers whole"]


@pytest.mark.parametrize("templated", [True, False])
def test_what_helps_a_model_to_reply_with_an_option_is_said_with_its_counts(templated):
    answers = answers_of([""] * 24, "base", tokens=["\n"] * 24)
    given = dict(zip(FLAGS, (3, 4, 0), strict=True))
    facts = {"base": ModelFacts("float32", replies=(16, 12, "\n", templated, 4, given))}
    (found,) = cautions_on(prompts_of(BALANCED), answers=answers, facts=facts)
    for flag, count in given.items():
        assert f"{count} of 4 with {flag}" in found.text
    assert ("base model" in found.text) != templated
    (found,) = model_cautions(facts, {})
    assert f"“{chr(92)}n”" in found.text and "4 of 4 with --shots 4" in found.text


def test_every_caution_about_replies_names_a_flag():
    silent, constant = answers_of([""] * 24, tokens=["The"] * 24), answers_of(["No"] * 24)
    texts = answers_of([""] * 24).assign(completion="Well", finished="length")
    for answers, flags in ((silent, FLAGS), (constant, FLAGS[1:2]), (texts, ["--max-new-tokens"])):
        (found,) = answer_cautions(answers, prompts_of(BALANCED))
        assert all(flag in found.text for flag in flags)

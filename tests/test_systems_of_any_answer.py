"""Three options, free texts and classes, from system to report."""

import dataclasses
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import torch

import interp
from interp.analysis.accuracy import accuracies, accuracy_by, outcome_table
from interp.errors import UserError
from interp.measurements.answers.show import Completions, Scores
from interp.measurements.specs import Evaluate, Generate, SoftScore
from interp.measuring.core import bind
from interp.measuring.spec import Stage
from interp.patching.pairs import contrast_of, in_pairs
from interp.prompts.answers import Choice
from interp.reading.tokens import tokenize
from interp.runs.execute import execute
from interp.runs.merge import merging
from interp.runs.plan import RunPlan
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.systems import THEORIES, classes, numbers, three_options
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level


def run_of(folder, system, spec):
    prompts = system.prompts(seed=0, data=None)
    prompts.check()
    plan = RunPlan(
        folder, {folder: Stage("test", prompts, spec)}, {"tiny gpt2": tiny_model("gpt2")}
    )
    (run,) = execute(plan)
    with merging(run.folder) as merged:
        return merged.run


def test_three_options_from_system_to_report(tmp_path):
    run = run_of(tmp_path / "run", three_options, Evaluate())
    options = run.table("option_probabilities")
    assert options.groupby("prompt_id").size().tolist() == [3] * len(THEORIES)
    assert options["option"].tolist()[:3] == ["True", "False", "Unknown"]
    sums = options.groupby("prompt_id")["relative_probability"].sum()
    np.testing.assert_allclose(sums, 1.0)
    assert run.table("prompts")["gold"].tolist() == ["True", "False", "Unknown"] * 4
    table, *_ = (item.frame for item in Scores.of(run).report().sections[0].items)
    assert {"paired_accuracy", "base_accuracy", "negated_accuracy", "other_accuracy"} <= {*table}


def test_the_probabilities_of_three_options_are_those_of_the_whole_softmax():
    model = tiny_model("gpt2")
    scores = interp.evaluate(model, THEORIES)
    for prompt, (_, rows) in zip(
        THEORIES, scores.option_probabilities.groupby("prompt_id", sort=False), strict=True
    ):
        (tokenized,) = tokenize(model, [prompt])
        with torch.inference_mode():
            logits = model.hf(torch.tensor([tokenized.token_ids])).logits[0, -1].double()
        p = logits.softmax(-1)
        tokens = AnswerTokenizer(model)(tokenized).of
        expected = [float(p[list(own)].sum()) for own in tokens.values()]
        np.testing.assert_allclose(rows["probability"], expected, rtol=1e-4)
        soft = np.array(expected) / sum(expected)
        np.testing.assert_allclose(rows["relative_probability"], soft, rtol=1e-4)


def test_a_model_that_says_unknown_is_right_where_that_is_correct():
    model = make_tiny("gpt2", byte_level())
    (tokenized,) = tokenize(model, THEORIES[:1])
    (token, *_) = AnswerTokenizer(model)(tokenized).of["Unknown"]
    says = torch.zeros(len(model.tokenizer))
    says[token] = 1000.0
    model.unembedding.register_forward_hook(lambda module, inputs, output: output + says)
    scores = interp.evaluate(model, THEORIES)
    assert set(scores.answers["answer"]) == {"Unknown"}
    assert scores.answers["correct"].tolist() == [False, False, True] * 4
    summary = scores.summary().iloc[0]
    assert summary["other_accuracy"] == 1.0
    assert summary["paired_accuracy"] == 0.0  # all members of a group must be right
    soft = interp.api.collect(bind(SoftScore(), model), THEORIES)["soft_answers"]
    assert soft["soft_accuracy"].tolist() == pytest.approx([0.0, 0.0, 1.0] * 4)


def test_free_texts_from_system_to_report(tmp_path):
    run = run_of(tmp_path / "run", numbers, Generate(max_new_tokens=4))
    completions = run.table("completions")
    assert completions["outcome"].tolist() == ["unparsed"] * 4
    accuracy, outcomes = (item.frame for item in Completions.of(run).report().sections[0].items)
    assert accuracy["sum_accuracy"].tolist() == [0.0]
    assert outcomes[["answered", "unparsed", "refused"]].to_numpy().tolist() == [[0.0, 1.0, 0.0]]


def test_free_texts_are_not_judged_by_their_first_token():
    scores = interp.evaluate(tiny_model("gpt2"), list(numbers.prompts(seed=0, data=None)))
    assert scores.answers["answer"].isna().all()
    assert scores.answers["correct"].isna().all()
    assert (scores.answers["error"] == "").all()
    assert np.isnan(scores.summary()["sum_accuracy"].astype(float)).all()
    assert scores.option_probabilities["option"].tolist() == ["7"] * 4
    assert scores.option_probabilities["relative_probability"].isna().all()


def classifier(*names):
    """As much of a classifier as its classes are asked for."""
    config = SimpleNamespace(id2label=dict(enumerate(names)))
    return SimpleNamespace(name="a classifier", hf=SimpleNamespace(config=config))


def class_tokens(model):
    prompt = classes.prompts(seed=0, data=None)[0]
    return AnswerTokenizer(model)(SimpleNamespace(prompt=prompt, chat=None)).of


@pytest.mark.usefixtures("unchecked_types")
def test_classes_are_found_by_name_or_else_by_place():
    by_name = class_tokens(classifier("Unknown", "True", "False"))
    assert by_name == {"True": (1,), "False": (2,), "Unknown": (0,)}
    by_place = class_tokens(classifier("LABEL_0", "LABEL_1", "LABEL_2"))
    assert by_place == {"True": (0,), "False": (1,), "Unknown": (2,)}
    for others in (("entailment", "neutral", "contradiction"), ("LABEL_0", "LABEL_1")):
        with pytest.raises(UserError, match=rf"{', '.join(others)}.*classes"):
            class_tokens(classifier(*others))


def test_groups_that_lack_a_side_are_refused_unless_the_system_says_so():
    prompts = three_options.prompts(seed=0, data=None)
    some = dataclasses.replace(prompts, numbers=[0, 1, 2, 3, 5])
    with pytest.raises(UserError, match=r"'theory 1'.*base, other; .*base.*negated"):
        some.check()
    dataclasses.replace(some, whole_groups=False).check()
    for numbers_, message in (([0, 0], "'theory 0/base'"), ([0, 1], "")):
        changed = dataclasses.replace(some, numbers=numbers_, whole_groups=False)
        if message:
            with pytest.raises(UserError, match=message):
                changed.check()
        else:
            changed.check()
    odd = dataclasses.replace(some, sides=("base", "negated"), whole_groups=False)
    with pytest.raises(UserError, match=r"'theory 0'.*base, negated, other; .*base.*negated"):
        odd.check()


def test_a_subset_takes_whole_groups():
    subset = three_options.prompts(seed=0, data=None).spread(2)
    assert len(subset) == 6
    assert len({prompt.pair_id for prompt in subset}) == 2


SIDES = ("base", "negated", "other")


def test_accuracy_of_groups_of_unequal_size_by_hand():
    """Groups a (three members), b (two) and c (one, which is none of the groups of several)."""
    members = [("a", side) for side in SIDES] + [("b", "base"), ("b", "other"), ("c", "base")]
    prompts = pd.DataFrame(members, columns=["pair_id", "side"])
    prompts["prompt_id"] = prompts["pair_id"] + prompts["side"]
    prompts["weight"] = 1.0
    answers = pd.DataFrame(
        {
            "model": "m",
            "prompt_id": prompts["prompt_id"],
            "correct": [True, True, False, True, True, True],
        }
    )
    values = accuracies(answers, prompts)
    assert values["paired_accuracy"] == pytest.approx(1 / 2)
    assert [values[f"{side}_accuracy"] for side in SIDES] == [1.0, 1.0, 0.5]
    table = accuracy_by(answers, prompts, factors=[], sides=SIDES).set_index("measure")
    assert table["accuracy"].to_dict() == pytest.approx(
        {"paired": 1 / 2, "base": 1.0, "negated": 1.0, "other": 0.5}
    )
    assert table["pairs"].to_dict() == {"paired": 2, "base": 3, "negated": 1, "other": 2}
    # A group of which a member is not answered counts in nothing.
    fewer = accuracy_by(answers[:4], prompts, factors=[], sides=SIDES).set_index("measure")
    assert fewer["pairs"].to_dict() == {"paired": 1, "base": 1, "negated": 1, "other": 1}


def pair(one, other):
    return in_pairs([THEORIES[one], THEORIES[other]])


def test_pairs_are_taken_out_of_groups_and_measured_by_their_two_answers():
    assert contrast_of(*pair(0, 1)) == ("True", "False")
    assert contrast_of(*pair(2, 0)) == ("Unknown", "True")
    with pytest.raises(UserError, match=r"'theory 0'.*clean prompt \(base\).*--sides base"):
        in_pairs(THEORIES[:3])
    patches = interp.patch(tiny_model("gpt2"), pair(0, 2), granularity="all")
    (row,) = patches.pairs.to_dict("records")
    assert (row["positive_option"], row["negative_option"]) == ("True", "Unknown")
    assert row["error"] == ""


def test_a_pair_with_one_answer_needs_a_contrast():
    one, other = (
        dataclasses.replace(prompt, answer=dataclasses.replace(prompt.answer, gold="True"))
        for prompt in THEORIES[:2]
    )
    with pytest.raises(UserError, match=r"'theory 0'.*answer, 'True'"):
        in_pairs([one, other])
    contrast = ("False", "True")
    named = [
        dataclasses.replace(p, answer=dataclasses.replace(p.answer, contrast=contrast))
        for p in (one, other)
    ]
    assert contrast_of(*named) == contrast
    assert isinstance(named[0].answer, Choice)


def test_outcomes_by_hand():
    completions = pd.DataFrame(
        {
            "model": ["m", "m", "m", "m", "n"],
            "outcome": ["answered", "refused", "unparsed", "answered", None],
            "finished": ["eos", "eos", "length", "stop", None],
            "error": ["", "", "", "", "too long"],
        }
    )
    (row,) = outcome_table(completions).to_dict("records")
    assert row == {
        "model": "m",
        "answered": 0.5,
        "unparsed": 0.25,
        "refused": 0.25,
        "cut_off": 0.25,
        "texts": 4,
    }

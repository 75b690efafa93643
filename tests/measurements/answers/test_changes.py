"""Measured changes of prompts equal the same prompts, measured as they are."""

import dataclasses
from itertools import chain

import numpy as np
import pytest
from scipy.special import expit

import interp
from interp.analysis.cautions.caution import PART_ALONE
from interp.errors import UserError
from interp.measurements.answers import evaluation
from interp.measurements.specs import Evaluate
from interp.prompts.changes import content_free, swapped_options, without_premises, without_segments
from interp.prompts.mixing import with_donors
from interp.prompts.prompt import Prompt, compose
from tests.reading.test_thinking import QWEN3
from tests.support.answers import yes_no
from tests.support.prompts import some_prompts
from tests.support.thinking import thinking_model
from tests.support.tiny import tiny_model

ALL = {"content_free": True, "without_segments": True, "swap_options": True}


def shares(table):
    return table.set_index(["prompt_id", "option"])["relative_probability"]


def test_changed_prompts_are_measured_like_any_other():
    model, prompts = tiny_model("llama"), some_prompts(2)
    scores = interp.evaluate(model, prompts, batch_tokens=400, **ALL)
    own = scores.table("changed_options")
    changed = [
        (change, dataclasses.replace(change.prompt, id=f"{change.prompt.id}#{number}"))
        for prompt in with_donors(prompts, count=1)
        for number, change in enumerate(
            chain.from_iterable(
                changes(prompt)
                for changes in (content_free, without_segments, without_premises, swapped_options)
            )
        )
    ]
    alone = shares(interp.evaluate(model, [prompt for _, prompt in changed]).option_probabilities)
    assert len(own) == len(alone) == 4 * 2 * (3 + 4 + 1 + 1)
    keys = ["prompt_id", "change", "what", "option"]
    read = own.set_index(keys)["relative_probability"].sort_index()
    for change, prompt in changed:
        key = (change.prompt.id, change.kind, change.what)
        found = read.loc[key]
        np.testing.assert_allclose(found, alone.loc[prompt.id].reindex(found.index), atol=1e-6)
    # The other tables are as they are without changes.
    plain, more = interp.evaluate(model, prompts), interp.evaluate(model, prompts, **ALL)
    assert "changed_options" not in plain.tables
    for name in ("answers", "option_probabilities"):
        assert plain.table(name).equals(more.table(name))


def test_changes_have_rows_and_a_table_of_their_own():
    scores = interp.evaluate(tiny_model("llama"), some_prompts(12), **ALL)
    tables = scores.derived()
    readings = tables["accuracy_by_reading"].set_index("reading")
    names = ["without premise1", "without premise2", "without conclusion", "without question"]
    names += ["without all premises"]
    assert {*names, "swapped options", "calibrated: content-free"} <= set(readings.index)
    changes = tables["change_table"].set_index("change")
    assert list(changes.index) == [*names, "swapped options"]
    forced = readings.at["most probable option", "accuracy"]
    for name in changes.index:
        difference = readings.at[name, "accuracy"] - forced
        assert changes.at[name, "difference"] == pytest.approx(difference)
    assert changes["changed"].between(0, 1).all()


def reads(monkeypatch, score):
    """Let the model give Yes log-odds of `score(prompt)`, on prompts as they are and changed."""

    def tables(model, batch, predictions):
        return [
            {
                "answers": [row(model, own.prompt) | {"answer": "Yes", "correct": False}],
                "option_probabilities": [
                    row(model, own.prompt)
                    | {"option": option, "probability": share / 2, "relative_probability": share}
                    for option, share in zip(
                        (one.name for one in own.prompt.answer.options),
                        (expit(score(own.prompt)), expit(-score(own.prompt))),
                        strict=True,
                    )
                ],
            }
            for own in batch.prompts
        ]

    def row(model, prompt):
        return {"model": model.name, "prompt_id": prompt.id, "error": ""}

    monkeypatch.setattr(evaluation, "answer_tables", tables)


def pairs_about(texts):
    """Twelve pairs of these (side, premise, question, correct answer), about other places."""
    return [
        Prompt(f"{place}{side}", text, segments, yes_no(gold=gold), f"{place}", side, {})
        for place in range(12)
        for side, premise, question, gold in texts
        for text, segments in [
            compose(
                [
                    ("premise1", f"In town {place} it rains."),
                    (None, " "),
                    ("premise2", premise),
                    (None, "\n"),
                    ("question", question),
                ]
            )
        ]
    ]


DENIED = [
    ("valid", "It is wet if it rains.", "Is it wet?", True),
    ("fallacy", "It is wet if it snows.", "Is it not wet?", False),
]


def of_question(prompt):
    return -1.0 if "not" in prompt.text else 1.0


def of_premise(prompt):
    return 1.0 if "if it rains" in prompt.text else -1.0 if "if it snows" in prompt.text else 0.0


@pytest.mark.parametrize(
    ("score", "concordance", "difference", "alone"),
    [
        (of_question, 1.0, 0.0, True),
        (of_premise, 0.5, -0.5, False),
        (lambda prompt: -of_premise(prompt), 0.5, 0.5, False),
        (lambda prompt: of_premise(prompt) + of_question(prompt), 1.0, 0.0, True),
        (lambda prompt: 3 * of_premise(prompt) - of_question(prompt), 0.0, -1.0, False),
    ],
)
def test_sides_that_are_told_apart_without_premises_are_the_first_caution(
    monkeypatch, score, concordance, difference, alone
):
    reads(monkeypatch, score)
    scores = interp.evaluate(tiny_model("llama"), pairs_about(DENIED), without_premises=True)
    table = scores.derived()["told_apart_without"].set_index("change")
    assert list(table.index) == ["as they are", "without all premises"]
    row = table.loc["without all premises"]
    assert row["concordance"] == concordance and row["auroc"] == concordance
    assert row["difference"] == pytest.approx(difference)
    assert row["auroc_difference"] == pytest.approx(difference)
    assert row["difference_low"] <= row["difference"] <= row["difference_high"]
    assert row["difference_low"] < row["difference_high"]
    assert (scores.cautions[0].kind == PART_ALONE) == alone
    assert sum(own.kind == PART_ALONE for own in scores.cautions) == alone


def test_corrected_tables_say_over_how_many_tests_and_models(monkeypatch):
    reads(monkeypatch, of_premise)
    models = [tiny_model("llama"), dataclasses.replace(tiny_model("llama"), name="other")]
    for count, said in ((1, "1 test of 1 model"), (2, "2 tests of 2 models")):
        found = interp.run(
            Evaluate(without_premises=True), models=models[:count], prompts=pairs_about(DENIED)
        )
        items = {item.name: item for item in found.shown}
        for name in ("told_apart", "told_apart_without", "change_table"):
            assert said in items[name].note and said in items[name].narrow[0][0]
            least = items[name].frame["p_holm"] / items[name].frame["p"]
            assert least.dropna().tolist() == pytest.approx([count] * count)
        title, _ = items["accuracy_by_reading"].narrow[0]
        tests = items["accuracy_by_reading"].frame[["p_holm", "p_holm_chance"]].count().sum()
        assert f"{tests} tests of {said.partition('of ')[2]}" in title


def test_demonstrations_add_the_row_without_premises(monkeypatch):
    reads(monkeypatch, of_question)
    prompts = interp.with_messages(pairs_about(DENIED), shots=2)
    scores = interp.evaluate(tiny_model("llama"), prompts)
    assert scores.measured.about.parameters["without_premises"]
    changed = scores.table("changed_options")
    assert set(changed["what"]) == {"all premises"} and len(changed) == 2 * len(prompts)
    assert scores.cautions[0].kind == PART_ALONE
    run = interp.run(Evaluate(), models=tiny_model("llama"), prompts=prompts)
    assert run.cautions[0].kind == PART_ALONE
    bare = [dataclasses.replace(own, segments={}) for own in pairs_about(DENIED)]
    scores = interp.evaluate(tiny_model("llama"), interp.with_messages(bare, shots=2))
    assert "changed_options" not in scores.tables


def test_a_model_that_thinks_is_not_asked_without_premises_and_a_line_says_so(capsys):
    model = dataclasses.replace(thinking_model(QWEN3, thinking="on"), thoughts={"x": ()})
    measured = evaluation.evaluation(model, Evaluate(without_premises=True))
    assert list(measured.tables) == ["answers", "option_probabilities"]
    said = capsys.readouterr().err
    assert "tiny llama" in said and "without premises" in said
    evaluation.evaluation(model, Evaluate())
    assert not capsys.readouterr().err
    with pytest.raises(UserError, match=r"tiny llama.*thoughts"):
        interp.evaluate(model, some_prompts(2), without_segments=True)


@pytest.mark.parametrize(
    ("name", "named"),
    [
        ("content_free", "content.*donors"),
        ("without_segments", "segment.*<premise1>"),
        ("swap_options", "options.*Answer Yes or No"),
    ],
)
def test_prompts_that_cannot_be_changed_are_refused(name, named):
    bare = [
        dataclasses.replace(prompt, segments={}, roles={}, answer=yes_no(), text=f"{place}?")
        for place, prompt in enumerate(some_prompts(2))
    ]
    with pytest.raises(UserError, match=named):
        interp.evaluate(tiny_model("llama"), bare, **{name: True})

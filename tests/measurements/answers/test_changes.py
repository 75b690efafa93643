"""Measured changes of prompts equal the same prompts, measured as they are."""

import dataclasses

import numpy as np
import pytest

import interp
from interp.errors import UserError
from interp.prompts.changes import content_free, swapped_options, without_segments
from interp.prompts.mixing import with_donors
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
            [*content_free(prompt), *without_segments(prompt), *swapped_options(prompt)]
        )
    ]
    alone = shares(interp.evaluate(model, [prompt for _, prompt in changed]).option_probabilities)
    assert len(own) == len(alone) == 4 * 2 * (3 + 4 + 1)
    keys = ["prompt_id", "change", "what", "option"]
    read = own.set_index(keys)["relative_probability"].sort_index()
    for change, prompt in changed:
        key = (change.prompt.id, change.kind, change.what)
        found = read.loc[key]
        np.testing.assert_allclose(found, alone.loc[prompt.id].reindex(found.index), atol=1e-6)


def test_changed_prompts_leave_the_other_tables_as_they_are():
    model, prompts = tiny_model("llama"), some_prompts(2)
    plain, more = interp.evaluate(model, prompts), interp.evaluate(model, prompts, **ALL)
    assert "changed_options" not in plain.tables
    for name in ("answers", "option_probabilities"):
        assert plain.table(name).equals(more.table(name))


def test_changes_have_rows_and_a_table_of_their_own():
    scores = interp.evaluate(tiny_model("llama"), some_prompts(12), **ALL)
    tables = scores.derived()
    readings = tables["accuracy_by_reading"].set_index("reading")
    names = ["without premise1", "without premise2", "without conclusion", "without question"]
    assert {*names, "swapped options", "calibrated: content-free"} <= set(readings.index)
    changes = tables["change_table"].set_index("change")
    assert list(changes.index) == [*names, "swapped options"]
    forced = readings.at["most probable option", "accuracy"]
    for name in changes.index:
        difference = readings.at[name, "accuracy"] - forced
        assert changes.at[name, "difference"] == pytest.approx(difference)
    assert changes["changed"].between(0, 1).all()


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


def test_a_model_that_thinks_is_refused():
    model = dataclasses.replace(thinking_model(QWEN3, thinking="on"), thoughts={"x": ()})
    with pytest.raises(UserError, match=r"tiny llama.*thoughts"):
        interp.evaluate(model, some_prompts(2), without_segments=True)

"""Tokens kept by their scores, as a measurement: its tables, batches and refusals."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from interp.attribution.soft_keeping import SHARES
from interp.errors import UserError
from interp.measurements.attribute import Attribute
from interp.measurements.soft_attribution import UNCHANGED
from interp.measurements.soft_keeping import SoftKeeping
from interp.prompts.mixing import with_donors
from interp.prompts.prompt import Donor
from interp.reading.tokens import tokenize
from interp.tables import SCHEMAS
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

METHODS = ("input_x_gradient", "leave_one_out:donor")
CONTROLS = ["oracle", "reversed", "random", "length", "position"]


def donated(pairs=2):
    prompts = with_donors(some_prompts(pairs), count=8, segments=("premise1", "premise2"))
    # One donor each, so that few tokens are read.
    return [replace(p, donors=p.donors[:1]) for p in prompts]


def measure(model, prompts, **options):
    budget = options.pop("batch_tokens", None)
    spec = SoftKeeping(methods=METHODS, target="margin", **options)
    return spec.bind(model, batch_tokens=budget)(prompts)


@pytest.fixture(scope="module")
def measured():
    prompts = donated()
    return prompts, measure(tiny_model("llama"), prompts)


def test_one_row_a_method_and_control(measured):
    prompts, rows = measured
    kept = rows["soft_keeping"]
    names = [*METHODS, *CONTROLS]
    assert [row["method"] for row in kept] == names * len(prompts)
    assert set(kept[0]) <= set(SCHEMAS["soft_keeping"].names)
    for row in kept:
        assert len(row["values"]) == len(SHARES)
        assert row["target"] == "margin"
        assert row["error"] == ""
        low, high = sorted((row["value_without"], row["value"]))
        if row["tokens"] == 1:
            assert low - 1e-5 <= min(row["values"]) <= max(row["values"]) <= high + 1e-5


def test_the_scores_are_those_of_attribution(measured):
    prompts, rows = measured
    spec = Attribute(methods=METHODS, target="margin")
    alone = spec.bind(tiny_model("llama"))(prompts)
    for table, expected in alone.items():
        assert rows[table] == expected


def test_batches_and_neighbours_do_not_matter(measured):
    prompts, rows = measured
    model = tiny_model("llama")
    small = measure(model, prompts[:1], batch_tokens=100)["soft_keeping"]
    for one, other in zip(small, rows["soft_keeping"], strict=False):
        assert one["method"] == other["method"]
        np.testing.assert_allclose(one["values"], other["values"], atol=2e-5)


def test_donors_are_drawn_where_a_set_has_them():
    arranged = SoftKeeping(methods=("attention",)).arranged(some_prompts(1))
    assert all(prompt.donors for prompt in arranged)
    with pytest.raises(UserError, match="has no donors"):
        measure(tiny_model("llama"), list(some_prompts(1)))


def test_a_donor_of_the_same_tokens_leaves_nothing_to_judge():
    (prompt, *_) = donated(1)
    own = {name: prompt.segment_text(name) for name in ("premise1", "premise2")}
    same = replace(prompt, donors=(Donor("itself", "instance", own),))
    (row,) = measure(tiny_model("llama"), [same])["soft_keeping"]
    assert row["error"] == UNCHANGED


def test_what_is_no_number_is_an_error():
    model = make_tiny("llama", byte_level())
    prompts = donated(1)
    tokenize(model, prompts)
    with torch.no_grad():
        model.hf.model.norm.weight.fill_(torch.inf)
    rows = measure(model, prompts)["soft_keeping"]
    assert [row["error"] for row in rows] == ["non-finite"] * len(prompts)

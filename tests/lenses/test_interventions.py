"""Interventions along directions: their algebra, and passes against plain hooks."""

import dataclasses
from contextlib import ExitStack
from functools import partial

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp.lenses.interventions import Directions, Intervention, intervene, placebo
from interp.models.sites import layer_count
from interp.patching.exact import native_grid
from interp.reading.budget import TokenBudget
from tests.support.hooks import hooked
from tests.support.other_kinds import classifier
from tests.support.pairs import plain_metric, some_pair
from tests.support.tiny import CONFIGS, tiny_model

EXACT = 1e-6
TOLERANCE = 3e-6
"""Largest difference of a metric, in logits, that the order of fp32 sums explains here."""


def drawn(seed, *shape):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def changed(kind, rows, streams, dose=1.0):
    own = Intervention(kind, {0: Directions.of(rows)}, (0,), dose)
    return streams + own.change(0, streams, streams)


SEEDS = st.integers(0, 10_000)


@given(SEEDS)
def test_a_swap_mirrors_the_stream_between_the_two_unit_directions(seed):
    """By another formula: a Householder reflection, which needs no coordinates."""
    rows, streams = drawn(seed, 2, 12), drawn(seed + 1, 3, 12)
    units = rows / rows.norm(dim=1, keepdim=True)
    across = (units[1] - units[0]) / (units[1] - units[0]).norm()
    mirrored = streams - 2 * (streams @ across)[:, None] * across
    torch.testing.assert_close(changed("swap", rows, streams), mirrored)
    coordinates = Directions.of(rows).coordinates
    torch.testing.assert_close(coordinates(mirrored), coordinates(streams).flip(1))


@given(SEEDS, st.sampled_from([1, 2]))
def test_projecting_out_leaves_nothing_of_the_directions(seed, count):
    rows, streams = drawn(seed, count, 12), drawn(seed + 1, 3, 12)
    after = changed("project", rows, streams)
    torch.testing.assert_close(after @ rows.T, torch.zeros(3, count, dtype=torch.float64))
    least_squares = torch.linalg.lstsq(rows.T, streams.T).solution
    torch.testing.assert_close(after, streams - least_squares.T @ rows)


@given(SEEDS, st.floats(-2, 2))
def test_steering_adds_the_direction_as_long_as_the_stream(seed, dose):
    row, streams = drawn(seed, 1, 12), drawn(seed + 1, 3, 12)
    added = changed("add", row, streams, dose) - streams
    torch.testing.assert_close(
        added, dose * streams.norm(dim=1)[:, None] * row / row.norm(), atol=1e-9, rtol=1e-9
    )


@pytest.mark.parametrize("kind", ["swap", "project"])
def test_a_dose_multiplies_the_change(kind):
    rows, streams = drawn(1, 2, 12), drawn(2, 3, 12)
    whole = changed(kind, rows, streams) - streams
    torch.testing.assert_close(changed(kind, rows, streams, 0.5) - streams, whole / 2)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (torch.stack([torch.ones(6), torch.ones(6) + 1e-4 * torch.arange(6)]), "nearly the same"),
        (torch.stack([torch.ones(6), -torch.ones(6)]), "nearly the same"),
        (torch.zeros(1, 6), "zero or not finite"),
        (torch.full((1, 6), torch.nan), "zero or not finite"),
    ],
)
def test_directions_without_coordinates_are_refused(rows, message):
    with pytest.raises(UserError, match=message):
        Directions.of(rows)


@pytest.mark.parametrize(("kind", "count"), [("swap", 1), ("add", 2)])
def test_changes_need_their_number_of_directions(kind, count):
    with pytest.raises(UserError, match="directions, got"):
        changed(kind, drawn(1, count, 6), drawn(2, 1, 6))


def alone(pair):
    """The pair's base prompt, with itself as its source."""
    return dataclasses.replace(pair, source=pair.base, whole=True)


def directions_of(model, layers, count=2):
    width = model.text_config.hidden_size
    return {layer: Directions.of(drawn(layer, count, width)) for layer in layers}


@torch.no_grad()
def by_hooks(model, pair, own):
    """The metric with an intervention, by hooks of PyTorch on the layers' outputs."""
    layers = model.hf.get_submodule(model.architecture.layers)
    base = {}

    def keep(layer, output):
        base[layer] = output.clone()

    def put(layer, output):
        streams, at = output.clone(), list(own.positions)
        unchanged = base[layer][0, at]
        units = own.directions[layer].unit
        if own.kind == "add":
            new = streams[0, at] + own.dose * streams[0, at].norm(dim=1)[:, None] * units.T.float()
        else:
            solved = torch.linalg.lstsq(units, unchanged.double().T).solution.T
            wanted = solved.flip(1) if own.kind == "swap" else 0 * solved
            now = torch.linalg.lstsq(units, streams[0, at].double().T).solution.T
            new = streams[0, at] + ((wanted - now) @ units.T).float()
        streams[0, at] = new
        return streams

    for change in (keep, put):
        with ExitStack() as stack:
            for layer in own.directions:
                stack.enter_context(hooked(layers[layer], "out", partial(change, layer)))
            metric = plain_metric(model, pair.base.token_ids, pair.answers)
    return metric


@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("layers", [(0,), (1,), (0, 1)])
def test_passes_equal_plain_hooks(kind, layers):
    model = tiny_model(kind)
    pair = alone(some_pair(model))
    middle, last = len(pair.base) // 2, len(pair.base) - 1
    interventions = [
        Intervention(change, directions_of(model, layers, 2 - (change == "add")), at)
        for change in ("swap", "project", "add")
        for at in ((middle, middle + 3), (last,))
    ]
    outcomes = intervene(native_grid(model, budget=TokenBudget(256)), model, pair, interventions)
    assert outcomes.base == pytest.approx(
        plain_metric(model, pair.base.token_ids, pair.answers), abs=TOLERANCE
    )
    plain = [by_hooks(model, pair, own) for own in interventions]
    assert outcomes.changed == pytest.approx(plain, abs=3 * TOLERANCE)
    assert max(abs(metric - outcomes.base) for metric in plain) > 30 * TOLERANCE


def test_rows_do_not_depend_on_how_they_share_passes():
    model = tiny_model("llama")
    pair = alone(some_pair(model))
    every = [
        Intervention("swap", directions_of(model, [layer]), (position,), seeds=(1, 2))
        for layer in (1, 0)
        for position in (3, len(pair.base) - 1)
    ]

    def metrics(interventions, tokens):
        found = intervene(
            native_grid(model, budget=TokenBudget(tokens)), model, pair, interventions
        )
        return [*found.changed, *(one for own in found.placebos for one in own)]

    together = metrics(every, 10_000)
    assert metrics(every, 1) == pytest.approx(together, abs=TOLERANCE)
    assert metrics(every[:1], 1)[:1] == pytest.approx(together[:1], abs=TOLERANCE)
    assert len(set(together)) > 8


def test_a_placebo_has_the_norm_of_the_change_at_every_token():
    norms = torch.tensor([0.5, 3.0], dtype=torch.float64)
    one, other, again = (placebo(seed, norms, torch.zeros(2, 32)) for seed in (5, 6, 5))
    torch.testing.assert_close(one.norm(dim=1), norms)
    torch.testing.assert_close(other.norm(dim=1), norms)
    cosines = torch.nn.functional.cosine_similarity(one, other)
    assert cosines.abs().max() < 0.7
    torch.testing.assert_close(one, again)


def test_encoders_are_changed_too():
    model = classifier("bert", classes=("False", "True"))
    pair = alone(some_pair(model))
    own = Intervention("project", directions_of(model, [0]), (5,))
    found = intervene(native_grid(model, budget=TokenBudget(512)), model, pair, [own])
    assert abs(found.changed[0] - found.base) > 30 * TOLERANCE


@given(SEEDS)
def test_a_swap_exchanges_the_coordinates_and_keeps_what_is_orthogonal(seed):
    rows, streams = drawn(seed, 2, 12), drawn(seed + 1, 3, 12)
    after = changed("swap", rows, streams)
    directions = Directions.of(rows)
    torch.testing.assert_close(
        directions.coordinates(after), directions.coordinates(streams).flip(1)
    )
    orthogonal = torch.linalg.qr(rows.T, mode="complete").Q[:, 2:]
    torch.testing.assert_close(after @ orthogonal, streams @ orthogonal, atol=EXACT, rtol=0)
    torch.testing.assert_close(changed("swap", rows, after), streams)


def test_layers_are_counted_from_the_first():
    model = tiny_model("llama")
    pair = alone(some_pair(model))
    last = layer_count(model) - 1
    own = Intervention("add", directions_of(model, [last], 1), (3,))
    found = intervene(native_grid(model, budget=TokenBudget(512)), model, pair, [own])
    assert found.changed[0] == pytest.approx(found.base, abs=TOLERANCE)  # no token reads it

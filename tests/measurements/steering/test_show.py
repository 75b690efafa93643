"""Tables, cautions, curves and pages of steering."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import interp
from interp.analysis.cautions.caution import NOTHING, REACH
from interp.estimates.compute import estimate
from interp.estimates.pictures import curve
from interp.estimates.shown import Estimated, largest
from interp.measurements.steering.show import STEERING, steered_prompts
from interp.report.figures.style import NOTHING_SHOWN
from interp.report.page import FigureItem, TableItem
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


def made(clusters=12, effect=1.0):
    """Effects of one swap at two layers, with two draws; only layer 1 has the effect."""
    rng, rows = np.random.default_rng(0), []
    prompts = [f"{number}-{copy}" for number in range(clusters) for copy in range(2)]
    for prompt, layer in product(prompts, (0, 1)):
        noise = rng.normal(0, 0.2, 4)
        turns = int(prompt.partition("-")[0]) < clusters / 4 and layer == 1
        rows += [
            (prompt, layer, "direction", None, effect * layer + noise[0], turns),
            (prompt, layer, "placebo", 0, noise[1], False),
            (prompt, layer, "placebo", 1, noise[2], True),
            (prompt, layer, "third", None, noise[3], False),
        ]
    names = ["prompt_id", "layer", "source", "draw", "effect", "turned"]
    same = {"model": "m", "direction": "jacobian", "change": "swap", "dose": 1.0, "role": "city"}
    frame = pd.DataFrame({"prompt_id": prompts, "pair_id": prompts, "side": "a"})
    effects = pd.DataFrame(rows, columns=names).assign(**same)
    return effects, frame, {prompt: prompt.partition("-")[0] for prompt in prompts}


def steering_table(effects, prompts, clusters):
    trials = steered_prompts(effects, prompts)
    return estimate(STEERING, trials.assign(cluster=trials["pair_id"].map(clusters)))


def test_means_are_those_by_hand():
    effects, prompts, clusters = made()
    table = steering_table(effects, prompts, clusters).set_index("layer")
    for layer in (0, 1):
        own = effects[effects["layer"] == layer]
        by_prompt = {
            source: own[own["source"] == source].groupby("prompt_id")["effect"].mean()
            for source in ("direction", "placebo", "third")
        }
        row = table.loc[layer]
        assert row["effect"] == pytest.approx(by_prompt["direction"].mean())
        assert row["placebo"] == pytest.approx(by_prompt["placebo"].mean())
        assert row["third"] == pytest.approx(by_prompt["third"].mean())
        beyond = by_prompt["direction"] - by_prompt["placebo"]
        assert row["beyond"] == pytest.approx(beyond.mean())
        assert (row["prompts"], row["clusters"]) == (24, 12)
    assert table.loc[1, "turned"] == 0.25
    assert table.loc[1, "placebo_turned"] == 0.5
    assert largest(table.reset_index(), "beyond", ["model"])["layer"].tolist() == [1]
    assert steering_table(effects[:0], prompts, clusters).empty


@pytest.fixture(scope="module")
def result():
    return interp.steer(
        tiny_model("llama"),
        some_prompts(12),
        directions=("logit",),
        changes=("swap", "add"),
        roles=("last",),
        doses=(0.5, 1.0),
        draws=2,
    )


def test_curves_over_layers_and_doses_are_drawn_with_their_placebos(result):
    figures = {item.name: item for item in result.items() if isinstance(item, FigureItem)}
    kinds = [name.partition("-")[0] for name in figures]
    assert kinds.count("by_layer") == kinds.count("by_dose") == 4  # two sides, two changes
    for figure in figures.values():
        labels = [line.get_label() for line in figure.draw().get_lines()]
        assert "random direction, same norm" in labels
        assert {"swap", "add"} & set(labels)
    (table,) = (item for item in result.items() if isinstance(item, TableItem))
    assert len(table.frame) == 2 * 2 * 2 * 2
    assert all(shown["layer"].tolist() == [0, 1] for _, shown in table.shown)
    assert set(result.opening().numbers["number"]) == {
        f"{change} (logit){what}"
        for change in ("swap", "add")
        for what in (" beyond random directions, in logits", ": answers turned")
    }
    assert any(isinstance(item, FigureItem) for item in result.report().glance.items)


@pytest.mark.parametrize(
    ("options", "layers", "kinds"),
    [
        ({"effect": 0.0}, 1, {NOTHING}),
        ({"effect": 1.0}, 1, set()),
        # 300 cells times the smallest p of 10 clusters are above 0.05, whatever the effect.
        ({"clusters": 10, "effect": 50.0}, 300, {REACH}),
    ],
)
def test_a_caution_says_where_random_directions_do_as_much(
    result, monkeypatch, options, layers, kinds
):
    effects, prompts, clusters = made(**options)
    if layers > 1:
        one = effects[effects["layer"] == 1]
        effects = pd.concat([one.assign(layer=layer) for layer in range(layers)])
    own, table = type(result)(result.measured), steering_table(effects, prompts, clusters)
    estimated = Estimated(STEERING, table)
    vars(estimated)["frame"] = table
    monkeypatch.setitem(vars(own), "estimated", (estimated,))
    assert {caution.kind for caution in own.cautions} & {NOTHING, REACH} == kinds


@pytest.mark.slow
@pytest.mark.parametrize(("effect", "said"), [(0.0, True), (1.0, False)])
def test_a_curve_that_is_nowhere_beyond_its_placebo_says_so(effect, said):
    rows = steering_table(*made(effect=effect))
    ax = curve(STEERING, rows, x="layer", lines={"effect": "swap"}, control="placebo")
    assert (f"beyond the placebo: {NOTHING_SHOWN}" in ax.get_xlabel()) == said


def test_answers_are_those_of_the_other_measurements(result):
    from interp.results.given import judged_answers

    given = judged_answers(result.measured).set_index("prompt_id")["answer"]
    scores = interp.evaluate(tiny_model("llama"), some_prompts(12))
    shares = scores.table("option_probabilities")
    best = shares.sort_values("probability").drop_duplicates("prompt_id", keep="last")
    assert given.to_dict() == best.set_index("prompt_id")["option"].to_dict()

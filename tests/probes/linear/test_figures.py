from itertools import product

import pandas as pd

from interp_probes.linear.figures import ENOUGH, probe_accuracy


def rows(model, layers, failed, entities=20):
    """Two positions of one model."""
    subsets = (("all", 400), ("recognized", 400 - failed), ("failed", failed))
    cells = product(("last_token", "premise2"), range(layers), subsets)
    table = pd.DataFrame(
        [(position, layer, *subset) for position, layer, subset in cells],
        columns=["position", "layer", "prompts", "n_prompts"],
    )
    numbers = {"accuracy": 0.7, "accuracy_low": 0.6, "accuracy_high": 0.8}
    numbers |= {"control_accuracy": 0.5, "control_sd": 0.03, "p_family": 0.01}
    return table.assign(model=model, n_clusters=entities, **numbers)


def lines(ax):
    return {line.get_label().split()[0] for line in ax.get_lines()}


def test_each_model_and_position_has_a_panel_with_its_own_layers_and_what_has_enough_prompts():
    several = [rows("a/one", 4, failed=80), rows("a/two", 7, failed=ENOUGH - 1)]
    panels = probe_accuracy(pd.concat(several)).figure.axes[:4]
    titles = [" ".join(ax.get_title().split()) for ax in panels]
    assert titles[:2] == ["a/one, last token", "a/one, premise 2"]
    assert [ax.get_xlim()[1] > 4 for ax in panels] == [False, False, True, True]
    # Few prompts are not drawn, nor is a panel without any, such as of many about few entities.
    assert [lines(ax) for ax in panels[1:3]] == [{"all", "control", "failed"}, {"all", "control"}]
    assert {ax.get_ylim() for ax in panels} == {(0.2, 1.02)}
    table = pd.concat([*several, rows("a/three", 4, failed=80, entities=2)])
    assert len([ax for ax in probe_accuracy(table).figure.axes if ax.lines]) == 4


def test_a_panel_says_if_no_layer_is_shown_to_be_above_chance():
    for p, said in ((0.06, True), (0.05, False), (float("nan"), False)):
        panels = probe_accuracy(rows("a", 3, failed=80).assign(p_family=p)).figure.axes
        assert all(("above chance" in ax.get_xlabel()) == said for ax in panels if ax.lines)

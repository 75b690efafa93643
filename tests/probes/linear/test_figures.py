import re
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
    numbers |= {"control_accuracy": 0.5, "control_sd": 0.03}
    return table.assign(model=model, n_clusters=entities, **numbers)


def lines(ax):
    return {line.get_label().split()[0] for line in ax.get_lines()}


def test_each_model_and_position_has_a_panel_with_its_own_layers_and_what_has_enough_prompts():
    several = [rows("a/one", 4, failed=80), rows("a/two", 7, failed=ENOUGH - 1)]
    panels = probe_accuracy(pd.concat(several)).figure.axes[:4]
    titles = [" ".join(ax.get_title().split()) for ax in panels]
    assert titles[:2] == ["a/one, last token", "a/one, premise 2"]
    assert [ax.get_xlim()[1] > 4 for ax in panels] == [False, False, True, True]
    # Few prompts are neither drawn nor counted.
    assert [lines(ax) for ax in panels[1:3]] == [{"all", "failed", "control"}, {"all", "control"}]
    counted = re.findall(r"(\w+): n = (\d+) .*?(\d+)", panels[0].texts[0].get_text())
    assert counted == [("all", "400", "20"), ("failed", "80", "20")]


def test_a_panel_without_lines_says_why_and_has_no_scale_of_layers():
    """Many prompts about few entities are not drawn; a dozen pairs that the table tests are."""
    tested = rows("a/one", 4, failed=4, entities=12).replace({"n_prompts": {400: 24}})
    table = pd.concat([tested, rows("a/two", 4, failed=80, entities=2)])
    drawn, empty = probe_accuracy(table[table["position"] == "premise2"]).figure.axes
    assert lines(drawn) == {"all", "control"}
    assert not empty.get_lines() and not len(empty.get_xticks())
    said = empty.texts[0].get_text()
    assert re.findall(r"(\d+) (\w+)", said) == [("20", "prompts"), ("10", "clusters")]
    assert {ax.get_ylim() for ax in (drawn, empty)} == {(0.2, 1.02)}

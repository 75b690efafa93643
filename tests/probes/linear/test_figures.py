import re

import pandas as pd

from interp_probes.linear.figures import ENOUGH, probe_accuracy


def rows(model, layers, failed, entities=20):
    """Two positions of one model."""
    return pd.DataFrame(
        {
            "model": model,
            "position": position,
            "layer": layer,
            "prompts": prompts,
            "accuracy": 0.7,
            "accuracy_low": 0.6,
            "accuracy_high": 0.8,
            "control_accuracy": 0.5,
            "control_sd": 0.03,
            "n_prompts": n,
            "n_clusters": entities,
        }
        for position in ("last_token", "premise2")
        for layer in range(layers)
        for prompts, n in (("all", 400), ("recognized", 400 - failed), ("failed", failed))
    )


def lines(ax):
    return {line.get_label().split()[0] for line in ax.get_lines()}


def test_a_row_per_position_and_a_column_per_model_with_its_own_layers():
    table = pd.concat([rows("a/one", 4, failed=80), rows("a/two", 7, failed=ENOUGH - 1)])
    panels = probe_accuracy(table).figure.axes
    assert len(panels) == 4
    assert [ax.get_xlim()[1] > 4 for ax in panels] == [False, True, False, True]
    assert [ax.get_ylabel() for ax in panels[::2]] == [
        "accuracy\nlast token",
        "accuracy\nend of premise 2",
    ]
    # Few prompts are neither drawn nor counted.
    assert [lines(ax) for ax in panels[:2]] == [{"all", "failed", "control"}, {"all", "control"}]
    counted = [
        re.findall(r"(\w+): n = (\d+) .*?(\d+)", ax.texts[0].get_text()) for ax in panels[:2]
    ]
    assert counted == [[("all", "400", "20"), ("failed", "80", "20")], [("all", "400", "20")]]


def test_many_prompts_about_few_entities_are_not_drawn():
    table = rows("a/one", 4, failed=80, entities=2)
    ax = probe_accuracy(table[table["position"] == "premise2"])
    assert not ax.get_lines()
    assert ax.get_legend() is None
    assert is_remark_alone(ax)


def test_a_dozen_pairs_that_the_table_tests_are_drawn():
    table = rows("a/one", 4, failed=4, entities=12).replace({"n_prompts": {400: 24}})
    ax = probe_accuracy(table[table["position"] == "premise2"])
    assert lines(ax) == {"all", "control"}


def test_a_panel_without_lines_says_so_in_its_middle_and_has_no_scale_of_layers():
    table = pd.concat([rows("a/one", 4, failed=80), rows("a/two", 4, failed=80, entities=2)])
    panels = probe_accuracy(table).figure.axes
    assert [is_remark_alone(ax) for ax in panels] == [False, True, False, True]
    assert [ax.get_xlabel() for ax in panels] == ["", "", "layer", ""]
    assert {ax.get_ylim() for ax in panels} == {(0.2, 1.02)}


def is_remark_alone(ax):
    (remark,) = ax.texts
    return (
        remark.get_text() == "fewer than 20 prompts\nor 10 clusters"
        and remark.get_position() == (0.5, 0.5)
        and not len(ax.get_xticks())
    )


def test_more_than_three_models_go_into_further_rows():
    table = pd.concat([rows(f"a/{number}", 3, failed=80) for number in range(4)])
    panels = probe_accuracy(table).figure.axes
    assert [ax.get_title() for ax in panels if ax.get_title()] == [f"a/{n}" for n in range(4)]
    assert [ax.axison for ax in panels] == [True] * 7 + [False] * 2 + [True] + [False] * 2


def test_one_position_of_one_model_is_one_panel():
    table = rows("a/one", 4, failed=80)
    ax = probe_accuracy(table[table["position"] == "premise2"])
    assert len(ax.figure.axes) == 1
    assert ax.get_legend() is not None

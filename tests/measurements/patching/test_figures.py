import numpy as np
import pandas as pd
import pytest

import interp
from interp.measurements.patching.figures import layers_by_roles, layers_by_tokens
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


def drawn(ax):
    """Everything that can be read on a figure, after it was drawn."""
    figure = ax.get_figure(root=True)
    figure.canvas.draw()
    texts = [*ax.texts, ax.title, *ax.get_xticklabels(), *ax.get_yticklabels()]
    return [text.get_text() for text in (*texts, ax._left_title)]


def test_layers_by_roles_shows_every_cell_and_states_n():
    result = interp.patch(tiny_model("llama"), some_prompts(3))
    table = result.summary()
    ax = layers_by_roles(table)
    shown = drawn(ax)
    assert any("n = " in text and "pairs" in text for text in shown)
    assert "premise1 entity a" in shown
    image = ax.images[0]
    assert image.norm.vmin == -image.norm.vmax
    chosen = table[(table["recognized"] == "all") & (table["role"] == "last")]
    row = [text.get_text() for text in ax.get_yticklabels()].index("last")
    np.testing.assert_allclose(image.get_array()[row], chosen["effect"])


def test_layers_by_tokens_shows_one_pair():
    result = interp.patch(
        tiny_model("llama"), some_prompts(1), sites=["z"], granularity="position", heads=[1]
    )
    ax = layers_by_tokens(result.patches, head=1)
    assert ax.images[0].get_array().shape == (2, result.pairs["base_tokens"].iloc[0])
    assert any(str(result.pairs["pair_id"].iloc[0]) in text for text in drawn(ax))


@pytest.mark.parametrize("value", [0.0, np.nan])
def test_a_figure_may_have_nothing_to_show(value):
    row = {"model": "m", "site": "z", "head": None, "role": "last", "effect": value}
    table = pd.DataFrame([{**row, "pairs": 3, "recognized": "all", "layer": n} for n in (0, 1)])
    assert "last" in drawn(layers_by_roles(table))
    assert any("no pairs" in text for text in drawn(layers_by_roles(table[:0])))

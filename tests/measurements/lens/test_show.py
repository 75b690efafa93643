"""What a run of readings shows: tables, figures, cautions, first screen, page."""

import numpy as np
import pytest

import interp
from interp.analysis.cautions.caution import EMBEDDED, LEFT_OUT
from interp.report.page import FigureItem, TableItem
from tests.support.prompts import some_prompts


@pytest.fixture(scope="module")
def result(organism):
    return interp.lens(organism, some_prompts(12), roles=("premise2_entity_b", "last"))


def test_every_figure_and_table_can_be_drawn_and_what_the_embedding_gives_is_a_caution(result):
    tables = [item for item in result.shown if isinstance(item, TableItem)]
    figures = [item for item in result.shown if isinstance(item, FigureItem)]
    assert [item.name for item in tables] == ["reading_table", "retrieval_table"]
    assert [item.name for item in figures] == [
        *("readings_0", "readings_1", "reading_grid_0", "reading_grid_1")
    ]
    for item in figures:
        assert "layer (n = " in item.draw().get_xlabel()
    grid = figures[2].draw()
    labels = [label.get_text() for label in grid.get_yticklabels()]
    assert [label.endswith(": embedding alone") for label in labels] == [False, True] * 2
    assert np.asarray(grid.images[0].get_array()).shape[0] == 4
    (caution,) = (own for own in result.cautions if own.kind == EMBEDDED)
    assert caution.model == "organism/llama-shallow"
    assert any(name.startswith("logit at premise2_entity_b") for name in caution.numbers)
    assert LEFT_OUT not in [own.kind for own in result.cautions]


def test_left_out_words_are_a_caution(organism, tmp_path):
    prompts = [one for one in some_prompts(12) if one.side == "rulebreaker"][:4]
    words = ("Norway", "Norway north", "Peru", "Italy")
    rows = [f"{one.factors['entity_b']},x,{word}" for one, word in zip(prompts, words, strict=True)]
    file = tmp_path / "facts.csv"
    file.write_text("\n".join(["fact,text,answer", *rows]))
    found = interp.lens(organism, prompts, facts=str(file), methods=("logit",))
    (caution,) = (own for own in found.cautions if own.kind == LEFT_OUT)
    assert caution.numbers == {"words": 2, "prompts": 2}


def test_own_words_have_no_right_one(organism):
    prompts = some_prompts(2)
    found = interp.lens(organism, prompts, words=("Yes", "No"), methods=("logit",))
    table = found.summary()
    assert set(table["word"]) == {"Yes", "No"}
    assert table.groupby(["layer", "side"])["first"].sum().tolist() == pytest.approx(
        [1.0] * table.groupby(["layer", "side"]).ngroups
    )
    assert [item.name for item in found.shown] == ["word_table"]
    assert found.opening().numbers.empty

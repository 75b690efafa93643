"""What a run of readings shows: tables, figures, cautions, first screen, page."""

import numpy as np
import pytest

import interp
from interp.analysis.cautions.caution import EMBEDDED, LEFT_OUT
from interp.lenses.rows import EMBEDDING
from interp.report.page import FigureItem, TableItem
from tests.measurements.lens.test_tables import TABLE
from tests.support.prompts import some_prompts


@pytest.fixture(scope="module")
def result(organism):
    return interp.lens(organism, some_prompts(12), roles=("premise2_entity_b", "last"))


def test_a_row_for_each_group_lens_and_layer(result, organism):
    table = result.summary()
    layers = len(organism.layers)
    assert table.columns.tolist() == TABLE
    assert len(table) == 2 * 2 * (layers + 1)
    assert sorted(set(table["layer"])) == [*range(EMBEDDING, layers)]
    assert table["accuracy"].between(0, 1).all()
    assert (table["accuracy"] - table["embedding"]).tolist() == pytest.approx(
        table["beyond"].tolist()
    )


def test_every_figure_and_table_can_be_drawn(result):
    tables = [item for item in result.shown if isinstance(item, TableItem)]
    figures = [item for item in result.shown if isinstance(item, FigureItem)]
    assert [item.name for item in tables] == ["reading_table", "retrieval_table"]
    assert [item.name for item in figures] == [
        *("readings_0", "readings_1", "reading_grid_0", "reading_grid_1")
    ]
    for item in figures:
        axes = item.draw()
        assert axes.get_xlabel().startswith("layer")
    grid = figures[2].draw()
    labels = [label.get_text() for label in grid.get_yticklabels()]
    assert labels[1::2] == ["embedding alone"] * 2
    assert np.asarray(grid.images[0].get_array()).shape[0] == 4


def test_the_curves_are_the_table(result):
    axes = next(item for item in result.shown if item.name == "readings_0").draw()
    rows = result.summary()
    rows = rows[(rows["group"] == rows["group"].iloc[0]) & (rows["method"] == "jacobian")]
    drawn = {line.get_label(): line.get_ydata() for line in axes.get_lines()}
    assert drawn["jacobian"].tolist() == rows["accuracy"].tolist()
    assert drawn["jacobian, embedding alone"].tolist() == rows["embedding"].tolist()


def test_the_first_screen(result):
    numbers = result.opening().numbers
    assert set(numbers["unit"]) == {"prompts"}
    assert numbers["number"].str.contains("middle layers").all()
    report = result.report()
    assert report.glance.items


def test_what_the_embedding_alone_gives_is_a_caution(result):
    (caution,) = (own for own in result.cautions if own.kind == EMBEDDED)
    assert caution.model == "organism/llama-shallow"
    assert any(name.startswith("logit at premise2_entity_b") for name in caution.numbers)
    assert LEFT_OUT not in [own.kind for own in result.cautions]


def test_left_out_words_are_a_caution(organism, tmp_path):
    file = tmp_path / "facts.csv"
    file.write_text(
        "fact,text,answer\n"
        + "".join(f"{one.factors['entity_b']},x,{word}\n" for one, word in FACTS)
    )
    prompts = [one for one, _ in FACTS]
    found = interp.lens(organism, prompts, facts=str(file), methods=("logit",))
    (caution,) = (own for own in found.cautions if own.kind == LEFT_OUT)
    assert caution.numbers == {"words": 2, "prompts": 2}


FACTS = [
    *zip(
        [one for one in some_prompts(12) if one.side == "rulebreaker"][:4],
        ("Norway", "Norway north", "Peru", "Italy"),
        strict=True,
    )
]


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

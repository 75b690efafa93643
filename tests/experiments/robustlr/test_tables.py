from itertools import product

import pandas as pd
import pytest

from interp_experiments.robustlr.page import size_lines
from interp_experiments.robustlr.tables import size_table, training_sizes
from tests.support.training import write_training


def trained(folder, *, theories, train_set="All", finished="now"):
    options = {"theories": theories, "train_set": train_set}
    return write_training(
        folder, task="robustlr", options=options, model="small-encoder", finished=finished
    )


@pytest.fixture
def models(tmp_path):
    return [
        trained(tmp_path / "much", theories=50),
        trained(tmp_path / "little", theories=10),
        trained(tmp_path / "alone", theories=10, train_set="NOT"),
        trained(tmp_path / "unfinished", theories=70, finished=None),
        "organism/llama-shallow",
        "org/name-on-the-hub",
    ]


def rows_of(models):
    cells = product(models, ("C-CS", "D-CS", "C-ES"), range(2))
    rows = [
        (model, name, f"{name} {theory}", str(model.endswith("much") or theory > 0))
        for model, name, theory in cells
    ]
    return pd.DataFrame(rows, columns=["model", "set", "pair_id", "answer"]).assign(gold="True")


def test_models_that_began_alike_are_compared_by_what_they_learned(models):
    sizes = training_sizes(dict(zip(models, models, strict=True)))
    assert sizes["model"].tolist() == models[:3]
    assert sizes["statements"].tolist() == [300, 60, 60]
    table = size_table(rows_of(models), sizes)
    found = table.set_index(["sets", "statements"])[["f1", "theories"]]
    assert found.loc[("contrast", 60)].tolist() == [0.5, 4]
    assert found.loc[("equivalence", 60)].tolist() == [0.5, 2]
    assert found.loc[("contrast", 300)].tolist() == [1, 4]
    assert len(found) == 4
    ax = size_lines(table)
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["60", "300"]


def test_one_size_is_no_comparison(models):
    sizes = training_sizes({model: model for model in models[1:]})
    assert size_table(rows_of(models[1:]), sizes).empty

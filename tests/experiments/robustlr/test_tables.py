from itertools import product

import pandas as pd
import pytest

from interp_experiments.robustlr.page import size_lines
from interp_experiments.robustlr.tables import size_table, training_sizes
from tests.support.training import write_training


@pytest.fixture
def models(tmp_path):
    made = {"task": "robustlr", "model": "small-encoder"}
    options = {"much": (50, "All"), "little": (10, "All")}
    options |= {"alone": (10, "NOT"), "unfinished": (70, "All")}
    trained = [
        write_training(
            tmp_path / name,
            **made,
            options={"theories": theories, "train_set": train_set},
            finished=None if name == "unfinished" else "now",
        )
        for name, (theories, train_set) in options.items()
    ]
    return [*trained, "organism/llama-shallow", "org/name-on-the-hub"]


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
    # One size is no comparison.
    sizes = training_sizes({model: model for model in models[1:]})
    assert size_table(rows_of(models[1:]), sizes).empty

"""The tables of patches on a terminal."""

import pandas as pd
import pytest

from interp.measurements.patching.show import _by_layer
from interp.report.console import print_table


@pytest.mark.parametrize(("recognized", "said"), [(0, True), (3, False)])
def test_a_model_that_recognizes_no_pair_is_named_and_tables_fit_80_columns(
    recognized, said, monkeypatch, capsys
):
    monkeypatch.setenv("COLUMNS", "80")
    effects = pd.DataFrame(
        [
            {
                **{"model": "m", "direction": "denoising", "method": "exact", "site": "resid_pre"},
                **{"source": "counterpart", "layer": layer, "head": None, "recognized": group},
                **{"role": "conclusion_entity_b", "pairs": pairs, "effect": -10.123},
                "recovered": float("nan"),
            }
            for layer in range(30)
            for group, pairs in (("all", 4), ("yes", recognized))
        ]
    )
    titled = list(_by_layer(effects))
    assert all(("none" in title) == said for title, _ in titled)
    for title, table in titled:
        print_table(table, title=title)
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80

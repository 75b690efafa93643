"""What the ledger's page says of few failures: counts, and no bars."""

import pandas as pd
import pytest

from interp_probes.ledger.page import SHOWN, _headline, sentences, share_figures, wide
from interp_probes.ledger.results import ALL, LedgerResults


def results_of(counts, clusters):
    """The results of one model whose failures have these entries."""
    n = sum(counts)
    rows = pd.DataFrame({"entry": SHOWN, "share": [own / n for own in counts]})
    rows = rows.assign(model="m", factor=ALL, value="", answered="wrong", n=n, clusters=clusters)
    rows = rows.assign(low=0.0, high=1.0, retrieved_error=0.05, used_error=0.05, seen=0.0)
    results = object.__new__(LedgerResults)
    answers = pd.DataFrame({"model": "m", "prompt_id": map(str, range(n)), "correct": False})
    results.__dict__.update(shares=rows, models=["m"], answers=answers, cautions=())
    return results


@pytest.mark.parametrize("clusters", [2, 9])
def test_of_failures_in_few_clusters_there_are_counts(clusters):
    results = results_of([1, 1, 0, 0], clusters)
    assert wide(results.shares)[[*SHOWN]].iloc[0].tolist() == ["1 of 2"] * 2 + ["0 of 2"] * 2
    assert not share_figures(results, "ledger_bars")
    (said,) = sentences(results)
    assert said.count("1 of 2") == 2
    assert "%" not in said
    numbers = _headline(results)
    assert numbers["value"].isna().all()
    assert numbers["note"].tolist() == ["1 of 2", "1 of 2", "0 of 2", "0 of 2"]


def test_of_failures_in_ten_clusters_there_are_shares():
    results = results_of([9, 1, 0, 0], 10)
    assert wide(results.shares)[SHOWN[0]].iloc[0].startswith("0.90 [")
    assert [figure.name for figure in share_figures(results, "ledger_bars")] == ["ledger_bars"]
    (said,) = sentences(results)
    assert ("90%" in said, "9 of 10" in said) == (True, False)
    assert _headline(results)["value"].tolist() == pytest.approx([0.9, 0.1, 0.0, 0.0])

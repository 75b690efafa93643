"""The ledger of a fact: entries by hand, planted shares, and what cannot be joined."""

from itertools import product

import numpy as np
import pandas as pd
import pytest

import interp
from benchmarks.controls.ledger import planted_entries, simulated_ledger
from interp.errors import UserError
from interp.measurements.lens.ledger import ENTRIES, known_by_wording, ledger, ledger_table, used
from interp_probes.api import probe_knowledge
from tests.measurements.lens.test_tables import clusters_of
from tests.support.prompts import some_prompts


def effects_of(strengths):
    """Rows of steering_effects: a prompt's effect, and random directions of mean 0.5."""
    chance, rows = np.random.default_rng(0), []
    for (number, strength), layer in product(enumerate(strengths), (0, 1)):
        own = [("direction", None, strength + 0.5), ("third", None, 9.0)]
        own += [("placebo", draw, effect) for draw, effect in enumerate(chance.normal(0.5, 1, 4))]
        rows += [(f"p{number}", layer, *one) for one in own]
    table = pd.DataFrame(rows, columns=["prompt_id", "layer", "source", "draw", "effect"])
    return table.assign(model="m", role="city", direction="jacobian", change="swap", dose=1.0)


def measured(known, retrieved, strengths, correct):
    """The tables that `ledger` joins; prompt n is about fact n."""
    count = range(len(known))
    prompts = pd.DataFrame({"model": "m", "prompt_id": [f"p{n}" for n in count]})
    facts = [f"f{n}" for n in count]
    about = {"group": "city", "method": "jacobian", "cluster": facts, "fact": facts}
    return (
        pd.DataFrame({"model": "m", "prompt_id": facts, "known": known}),
        prompts.assign(**about, retrieved=retrieved, error=0.05),
        effects_of(strengths),
        prompts.assign(correct=correct),
    )


def test_verdicts_on_use_equal_loops():
    effects, clusters = effects_of([0.0, 3.0, 0.2, 5.0, 1.0, 0.0]), clusters_of([0, 0, 1, 1, 2, 2])
    found = used(effects, clusters).set_index("prompt_id")
    beyond = {}
    for one, rows in effects[effects["source"] == "placebo"].groupby("prompt_id"):
        means = rows.groupby("draw")["effect"].mean().to_numpy()
        beyond[one] = [m - np.mean(np.delete(means, n)) for n, m in enumerate(means)]
        own = effects[(effects["prompt_id"] == one) & (effects["source"] == "direction")]
        assert found.loc[one, "strength"] == pytest.approx(own["effect"].mean() - means.mean())
    for one, own in beyond.items():
        others = np.sort([b for p in beyond if clusters[p] != clusters[one] for b in beyond[p]])
        threshold = others[int(np.ceil(0.95 * (len(others) - 1)))]
        assert found.loc[one, "threshold"] == pytest.approx(threshold)
        assert found.loc[one, "used"] == (found.loc[one, "strength"] > threshold)
        assert found.loc[one, "error"] == np.mean(np.array(own) > threshold)
    alone = used(effects_of([9.0, 9.0]), pd.Series({"p0": "c", "p1": "c"}))
    assert alone[["used", "threshold"]].isna().all(axis=None)  # of a single cluster


def test_an_entry_is_the_first_step_that_is_missing():
    known = [False, False, True, True, True, True]
    retrieved = [False, True, False, False, True, True]
    strengths = [9.0, 9.0, 9.0, -9.0, -9.0, 9.0]
    found = ledger(*measured(known, retrieved, strengths, [False] * 6))
    assert found["entry"].map(ENTRIES.index).tolist() == [0, 0, 1, 1, 2, 3]
    # A missing verdict matters only if the entry depends on it.
    known, retrieved = [False, True, True], pd.array([pd.NA, pd.NA, False], dtype="boolean")
    found = ledger(*measured(known, retrieved, [9.0, 9.0, 9.0], [False] * 3))
    assert found["entry"].fillna("none").tolist() == [ENTRIES[0], "none", ENTRIES[1]]


def test_a_fact_is_judged_by_the_wording_that_is_best_on_other_facts():
    """Clusters 1 and 2 judge each other; the fact "extra" is in no prompt and helps to choose."""
    completed = {"a": "01-", "b": "011", "c": "110", "d": "001", "extra": "100"}
    known = pd.DataFrame(
        [
            ("m", fact, wording, mark == "1")
            for fact, marks in completed.items()
            for wording, mark in zip(("as asked", "x", "y"), marks, strict=True)
            if mark != "-"
        ],
        columns=["model", "fact", "wording", "known"],
    )
    chosen = known_by_wording(known, pd.Series({"a": 1, "b": 2, "c": 1, "d": 2}))
    # For a and c: b, d and extra complete 1 of 3, 1 of 3 and 2 of 3; a was not asked in the last.
    # For b and d: a, c and extra complete 2 of 3, 2 of 3 and 0 of 2; the first of equals counts.
    found = {row.fact: (row.wording, row.known) for row in chosen.itertuples()}
    assert found == {
        "a": ("as asked", False),
        "c": ("y", False),
        "b": ("as asked", False),
        "d": ("as asked", False),
    }
    alone = known_by_wording(known[known["fact"] == "b"], pd.Series({"b": 1}))
    assert alone[["wording", "known"]].to_numpy().tolist() == [["as asked", False]]


def test_planted_shares_are_found():
    chance = np.random.default_rng(2)
    count, shares = 400, np.array([0.2, 0.3, 0.1, 0.4])
    planted = chance.choice(4, size=count, p=shares)
    tables = measured(
        planted > 0, planted > 1, np.where(planted > 2, 8.0, -8.0), np.arange(count) % 2 == 0
    )
    table = ledger_table(ledger(*tables))
    assert table["n"].tolist() == [200] * 8
    for answered, rows in table.groupby("answered"):
        own = planted[np.arange(count) % 2 == (0 if answered == "right" else 1)]
        by_hand = np.bincount(own, minlength=4) / len(own)
        assert rows["share"].tolist() == pytest.approx(by_hand.tolist())
        assert rows["share"].sum() == pytest.approx(1)


@pytest.mark.slow
def test_intervals_cover_planted_shares_although_verdicts_err():
    """In simulated studies of 60 prompts; `benchmarks/controls/ledger.py` has the exact rates."""
    rng, hits, planted = np.random.default_rng(3), [], np.full(4, 0.25)
    for _ in range(40):
        entries = planted_entries(rng, tuple(planted), clusters=60, each=1)
        found = simulated_ledger(rng, entries, each=1)
        low, high = ledger_table(found)[["low", "high"]].to_numpy().T
        hits.append((low <= planted) & (planted <= high))
        assert found["retrieved_error"].mean() > 0.02  # the verdicts do err
        assert found["used_error"].mean() > 0.01
    # At the nominal rate, fewer than 34 of 40 are covered in 1 of 400 cases.
    assert np.mean(hits, axis=0).min() >= 34 / 40


def entries_of(entries, retrieved, used_):
    """The table of wrong answers with these entries, each about a fact of its own."""
    errors = {"retrieved_error": retrieved, "used_error": used_}
    rows = pd.DataFrame({"model": "m", "correct": False, "entry": entries, **errors})
    return ledger_table(rows.assign(cluster=range(len(rows)))).set_index("entry")


def test_shares_without_the_errors_of_verdicts_equal_the_counts_of_a_thousand_prompts():
    # Of 400 not retrieved, 300 not used and 100 used prompts: one in ten is found retrieved, and
    # one in five used, although it is not.
    counts = [200, 400 * 0.9, 400 * 0.1 * 0.8 + 300 * 0.8, 400 * 0.1 * 0.2 + 300 * 0.2 + 100]
    entries = np.repeat(ENTRIES, np.round(counts).astype(int))
    table, counted = entries_of(entries, 0.1, 0.2), entries_of(entries, 0.0, 0.0)
    planted = pd.Series([0.2, 0.4, 0.3, 0.1], ENTRIES)
    assert table["share"].tolist() == pytest.approx([0.2, 0.36, 0.272, 0.168])
    assert ((table["low"] < planted) & (planted < table["high"])).all()
    assert ((table["low"] <= table["share"]) & (table["share"] <= table["high"])).all()
    # The ends are those of the counted share or of the planted one, whichever is further.
    half = (counted["high"] - counted["low"]) / 2
    expected = np.fmin(counted["low"], planted - half), np.fmax(counted["high"], planted + half)
    for end, own in zip(("low", "high"), expected, strict=True):
        assert table[end].tolist() == pytest.approx(own.tolist(), abs=0.015)
    # Of 60 prompts, none is found used, although the verdict errs in 5% of cases elsewhere.
    few = entries_of([ENTRIES[2]] * 60, 0.05, 0.05)
    assert few.loc[ENTRIES[2], "low"] < 0.97 and few.loc[ENTRIES[3], "high"] > 0.03


def test_what_cannot_be_joined_is_refused():
    known, retrieved, effects, answers = measured([True] * 3, [True] * 3, [1.0] * 3, [True] * 3)
    two = pd.concat([retrieved, retrieved.assign(group="last")])
    with pytest.raises(UserError, match="several groups"):
        ledger(known, two, effects, answers)
    with pytest.raises(UserError, match=r"dose 1\.0, 2\.0"):
        ledger(known, retrieved, pd.concat([effects, effects.assign(dose=2.0)]), answers)
    with pytest.raises(UserError, match="draws >= 2"):
        ledger(known, retrieved, effects[effects["draw"].isna() | (effects["draw"] == 0)], answers)
    with pytest.raises(UserError, match="no prompt has a fact"):
        ledger(known.assign(prompt_id="other"), retrieved, effects, answers)


@pytest.mark.slow
def test_three_measurements_of_a_model_are_joined(organism):
    prompts, at = some_prompts(6), {"roles": ("premise1_entity_b",)}
    known = probe_knowledge(organism, interp.load_facts("rulebreakers"))
    read = interp.lens(organism, prompts, facts="rulebreakers", methods=("logit",), **at)
    steered = interp.steer(
        organism, prompts, words="entity_a", directions=("logit",), layers=(0,), **at
    )
    found = read.ledger(known, steered)
    readable = read.retrieved["prompt_id"]
    assert set(found["prompt_id"]) == set(readable)
    facts = known.table("knowledge").set_index("prompt_id")["known"]
    assert found["known"].tolist() == facts[found["fact"]].tolist()
    assert set(found["entry"].dropna()) <= set(ENTRIES)
    for row in found.itertuples():
        assert row.fact.endswith(f"/{row.cluster}")
    shares = read.ledger_shares(known, steered)
    totals = shares.groupby("answered")["share"].sum()
    assert totals.tolist() == pytest.approx([1.0] * len(totals))

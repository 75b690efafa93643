"""What was named in advance, on answers whose scores are known; the sentences made from it."""

import re

import numpy as np
import pandas as pd
import pytest

from interp.analysis.cautions.caution import CONSTANT, Caution
from interp.prompts.systems import Contrast
from interp.report.page import MOST_SENTENCES, MOST_WORDS
from interp.statistics.contrasts import contrast_table
from interp_experiments.robustlr import tables
from interp_experiments.robustlr.findings import (
    AGAINST_GUESS,
    BETWEEN_MODELS,
    BETWEEN_SETS,
    TEST_SPLIT,
    comparisons,
    finding_section,
    first_screen,
)
from interp_experiments.robustlr.results import BARE, SETS, Results, theory_scores
from interp_experiments.robustlr.system import bare, system
from tests.support.pages import ONE_OF_MANY

EACH = 24


def answered_by(prompts, **answers):
    """The prompts once for each model, with its answers."""
    columns = ["prompt_id", "pair_id", "side", "set", "group", "base_label", "gold"]
    return pd.concat(
        [prompts[columns].assign(model=model, answer=said) for model, said in answers.items()],
        ignore_index=True,
    )


@pytest.fixture(scope="module")
def stages():
    """One model says Unknown throughout in the sets, and one is mostly right."""
    rng = np.random.default_rng(0)
    prompts = system.prompts(seed=0, data=None).spread(6 * EACH).to_frame()
    short = bare.prompts(seed=0, data=None).spread(60).to_frame()
    gold = prompts["gold"].to_numpy()
    right = np.where(rng.random(len(prompts)) < 0.8, gold, "True")
    return {
        SETS: answered_by(prompts, unknown="Unknown", able=right),
        BARE: answered_by(short, unknown=short["gold"], able=short["gold"]),
    }


def test_a_model_is_held_against_the_best_constant_guess_theory_by_theory(stages):
    table = comparisons(stages)
    against = table[table["kind"] == AGAINST_GUESS].set_index(["model", "sets"])
    assert set(against.index.get_level_values("sets")) == {
        *(name for names in tables.SETS.values() for name in names),
        *("contrast sets", "equivalence sets", TEST_SPLIT),
    }
    same = against.loc[("unknown", "C-CS")]
    assert (same["difference"], same["p"], same["n"]) == (0, 1, f"{EACH} theories")
    scores = theory_scores(stages[SETS].query("set == 'C-CS'"), ["model", "pair_id"])
    apart = scores.pivot(index="pair_id", columns="model", values="f1")
    row = against.loc[("able", "C-CS")]
    # To say Unknown throughout is the best constant guess there.
    assert row["difference"] == pytest.approx((apart["able"] - apart["unknown"]).mean())
    named = [Contrast("model", ("able", "unknown"))]
    paired = scores.assign(paired=scores["f1"])
    (expected,) = contrast_table(paired, named=named, cluster="pair_id").to_dict("records")
    for column in ("difference", "low", "high", "p", "excluded_above", "share_b", "clusters"):
        assert row[column] == pytest.approx(expected[column]), column
    assert against.loc[("able", TEST_SPLIT), "share_a"] == 1
    assert against.loc[("able", TEST_SPLIT), "n"] == "60 statements"


def test_sets_and_models_are_compared_and_all_is_one_family(stages):
    table = comparisons(stages)
    kinds = {AGAINST_GUESS: 2 * 9, BETWEEN_SETS: 2 * 3, BETWEEN_MODELS: 2}
    assert table["kind"].value_counts().to_dict() == kinds
    tested = table.dropna(subset="p")
    smallest = tested["p"].idxmin()
    assert table.loc[smallest, "p_holm"] == pytest.approx(len(tested) * tested.loc[smallest, "p"])
    models = table[table["kind"] == BETWEEN_MODELS].set_index("sets")
    assert models.loc["contrast sets", "contrast"] == "unknown - able"
    assert models.loc["contrast sets", "paired"] and models.loc["contrast sets", "difference"] < 0
    between = table[table["kind"] == BETWEEN_SETS]
    assert not between["paired"].any()
    assert between["contrast"].tolist() == ["C-CS - D-CS", "C-CS - N-CS", "D-CS - N-CS"] * 2


def test_findings_say_n_interval_and_p_and_what_is_excluded(stages):
    compared = comparisons(stages)
    first = first_screen(Results(stages, []), compared)
    assert len(first.sentences) == MOST_SENTENCES
    assert all(len(line.split()) <= MOST_WORDS for line in first.sentences), first.sentences
    f1, *short = first.sentences
    assert re.match(r"Weighted F1\b.*contrast sets.*0\.\d\d \[\S+ \S+\].*able", f1)
    assert "best constant guess" in set(first.items[0].frame["model"])
    assert re.match(r"Accuracy .*guessing: 2 of 2\b.*\b0\b", short[0])
    assert all(" theories" in line or " statements" in line for line in short)
    assert [item.name for item in finding_section(compared).items] == ["comparisons"]
    # One theory is not a plural.
    one = {name: rows[rows["pair_id"] == rows["pair_id"].iloc[0]] for name, rows in stages.items()}
    first = first_screen(Results(one, []), comparisons(one))
    assert not ONE_OF_MANY.search(" ".join([first.question, *first.sentences]))
    # Scores of a model that does not read are blank, and the guess stays.
    void = Caution(CONSTANT, "able", "always True", voids=True)
    first = first_screen(Results(stages, [], cautions=(void,)), compared)
    numbers = first.items[0].frame.set_index("model")["value"]
    assert numbers["able"].isna().all() and numbers["best constant guess"].notna().any()
    assert first.cautions == (void,) and "for able" not in first.sentences[0]


def test_fewer_than_ten_theories_are_not_tested(stages):
    rows = stages[SETS]
    few = rows.groupby("set")["pair_id"].unique().map(lambda ids: ids[:6]).explode()
    table = comparisons({SETS: rows[rows["pair_id"].isin(few)]})
    alone = table[~table["sets"].str.contains("sets")]
    assert alone["p"].isna().all() and (alone["verdict"] == "not tested").all()
    scores = tables.scores(rows[rows["pair_id"].isin(few)])
    assert (scores["theories"] == 6).all() and scores["f1_low"].notna().all()

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from statsmodels.stats.anova import anova_lm

from interp.measurements.answers.seeds import seed_components, seed_table


def shares(rng, *, clusters=60, seeds=5, seed=0.0, cluster=0.2, rest=0.1):
    """Entities by seeds, with these standard deviations."""
    return (
        0.5
        + rng.normal(0, cluster, clusters)[:, None]
        + rng.normal(0, seed, seeds)
        + rng.normal(0, rest, (clusters, seeds))
    )


def test_the_components_are_those_of_an_analysis_of_variance():
    table = shares(np.random.default_rng(0), seed=0.05)
    long = pd.DataFrame(table).rename_axis("c").reset_index().melt("c", var_name="s")
    anova = anova_lm(smf.ols("value ~ C(c) + C(s)", long).fit())
    squares, found = anova["mean_sq"], seed_components(table)
    rest = squares["Residual"]
    expected = {
        "p": anova.loc["C(s)", "PR(>F)"],
        "sd_residual": np.sqrt(rest),
        "sd_seed": np.sqrt((squares["C(s)"] - rest) / 60),
        "sd_cluster": np.sqrt((squares["C(c)"] - rest) / 5),
        "sd_of_mean": table.mean(axis=0).std(ddof=1),
    }
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_known_components_are_found_and_the_interval_holds_the_truth():
    rng = np.random.default_rng(1)
    found = pd.DataFrame([seed_components(shares(rng, seed=0.05)) for _ in range(300)])
    squares = (found[["sd_seed", "sd_cluster", "sd_residual"]] ** 2).mean() ** 0.5
    assert squares.tolist() == pytest.approx([0.05, 0.2, 0.1], rel=0.1)
    truth = np.sqrt(0.05**2 + 0.1**2 / 60)
    assert ((found["sd_low"] < truth) & (truth < found["sd_high"])).mean() == pytest.approx(
        0.95, abs=0.04
    )


def test_pairs_are_counted_by_entity_and_seed():
    rng = np.random.default_rng(3)
    pairs = pd.DataFrame(
        {
            "model": "m",
            "seed": np.repeat([0, 1, 2], 40),
            "entity": np.tile(np.arange(20).repeat(2), 3),
            "paired": rng.random(120) < 0.5,
        }
    )
    # An entity that one seed did not draw is left out.
    pairs = pairs[~((pairs["seed"] == 1) & (pairs["entity"] == 7))]
    (row,) = seed_table(pairs, measures=["paired"], cluster="entity").to_dict("records")
    assert (row["model"], row["measure"], row["seeds"], row["clusters"]) == ("m", "paired", 3, 19)
    common = pairs[pairs["entity"] != 7]
    assert row["mean"] == pytest.approx(common["paired"].mean())
    by_seed = common.groupby("seed")["paired"].mean()
    assert row["sd_of_mean"] == pytest.approx(by_seed.std())


@pytest.mark.parametrize(
    ("clusters", "seeds", "reason"),
    [(9, 3, "at least 10 are needed"), (20, 1, "only one seed"), (20, 3, "no cluster differs")],
)
def test_what_cannot_be_said_has_a_reason(clusters, seeds, reason):
    found = seed_components(np.tile(np.linspace(0, 1, clusters)[:, None], seeds))
    assert np.isnan(found["p"])
    assert reason in found["note"]

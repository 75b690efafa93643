"""The confirmatory contrasts: of raw means, held to other libraries, and what is said of them."""

import re

import numpy as np
import pandas as pd
import pytest
import statsmodels.formula.api as smf
from scipy import stats

from interp.report.page import Report
from interp.report.write import write_report
from interp_experiments.logical_forms.effects import (
    FACTORS,
    confirmatory,
    contrasts_by_model,
    effects,
    means_by_model,
    pooled_contrasts,
)
from interp_experiments.logical_forms.sections import adjusted_section, models_section
from tests.experiments.logical_forms.made_up import made_up, of_rows, screen, with_vocabulary


def said(results):
    return "\n".join(screen(results).sentences)


def test_a_difference_that_goes_through_perplexity_is_found_and_is_that_of_the_means_beside_it():
    """Modus ponens is better by 0.03, all of it by the lower perplexity of its words."""
    rows = made_up(1, questions=40)
    perplexity = rows["relative_perplexity"] - 2.0 * rows["argument_form"].eq("mp")
    accuracy = 0.6 - 0.015 * perplexity + np.random.default_rng(0).normal(0, 0.05, len(rows))
    results = of_rows(rows.assign(relative_perplexity=perplexity, soft_accuracy=accuracy))
    tests = confirmatory(results).tests.set_index(["first", "second"])
    row = tests.loc["or", "mp"]
    assert row["difference"] == pytest.approx(-0.03, abs=0.01)
    assert row["p_holm"] < 0.001
    forms = said(results).partition("Soft accuracy by argument form, valid forms: ")[2]
    assert "of 3 differ; " in forms and "mp" in forms.partition("largest ")[2].partition(":")[0]
    # The paper's model takes it for perplexity.
    adjusted = effects(results.pooled("questions", valid=True), response="soft_accuracy").tests
    assert adjusted.set_index(["first", "second"]).loc[("or", "mp"), "p_holm"] > 0.05
    found = confirmatory(of_rows(made_up(1)))
    means = found.means.set_index("level")["mean"]
    for row in found.tests.to_dict("records"):
        assert row["difference"] == pytest.approx(means[row["first"]] - means[row["second"]])
    levels = ["none", "box", "diamond", "or", "mp", "mt"]
    assert found.means["level"].tolist() == levels


@pytest.mark.parametrize("models", [1, 2])
def test_contrasts_of_few_models_are_those_of_statsmodels_with_errors_by_interpretation(models):
    rows = made_up(models).drop(index=[3, 40])
    found = confirmatory(of_rows(rows))
    assert not found.model.random
    valid = rows[rows["gold"] == "Yes"]
    for factor in FACTORS:
        for row in found.tests[found.tests["factor"] == factor].to_dict("records"):
            formula = f"soft_accuracy ~ C({factor}, Treatment('{row['second']}'))"
            levelled = valid.assign(**{factor: valid[factor].astype(str)})
            groups = {"groups": valid["interpretation"].astype(int)}
            own = smf.ols(formula + " + model" * (models > 1), levelled).fit(
                cov_type="cluster", cov_kwds=groups, use_t=True
            )
            (name,) = (term for term in own.params.index if f"[T.{row['first']}]" in term)
            assert row["difference"] == pytest.approx(own.params[name], abs=1e-12)
            assert row["standard_error"] == pytest.approx(own.bse[name], rel=1e-9)
            assert row["p"] == pytest.approx(own.pvalues[name], rel=1e-6)
            assert (row["low"], row["high"]) == pytest.approx(tuple(own.conf_int().loc[name]))
            limits = own.conf_int(0.1).loc[name]
            assert (row["excluded_below"], row["excluded_above"]) == pytest.approx(tuple(limits))


@pytest.mark.slow
def test_of_several_models_each_is_one_observation(results):
    found = confirmatory(results)
    assert found.model.random
    valid = results.pooled("questions", valid=True)
    means = valid.groupby(["model", "modality"], observed=True)["soft_accuracy"].mean().unstack()
    expected = stats.ttest_rel(means["none"], means["box"])
    row = found.tests.set_index(["first", "second"]).loc["none", "box"]
    assert (row["t"], row["p"]) == pytest.approx((expected.statistic, expected.pvalue))
    low, high = expected.confidence_interval()
    assert (row["low"], row["high"]) == pytest.approx((low, high))
    level = found.means.set_index("level").loc["none"]
    interval = stats.t.interval(0.95, 4, means["none"].mean(), stats.sem(means["none"]))
    assert (level["low"], level["high"]) == pytest.approx(interval)
    assert level["models"] == 5
    assert ", 5 models." in said(results)
    # Two models are too few to be a sample.
    two = of_rows(results.scores["questions"].query("model in ['model 0', 'model 1']"))
    assert " interpretations, 2 models." in said(two)


@pytest.mark.slow
def test_contrasts_are_of_each_model_and_then_pooled(results):
    contrasts = contrasts_by_model(results)
    pooled = pooled_contrasts(contrasts).set_index(["response", "first", "second"])
    assert set(pooled["models"]) == {5}
    row = pooled.loc["soft accuracy", "none", "box"]
    own = contrasts.query("response == 'soft accuracy' and first == 'none' and second == 'box'")
    assert own["model"].nunique() == 5
    assert row["estimate"] == pytest.approx(own["difference"].mean())
    assert row["p_holm"] >= row["p"]
    confirmed = confirmatory(results).tests.set_index(["first", "second"])
    assert confirmed.loc[("none", "box"), "p_holm"] == row["p_holm"]
    alone = with_vocabulary({"questions": made_up(1)})
    assert pooled_contrasts(contrasts_by_model(alone))["estimate"].isna().all()
    # The pairs of each model and response are corrected together, and their family says so.
    by_model = contrasts.groupby(["model", "response"])["family"]
    assert (by_model.nunique() == 1).all()
    assert contrasts["family"].nunique() == by_model.ngroups == 10
    means = means_by_model(results)
    # Six levels of valid forms, nine of all.
    assert means.groupby(["model", "response"]).size().unstack().to_numpy().tolist() == [[9, 6]] * 5


def test_where_no_difference_is_shown_it_is_said_what_is_excluded():
    rng = np.random.default_rng(0)
    rows = made_up(1)
    narrow = of_rows(rows.assign(soft_accuracy=0.6 + rng.normal(0, 0.05, len(rows))))
    assert re.search(r"modality, .*: .* 3 comparisons; −0\.0", said(narrow))
    assert set(confirmatory(narrow).tests["verdict"]) == {"smaller"}
    noisy = of_rows(rows.assign(soft_accuracy=0.5 + rng.normal(0, 1.0, len(rows))))
    assert set(confirmatory(noisy).tests["verdict"]) == {"open"}


def test_answers_that_never_vary_or_lack_a_modality_are_not_tested():
    rows = made_up(1).assign(soft_accuracy=0.1 + 0.2)
    found = confirmatory(of_rows(rows))
    assert (found.tests["difference"] == 0).all()
    assert found.tests["p"].isna().all()
    assert set(found.tests["verdict"]) == {"not tested"}
    assert re.search(r"modality, valid forms: .* 3 ", said(of_rows(rows)))
    box = rows[rows["modality"] == "box"]
    for why in (confirmatory(of_rows(box)), effects(box, "soft_accuracy", factors=("modality",))):
        assert re.search(r"modality.*\bbox", str(why))


@pytest.mark.slow
def test_slopes_have_a_figure_from_three_models_on(results, tmp_path):
    section = adjusted_section(results)
    assert "figure4_slopes" in [getattr(item, "name", "") for item in section.items]
    page = write_report(Report("made up", "", (section,)), tmp_path)
    assert "slope for perplexity" in page.read_text(encoding="utf-8")
    slopes = pd.read_csv(tmp_path / "tables" / "slopes.csv")
    # Drawn around -0.03 with a standard deviation of 0.01.
    assert (slopes["relative_perplexity"] < 0).all()
    assert models_section(results).items[0].name == "pooled_contrasts"
    # Neither has one model.
    one = with_vocabulary({"questions": results.scores["questions"].query("model == 'model 0'")})
    names = [item.name for item in adjusted_section(one).items]
    assert "figure4_slopes" not in names and "adjusted_means" in names
    assert [item.name for item in models_section(one).items] == [
        "means_by_model",
        "contrasts_by_model",
    ]

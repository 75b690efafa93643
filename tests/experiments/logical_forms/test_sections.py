"""Sections on contrasts and mixed models, also where there is no model to fit."""

import pandas as pd
import pytest

from interp.report.page import Report
from interp.report.write import write_report
from interp_experiments.logical_forms.sections import adjusted_section, models_section
from tests.experiments.logical_forms.made_up import with_vocabulary


@pytest.mark.slow
def test_slopes_have_a_figure_from_three_models_on(results, tmp_path):
    section = adjusted_section(results)
    assert "figure4_slopes" in [getattr(item, "name", "") for item in section.items]
    page = write_report(Report("made up", "", (section,)), tmp_path)
    assert "slope for perplexity" in page.read_text(encoding="utf-8")
    slopes = pd.read_csv(tmp_path / "tables" / "slopes.csv")
    # Drawn around -0.03 with a standard deviation of 0.01.
    assert (slopes["relative_perplexity"] < 0).all()
    one = results.scores["questions"]
    single = with_vocabulary({"questions": one[one["model"] == "model 0"]})
    names = [item.name for item in adjusted_section(single).items]
    assert "figure4_slopes" not in names
    assert "adjusted_means" in names


def test_contrasts_of_one_model_are_not_pooled(results):
    assert models_section(results).items[0].name == "pooled_contrasts"
    one = results.scores["questions"]
    single = models_section(with_vocabulary({"questions": one[one["model"] == "model 0"]}))
    assert [item.name for item in single.items] == ["means_by_model", "contrasts_by_model"]

import pandas as pd

from interp.report.page import Report
from interp.report.write import write_report
from interp_experiments.logical_forms.sections.valid_forms import adjusted_section
from tests.experiments.logical_forms.made_up import with_vocabulary


def test_slopes_have_a_figure_from_three_models_on(results, tmp_path):
    section = adjusted_section(results)
    assert "figure4_slopes" in [getattr(item, "name", "") for item in section.items]
    page = write_report(Report("made up", "", (section,)), tmp_path)
    assert "Intercept and slope of perplexity of each model" in page.read_text(encoding="utf-8")
    slopes = pd.read_csv(tmp_path / "tables" / "slopes.csv")
    # Drawn around -0.03 with a standard deviation of 0.01.
    assert (slopes["relative_perplexity"] < 0).all()
    one = results.scores["questions"]
    single = with_vocabulary({"questions": one[one["model"] == "model 0"]})
    names = [item.name for item in adjusted_section(single).items]
    assert "figure4_slopes" not in names
    assert "adjusted_means" in names

"""Figures of made-up scores: who is gray, what has an interval, what is raw and what adjusted."""

import pandas as pd
import pytest

from interp_experiments.logical_forms import figures, tables
from interp_experiments.logical_forms.effects import effects
from tests.experiments.logical_forms.made_up import apart, made_up, of_rows


@pytest.fixture
def results():
    lost = made_up(1, seed=1).assign(model="lost", perplexity=5_000.0)
    return of_rows(pd.concat([made_up(1), lost]))


def test_a_model_that_cannot_read_is_grey_and_without_intervals(results):
    table = tables.by_form(results).query("set == 'questions'")
    ax = figures.forms_over_perplexity(table, competent=results.competent)
    panels = {panel.get_title(): panel for panel in ax.figure.axes if panel.get_title()}
    shown = {
        name: ({line.get_color() for line in panel.lines}, len(panel.collections))
        for name, panel in panels.items()
    }
    assert shown["lost"] == ({"#b4bac0"}, 0)
    colors, whiskers = shown["model 0"]
    assert (len(colors), whiskers) == (3, 24)  # modalities, forms
    assert "not in any mixed model" in panels["lost"].get_xlabel()
    assert "not in any mixed model" not in panels["model 0"].get_xlabel()


def test_every_mean_of_a_table_has_an_interval(results):
    by_form, levels = tables.by_form(results), tables.intervals(results.scores["questions"])
    means = [by_form[f"soft_accuracy{end}"] for end in ("", "_low", "_high")]
    for mean, low, high in (means, (levels["mean"], levels["low"], levels["high"])):
        assert mean.between(low, high, inclusive="neither").all()
    # Table 1's columns, soft and hard: overall, three modalities, six argument forms.
    assert levels.groupby(["model", "measure"]).size().tolist() == [10] * 4


def test_raw_means_are_drawn_beside_adjusted_ones():
    found = effects(apart(), response="soft_accuracy")
    ax = figures.estimated_means(found.means, response="soft accuracy")
    drawn = {one.get_label(): one.lines[0].get_xdata().tolist() for one in ax.containers}
    assert drawn["adjusted"] == pytest.approx(found.means["mean"].tolist())
    assert drawn["raw"] == pytest.approx(found.means["raw_mean"].tolist())
    labels = [label.get_text() for label in ax.get_yticklabels()]
    assert [label for label in labels if "extrapolated" in label] == [
        label for label in labels if label.startswith(("no modality", "□", "◇"))
    ]

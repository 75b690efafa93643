"""Effects of segments as trials and as a table."""

import pandas as pd
import pytest

import interp
from interp.choices import UNCHANGED
from interp.estimates.compute import estimate
from interp.measurements.effects.show import SEGMENTS, _bars, segment_trials
from interp.report.figures.style import NOTHING_SHOWN


def table_of(rows):
    return estimate(SEGMENTS, segment_trials(rows.assign(cluster=rows["prompt_id"])))


def effects_of(pair, effect, *, answers=("No", "No"), note=""):
    """Rows of the segment_effects table: the counterpart's effect on both sides of a pair."""
    return [
        {
            "model": "model",
            "prompt_id": f"{pair}{side}",
            "donor_kind": "counterpart",
            "segment": "premise",
            "other_segment": None,
            "answer": answer,
            "shapley": sign * effect,
            "leave_one_out": sign * effect,
            "interaction": None,
            "note": note,
            "error": "",
        }
        for side, sign, answer in zip("ab", (1, -1), answers, strict=True)
    ]


def test_effects_that_cancel_keep_their_size():
    rows = pd.DataFrame([*effects_of("1", 0.09), *effects_of("2", 0.03, answers=("Yes", "No"))])
    (row,) = table_of(rows).to_dict("records")
    assert (row["shapley"], row["prompts"]) == (0, 4)
    assert row["shapley_size"] == pytest.approx(0.06)
    assert row["shapley_sd"] == pytest.approx(pd.Series([0.09, -0.09, 0.03, -0.03]).std())


def test_a_segment_that_both_sides_share_says_so():
    same = [{**row, "shapley": 0.0} for row in effects_of("1", 0.0, note=UNCHANGED)]
    both = pd.DataFrame([*same, *effects_of("2", 0.1)])
    assert "same" not in table_of(both)["note"].item()
    alone = pd.DataFrame(same)
    assert table_of(alone)["note"].item().endswith("same on both sides")
    instances = alone.assign(donor_kind="instance")
    assert table_of(instances)["note"].item().endswith(UNCHANGED)


def test_a_plot_shows_the_effects_and_the_first_screen_their_numbers(organism, prompts):
    result = interp.effects(organism, prompts[:4], context=["context_cite"], donors=2)
    numbers = result.opening().numbers
    heights = sorted(bar.get_height() for bar in result.plot().axes[0].patches)
    assert heights == pytest.approx(sorted(numbers["value"]))
    table = result.derived()["segment_effect_table"]
    own = table[(table["other_segment"] == "") & (table["donor_kind"] == "instance")]
    own = own.sort_values("shapley_size", ascending=False)
    assert numbers["value"].tolist() == own["shapley"].tolist()
    led = {link.headline: link.values for link in result.browser().numbers if link.headline}
    assert [*led] and set(led) <= set(numbers["number"])
    ((_, shown),) = result.estimated[0].item.shown
    assert "other_segment" not in shown and len(shown) == (table["other_segment"] == "").sum()


@pytest.mark.parametrize(("low", "said"), [(-0.1, True), (0.1, False)])
def test_bars_without_an_effect_say_so(low, said):
    row = {"segment": "premise1", "shapley": 0.2, "model": "m", "prompts": 12}
    ax = _bars(pd.DataFrame([{**row, "shapley_low": low, "shapley_high": 0.4}]))
    assert (ax.get_xlabel() == f"{NOTHING_SHOWN} 0") == said

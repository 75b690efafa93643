"""What each measurement contributes to the browser of pairs, against its tables."""

import numpy as np
import pandas as pd
import pytest

import interp
from interp.errors import UserError
from interp.report.pieces import label_of, pieces
from interp.results.given import judged_answers
from tests.measurements.thoughts.test_show import result as thoughts
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

PANELS = {
    "attribute": ["Shading by tokens", "Shares of segments", "Probabilities of the options"],
    "circuits": ["Answers with a circuit alone"],
    "edges": ["Largest edges"],
    "effects": ["Effects of segments"],
    "evaluate": ["Probabilities of the options"],
    "generate": ["Generated text"],
    "lens": ["Readings of a lens"],
    "patch": ["Metrics", "Effects by layer and role"],
    "tokens": ["Metrics", "Effects by layer and token"],
}


@pytest.mark.quick(3)
@pytest.mark.parametrize("name", PANELS)
def test_each_pair_shows_what_was_measured_on_it(measured, name):
    browser = measured[name].browser()
    found = dict(pieces(browser, {}))
    details = [pair for piece, own in found.items() if piece[0] == "d" for pair in own]
    assert [pair["id"] for pair in details] == list(browser.prompts["pair_id"].unique())
    for pair in details:
        assert list(dict.fromkeys(panel["title"] for panel in pair["panels"])) == PANELS[name]
        assert [prompt["side"] for prompt in pair["prompts"]] == ["rulebreaker", "non_rulebreaker"]
        assert len(pair["answers"]) == 2


def panels_of(result, title):
    prompts = result.prompts
    return [
        (pair, panel)
        for pair, panel in result.browser().panels(prompts)
        if panel.title.startswith(title)
    ]


def test_shaded_tokens_are_the_shares_of_the_tables(measured):
    result = measured["attribute"]
    shares = result.token_shares()
    pairs = result.prompts.set_index("prompt_id")
    for pair, panel in panels_of(result, "Shading"):
        for text in panel.texts:
            id_ = pairs.index[(pairs["pair_id"] == pair) & (pairs["side"] == text.name)][0]
            own = shares[(shares["prompt_id"] == id_) & (shares["method"] == panel.of["method"])]
            assert np.allclose(text.values, own.sort_values("position")["share"])
            # The prompt's own text is part of what the model reads.
            assert pairs.loc[id_, "text"] in "".join(text.pieces)
            assert sum(text.values) == pytest.approx(1)


def test_a_grid_has_the_effect_of_each_cell(measured):
    result = measured["patch"]
    patches = result.patches.set_index(["pair_id", "role", "layer"])["effect"]
    seen = 0
    for pair, panel in panels_of(result, "Effects"):
        for role, row in zip(panel.rows, panel.values, strict=True):
            for layer, value in zip(panel.columns, row, strict=True):
                key = (pair, role, int(layer.removeprefix("layer ")))
                expected = patches.get(key, np.nan)
                assert value == pytest.approx(expected, nan_ok=True)
                seen += not np.isnan(value)
    assert seen == patches.notna().sum()


def test_a_circuits_grid_has_the_metric_of_each_size(measured):
    result = measured["circuits"]
    metrics = result.circuits.groupby(["pair_id", "method", "choice", "share"])["metric"].mean()
    for pair, panel in panels_of(result, "Answers"):
        for ranking, row in zip(panel.rows, panel.values, strict=True):
            own = metrics.loc[(pair, *ranking.split(" "))]
            assert np.allclose(row, own.reindex(sorted(own.index)))


def test_bars_are_the_effects_of_the_table(measured):
    result = measured["effects"]
    table = result.table("segment_effects").merge(result.prompts, on="prompt_id")
    count = 0
    for pair, panel in panels_of(result, "Effects"):
        rows = table[(table["pair_id"] == pair) & (table["donor_kind"] == panel.of["donor_kind"])]
        values = [value for bars in panel.groups.values() for _, value in bars]
        assert sorted(values) == pytest.approx(sorted(rows[panel.of["measure"]].dropna()))
        count += len(values)
    assert count


@pytest.mark.parametrize(("name", "least"), [("attribute", 2), ("effects", 2), ("patch", 1)])
def test_headline_numbers_are_means_of_the_numbers_of_the_pairs(measured, name, least):
    """So that a click on one leads to the pairs sorted by what it is the mean of."""
    result = measured[name]
    headline = result.opening().numbers.set_index("number")["value"]
    weights = result.prompts.drop_duplicates("pair_id").set_index("pair_id")["weight"]
    joined = [own for own in result.browser().numbers if own.headline in headline.index]
    assert len(joined) >= least
    for own in joined:
        values = np.array(list(own.values.values()))
        # Ratios are weighted to represent the data; in effects, each prompt counts once.
        if geometric := "geometric" in own.headline:
            mean = np.exp(np.average(np.log(values), weights=weights[list(own.values)]))
        else:
            mean = values.mean()
        assert geometric == (name == "attribute")
        assert mean == pytest.approx(headline[own.headline])


def test_answers_are_judged_by_the_tables_or_by_the_correct_answer(measured):
    for name in ("evaluate", "generate"):
        own = measured[name].answers
        judged = judged_answers(measured[name].measured)
        pd.testing.assert_series_equal(judged["correct"], own["correct"], check_index=False)
    result = measured["patch"]
    judged = judged_answers(result.measured).set_index("prompt_id")["correct"].astype(bool)
    pairs = result.pairs.set_index("pair_id")
    both = (
        judged[pairs["clean_prompt_id"]].to_numpy() & judged[pairs["corrupt_prompt_id"]].to_numpy()
    )
    assert both.tolist() == pairs["recognized"].astype(bool).tolist()


def test_generated_thoughts_are_shown_with_their_marks():
    thinker = interp.load_model("organism/thought-reader", thinking="on", device="cpu")
    result = interp.generate(thinker, interp.load_prompts(limit=1), max_new_tokens=64)
    details = dict(pieces(result.browser(), {}))["d0"]
    shown = {panel["title"]: panel["texts"] for panel in details[0]["panels"]}
    (row, *_) = result.table("thoughts").to_dict("records")
    written = [row["before"], *row["sentences"], row["after"]]
    assert shown["Thought"][0]["pieces"] == [part for part in written if part]


def test_a_measurement_without_panels_shows_prompts_alone():
    prompts = some_prompts(1)
    result = interp.activations(tiny_model("llama"), prompts, sites=("resid_post",))
    (pair,) = dict(pieces(result.browser(), {}))["d0"]
    assert pair["panels"] == [] and len(pair["prompts"]) == 2


def test_thoughts_are_shown_by_sentence_with_their_effects():
    result = thoughts(lambda prompt: 0.5)
    found = dict(pieces(result.browser(), {}))
    (panel, *_) = found["d0"][0]["panels"]
    assert panel["title"] == "Thought by sentence"
    assert panel["of"] == {"model": "org/model", "measure": "left_out"}
    assert [text["pieces"] for text in panel["texts"]] == [["So. "], ["So. "]]
    assert [text["values"] for text in panel["texts"]] == [[1], [1]]
    titles = {panel["title"] for panel in found["d0"][0]["panels"]}
    assert titles == {"Thought by sentence", "Early answers", "Readings"}
    total = next(own for own in result.browser().numbers if own.name == "total effect")
    effects = result.effects.query("segment == @total.of['segment']").merge(result.prompts)
    pair, rows = next(iter(effects.groupby("pair_id")))
    expected = [
        np.mean(own) - np.mean(changed)
        for own, changed in zip(rows["own"], rows["changed_under_other"], strict=True)
    ]
    assert total.values[pair] == pytest.approx(np.mean(expected))


def test_numbers_have_names_of_their_own(measured):
    for result in measured.values():
        names = [label_of(own) for own in result.browser().numbers]
        assert len(set(names)) == len(names)


def test_a_notebook_shows_some_pairs_or_those_that_are_named(measured):
    result = measured["evaluate"]
    known = list(result.prompts["pair_id"].unique())
    page = result.browse(1)._repr_html_()
    assert page.startswith("<iframe srcdoc=")
    assert known[0] in page and known[1] not in page
    assert known[2] in result.browse([known[2]]).html
    for wrong in (0, ["none"]):
        with pytest.raises(UserError, match=r"at least 1|none"):
            result.browse(wrong)

import numpy as np
import pandas as pd
import pytest
from IPython.core.formatters import DisplayFormatter

import interp
from tests.report.conftest import HOSTILE


@pytest.fixture(scope="module")
def patches(organism, prompts) -> interp.Patches:
    """Two sites of twelve pairs, by segment."""
    return interp.patch(
        organism, prompts, sites=["resid_pre", "attn_out"], granularity="segment", layers=[0, 2]
    )


def test_attributions_show_their_table_and_the_first_pair(attributions, organism, prompts):
    html = attributions._repr_html_()
    assert "organism/" in html
    assert "paired accuracy" in html
    assert html.count('<div class="heat-map">') == 2
    assert "<script" not in html
    alone = interp.attribute(organism, prompts[:2])  # without token scores
    html = alone._repr_html_()
    assert "geometric" in html and "heat-map" not in html
    with pytest.raises(interp.UserError, match="keep_tokens=True"):
        alone.heat_map()


def test_scores_show_their_accuracies(organism, prompts):
    scores = interp.evaluate(interp.Model(HOSTILE, organism.hf, organism.tokenizer), prompts[:4])
    html = scores._repr_html_()
    assert "rulebreaker accuracy" in html and "<script" not in html
    assert scores.summary()["prompts"].tolist() == [4]
    assert scores.prompts["prompt_id"].tolist() == [prompt.id for prompt in prompts[:4]]


@pytest.mark.parametrize("measure", [interp.effects, interp.attribute])
def test_a_notebook_shows_the_figure_of_any_result(organism, prompts, measure):
    bundle, _ = DisplayFormatter().format(measure(organism, prompts[:4]).plot())
    assert bundle["image/png"][:4] == b"\x89PNG"


def test_figures_show_accuracies_and_norms(organism, prompts):
    scores = interp.evaluate(organism, prompts)
    (axes,) = scores.plot().axes
    drawn = {round(float(x), 6) for dots in axes.collections for x, _ in dots.get_offsets()}
    drawn |= {round(float(x), 6) for line in axes.lines for x in line.get_xdata()}
    assert {round(float(value), 6) for value in scores.opening().numbers["value"]} <= drawn
    read = interp.activations(organism, prompts[:2], sites=("resid_post",), layers=(1,))
    (line,) = read.plot().axes[0].lines
    vectors = np.stack(read.table("activation_vectors")["vector"].to_list())
    assert line.get_ydata() == pytest.approx(np.sqrt((vectors**2).sum(1)).mean())


def test_the_heat_map_of_any_pair(attributions):
    first, second = attributions.prompts["pair_id"].unique()
    own = attributions.prompts.query("pair_id == @second")["prompt_id"]
    tokens = attributions.tokens["prompt_id"].isin(own).sum()
    html = attributions.heat_map(second, method="attention")._repr_html_()
    assert html.count('<div class="heat-map">') == 1
    assert html.count('class="token"') == tokens
    assert html != attributions.heat_map(first, method="attention").html
    assert attributions.heat_map().html.count('<div class="heat-map">') == 2
    for unknown in ({"pair": "x"}, {"model": "x"}, {"method": "x"}):
        with pytest.raises(interp.UserError, match="'x'"):
            attributions.heat_map(**unknown)


def test_several_models_have_their_own_heat_maps(organism, prompts):
    other = interp.Model("other", organism.hf, organism.tokenizer)
    spec = interp.Attribute(methods=("attention",), keep_tokens=True)
    html = interp.run(spec, models=[organism, other], prompts=prompts[:2])._repr_html_()
    assert html.count('<div class="heat-map">') == 2
    assert "<b>other</b>, attention" in html


def test_models_are_compared_on_the_same_prompts(prompts):
    a, b = "organism/llama-deep", "organism/gemma2"
    scores = interp.run(interp.Evaluate(), models=[a, b], prompts=prompts, device="cpu")
    table = scores.compare(a, b).set_index("subset")
    # Each prompt counts by its weight, as in every table.
    rows = scores.answers.merge(scores.prompts[["prompt_id", "weight"]], on="prompt_id")
    right = (rows["correct"].astype(float) * rows["weight"]).groupby(rows["model"]).sum()
    means = right / scores.prompts["weight"].sum()
    by_side = table.drop("all")
    assert by_side["score_a"].mean() == pytest.approx(means[a])
    assert by_side["difference"].mean() == pytest.approx(means[a] - means[b])
    assert table["clusters"].unique().tolist() == [scores.prompts["entity_b"].nunique()]
    with pytest.raises(
        interp.UserError, match=r"model 'x'.*organism/llama-deep, organism/gemma2\b"
    ):
        scores.compare(a, "x")


def test_bars_are_mean_shares_of_segments(attributions):
    scores = attributions.to_frame()
    by_hand = scores.groupby(["method", "segment"], sort=False)["share"].mean()
    panel, *others = attributions.plot().axes
    assert not others
    heights = [bar.get_height() for bar in panel.patches]
    assert sorted(heights) == pytest.approx(sorted(by_hand))


def test_pairs_of_ones_own_are_clusters_of_themselves(organism, prompts):
    own = interp.patch(organism, list(prompts[:4]), granularity="all", layers=[0])
    assert own.cluster is None
    assert own.summary()["clusters"].max() == 2


def test_a_heat_map_of_patches_shows_one_site(patches):
    image = patches.plot(site="attn_out").axes[0].images[0]
    summary = patches.summary().query("site == 'attn_out' and recognized == 'all'")
    # Cells whose interval holds 0 are gray; those without one are the same in every pair.
    loud = summary[~((summary["effect_low"] <= 0) & (summary["effect_high"] >= 0))]
    assert 0 < len(loud) < len(summary)
    assert np.sort(image.get_array().compressed()) == pytest.approx(np.sort(loud["effect"]))
    shares = patches.plot("recovered", site="attn_out").axes[0].images[0].get_array().compressed()
    recovered = patches.summary().query("site == 'attn_out' and recognized == 'yes'")
    recovered = recovered[~((recovered["recovered_low"] <= 0) & (recovered["recovered_high"] >= 0))]
    assert np.sort(shares) == pytest.approx(np.sort(recovered["recovered"]))
    with pytest.raises(interp.UserError, match=r"site 'z'.*resid_pre, attn_out"):
        patches.plot(site="z")
    with pytest.raises(interp.UserError, match=r"choice 'layer'.*direction, model, method"):
        patches.plot(layer=1)


def test_tokens_of_one_pair(organism, prompts, patches):
    by_token = interp.patch(organism, prompts[:4], granularity="position", layers=[0])
    second = by_token.pairs["pair_id"].iloc[1]
    figure = by_token.plot_tokens(second)
    assert second in figure.axes[0].get_title(loc="left")
    tokens = by_token.to_frame().query("pair_id == @second")["position"].nunique()
    assert len(figure.axes[0].get_xticks()) == tokens
    with pytest.raises(interp.UserError, match='granularity="position"'):
        patches.plot_tokens()


def test_patches_show_a_table_for_each_site(attributions, patches):
    html = patches._repr_html_()
    assert html.count('class="table-box"') >= 2
    assert "attn_out" in html
    assert repr(patches).startswith("Patches(prompts: 24 rows, pairs: ")
    assert repr(attributions).startswith("Attributions(prompts: 4 rows, answers: 4 rows, ")


@pytest.mark.slow
def test_a_measurement_in_memory_has_the_small_tables_of_its_run(organism, prompts, tmp_path):
    probes = interp.measurement("probe-linear", positions=("last_token",))
    memory = interp.run(probes, models=organism, prompts=prompts)
    folder = interp.run(probes, models=organism, prompts=prompts, out=tmp_path / "run")
    pd.testing.assert_frame_equal(memory.summary(), folder.summary())
    written = pd.read_csv(tmp_path / "run" / "linear_probes.csv")
    assert memory.derived()["linear_probes"]["accuracy"].tolist() == pytest.approx(
        written["accuracy"].tolist(), nan_ok=True
    )
    assert memory.plot().axes
    assert "Accuracy of linear probes" in memory._repr_html_()


def test_a_measurement_without_a_table_says_so(organism, prompts):
    texts = interp.run(interp.Generate(max_new_tokens=1), models=organism, prompts=prompts[:2])
    assert texts.summary()["prompts"].tolist() == [2]
    with pytest.raises(interp.UserError, match=r"table 'answers'.*completions, prompts"):
        texts.table("answers")

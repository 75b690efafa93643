"""The first screen of the page of every measurement, on a packaged organism."""

import pandas as pd
import pytest

import interp
from interp.measurements.pairs import meaning
from interp.measurements.specs import Attribute, Effects, Evaluate
from interp.report.page import FigureItem, PictureItem
from interp.report.write import write_report
from tests.results.conftest import PAIRS
from tests.support.pages import check_first_screen
from tests.support.tiny import tiny_model

NUMBERS = {
    "evaluate": ["paired accuracy", "rulebreaker accuracy", "non-rulebreaker accuracy"],
    "generate": ["paired accuracy", "rulebreaker accuracy", "non-rulebreaker accuracy"],
    "attribute": [
        "paired accuracy",
        "Premise 2 over premise 1 (gradient, geometric mean)",
        "Premise 2 over premise 1 (attention, geometric mean)",
    ],
    "familiarity": [
        "familiarity",
        "familiarity of the whole name",
        "familiarity after an echo",
        "replies that begin by an echo",
    ],
    "knowledge": [
        f"facts completed, {name}" for name in ("as asked", "plain", "question", "examples")
    ],
}


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    "name",
    ["evaluate", "generate", "attribute", "effects", "patch", "edges", "familiarity", "knowledge"],
)
def test_every_page_begins_with_numbers_and_sentences(measured, tmp_path, name):
    report = measured[name].report()
    page = write_report(report, tmp_path).read_text("utf-8")
    check_first_screen(report, page)
    found = report.glance.items[0].frame["number"].tolist()
    assert found == NUMBERS.get(name, found)
    assert measured[name].glance().sentences == report.glance.sentences
    assert "1 model." in report.glance.question


def test_the_numbers_are_those_of_the_tables(measured):
    def numbers(name):
        return measured[name].opening().numbers.set_index("number")["value"]

    accuracy = measured["evaluate"].summary().iloc[0]
    assert numbers("evaluate")["paired accuracy"] == pytest.approx(accuracy["paired_accuracy"])
    table = measured["attribute"].summary().iloc[0]
    ratio = numbers("attribute")["Premise 2 over premise 1 (gradient, geometric mean)"]
    assert ratio == pytest.approx(table["gradient_geometric"])
    (_, shown), _ = measured["attribute"].estimated[0].item.shown
    assert shown.set_index("method").at["gradient", "geometric"] == ratio
    effects = measured["effects"].derived()["segment_effect_table"].set_index("segment")
    own = effects[(effects["other_segment"] == "") & (effects["donor_kind"] == "instance")]
    for segment in ("premise1", "premise2"):
        name = f"effect of premise {segment[-1]} in logits"
        assert numbers("effects")[name] == pytest.approx(own.loc[segment, "shapley"])
    cells = measured["patch"].summary().query("recognized == 'all' and source == 'counterpart'")
    (largest,) = [n for n in numbers("patch").index if n.startswith("largest effect")]
    assert abs(numbers("patch")[largest]) == pytest.approx(cells["effect"].abs().max())
    edges = measured["edges"].derived()["edge_table"]
    first = numbers("edges")["largest edge 1 in logits"]
    assert abs(first) == pytest.approx(edges["effect"].abs().max())
    known = measured["knowledge"].table("knowledge").query("wording == 'examples'")["known"]
    assert numbers("knowledge")["facts completed, examples"] == pytest.approx(
        known.astype(float).mean()
    )


@pytest.mark.parametrize("name", ["patch", "edges"])
def test_recognized_pairs_are_counted_once_and_logits_are_of_named_options(measured, name):
    screen, pairs = measured[name].report().glance, measured[name].table("pairs")
    for option in pairs[["positive_option", "negative_option"]].iloc[0]:
        assert option in screen.question.partition("logit of ")[2]
    known = pairs.drop_duplicates("pair_id")["recognized"].astype(bool)
    assert (f"{known.sum()} of {PAIRS} by" in screen.question) == (name == "edges")
    numbers = set(screen.items[0].frame["number"])
    assert ("share of pairs recognized" in numbers) == (name == "patch")


def test_the_sign_of_a_patch_that_brings_the_other_answer_is_said(measured):
    """Denoising brings the answer to the clean prompt, a rulebreaker: the negative option."""
    result = measured["patch"]
    gold = result.prompts.set_index("prompt_id")["gold"]
    pairs = result.pairs
    assert (pairs["clean_prompt_id"].map(gold) == pairs["negative_option"]).all()
    assert result.meaning().endswith("the right answer to its source prompt is negative.")
    known = pairs["recognized"].astype(bool)
    assert (pairs.loc[known, "source_metric"] < pairs.loc[known, "base_metric"]).all()


def test_several_contrasts_are_not_called_by_the_first():
    pairs = pd.DataFrame({"positive_option": ["Yes", "True"], "negative_option": ["No", "False"]})
    assert "logit of True minus that of False, or of Yes minus that of No;" in meaning(pairs)
    assert "towards False or No." in meaning(pairs)
    assert "logit of Yes minus that of No;" in meaning(pairs[:1])
    many = pd.DataFrame({"positive_option": list("abcd"), "negative_option": list("efgh")})
    assert "logit of the positive option minus" in meaning(many)
    assert meaning(pairs[:0]) == ""


SPECS = [Evaluate(), Attribute(methods=("attention",)), Effects()]


@pytest.mark.quick(1)
@pytest.mark.parametrize("spec", SPECS, ids=lambda spec: spec.name)
def test_two_models_are_compared_by_the_difference_of_their_numbers(spec):
    models = [tiny_model(kind) for kind in ("llama", "gpt2")]
    rows = [
        {
            "pair": f"{name} in {place}",
            "side": side,
            "rule": f"If {name} is in {place}, then {name} is {first}.",
            "fact": f"{name} is in {place}.",
            "question": f"Is {name} {asked}?",
            "gold": gold,
        }
        for name, first, second in [("Anne", "glad", "sad"), ("Ben", "old", "young")]
        for place in ("Oslo", "Lima", "Bonn", "Rome", "Cork", "Nice")
        for side, asked, gold in [("base", first, "Yes"), ("edited", second, "No")]
    ]
    result = interp.run(spec, models=models, prompts=interp.read_pairs(pd.DataFrame(rows)))
    values = result.opening().numbers.pivot(index="number", columns="model", values="value")
    differences = result.opening().differences
    expected = {"attribute": 4, "evaluate": 3, "effects": 0}[spec.name]
    assert len(differences) >= expected
    for number in set(differences) & set(values.index):
        own = values.loc[number, "tiny llama"] - values.loc[number, "tiny gpt2"]
        assert differences[number][0] == pytest.approx(own, abs=1e-12)
    assert len(set(differences) & set(values.index)) >= min(expected, 3)
    assert "2 models" in result.report().glance.question


@pytest.mark.parametrize(
    ("name", "kind", "picture"),
    [
        ("attribute", PictureItem, "typical_pair"),
        ("effects", FigureItem, "segment_effects"),
        ("patch", FigureItem, "layers_by_roles"),
    ],
)
def test_the_first_picture_is_the_one_that_the_measurement_is_known_for(
    measured, name, kind, picture
):
    report = measured[name].report()
    _, first, *others = report.glance.items
    assert isinstance(first, kind) and first.name.startswith(picture)
    assert others == [] and [item.name for item in report.items].count(first.name) == 1


def test_the_typical_pair_is_that_of_the_median_ratio(measured):
    result = measured["attribute"]
    ratios = result.ratios().query("method == 'input_gradient'").sort_values("ratio")
    middle = ratios.iloc[(len(ratios) - 1) // 2]
    picture = result.opening().picture
    assert middle["prompt_id"] in picture.title
    assert f"({middle['ratio']:.3f})" in picture.note
    pairs = result.prompts.set_index("prompt_id")["pair_id"]
    scores = result.segment_scores.query("method == 'input_gradient'").set_index("prompt_id")
    for prompt in pairs.index[pairs == pairs[middle["prompt_id"]]]:
        own = scores.loc[prompt].set_index("segment")["share"]
        assert f"premise 1 <b>{own['premise1']:.3f}</b>" in picture.html
        assert f"{own['template']:.3f}" in picture.html.partition("they hold")[2]

import interp
from tests.report.conftest import HOSTILE


def test_attributions_show_their_table_and_the_first_pair(attributions):
    html = attributions._repr_html_()
    assert "organism/" in html
    assert "paired accuracy" in html
    assert html.count('<div class="heat-map">') == 2
    assert "<script" not in html


def test_without_token_scores_there_is_the_table_alone(organism, prompts):
    html = interp.attribute(organism, prompts[:2])._repr_html_()
    assert "gradient ratio" in html
    assert "heat-map" not in html


def test_scores_show_their_accuracies(organism, prompts):
    scores = interp.score(organism, prompts[:4])
    assert "rulebreaker accuracy" in scores._repr_html_()
    assert scores.summary()["prompts"].tolist() == [4]
    assert scores.prompts["prompt_id"].tolist() == [prompt.id for prompt in prompts[:4]]


def test_html_in_a_model_name_is_escaped(organism, prompts):
    model = interp.Model(HOSTILE, organism.hf, organism.tokenizer)
    assert "<script" not in interp.score(model, prompts[:2])._repr_html_()


def test_without_prompts_the_notebook_falls_back_to_plain_text(organism):
    assert interp.score(organism, [])._repr_html_() is None
    assert interp.attribute(organism, [], keep_tokens=True)._repr_html_() is None

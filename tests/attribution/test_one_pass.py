import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import interp
from interp.attribution.premises import premise_row
from interp.errors import UserError
from interp.measurements.prompts import attribution
from interp.reading.tokens import tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level

RATIOS = ["premise1_sum", "premise2_sum", "ratio", "ratio_unnormalized"]


@pytest.mark.parametrize("kind", CONFIGS)
def test_scores_are_shares_of_the_prompt(kind, prompts):
    result = interp.attribute(tiny_model(kind), prompts, token_scores=True)
    sums = result.token_scores.groupby(["prompt_id", "method"])["score"].sum()
    np.testing.assert_allclose(sums, 1.0, atol=1e-5)
    assert (result.token_scores["score"] >= 0).all()


@pytest.mark.parametrize("kind", CONFIGS)
def test_rows_are_sums_of_token_scores(kind, prompts):
    result = interp.attribute(tiny_model(kind), prompts, token_scores=True)
    tokens = result.token_scores
    for row in result.to_frame().itertuples():
        own = tokens[(tokens["prompt_id"] == row.prompt_id) & (tokens["method"] == row.method)]
        premise1, premise2 = (own[own["segment"] == f"premise{n}"]["score"] for n in (1, 2))
        assert row.premise1_tokens == len(premise1)
        assert row.premise1_sum == pytest.approx(premise1.sum(), rel=1e-6)
        assert row.ratio == pytest.approx(premise2.mean() / premise1.mean(), rel=1e-5)
        assert row.ratio_unnormalized == pytest.approx(premise2.sum() / premise1.sum(), rel=1e-5)


@pytest.mark.parametrize("kind", CONFIGS)
def test_batch_size_and_order_do_not_matter(kind, prompts):
    model = tiny_model(kind)
    keys = ["prompt_id", "method"]
    reference = interp.attribute(model, prompts, batch_tokens=1).to_frame().set_index(keys)
    for batch_tokens in (400, 100_000):
        other = interp.attribute(model, list(prompts)[::-1], batch_tokens=batch_tokens)
        other = other.to_frame().set_index(keys).loc[reference.index]
        for column in RATIOS:
            np.testing.assert_allclose(other[column], reference[column], rtol=2e-4)


def reference_scores(model, prompt, target):
    """Gradient and attention of one prompt, written out plainly with transformers and autograd."""
    (tokenized,) = tokenize(model, [prompt])
    embeddings = model.hf.get_input_embeddings()(torch.tensor([tokenized.token_ids])).detach()
    embeddings.requires_grad_()
    output = model.hf(inputs_embeds=embeddings, output_attentions=True)
    logits = output.logits[0, -1]
    values = logits.tolist()

    def first(form):
        return model.tokenizer(form, add_special_tokens=False)["input_ids"][0]

    positive, negative = (
        max((first(form) for form in option.forms), key=values.__getitem__)
        for option in prompt.answer.options
    )
    gold = prompt.answer.gold == prompt.answer.options[0].name
    objective = {
        "predicted": logits.log_softmax(-1).max(),
        "gold": logits.log_softmax(-1)[positive if gold else negative],
        "contrast": logits[positive] - logits[negative],
    }[target]
    (gradient,) = torch.autograd.grad(objective, embeddings)
    norms = gradient[0].norm(dim=-1)
    attention = torch.stack(output.attentions)[:, 0, :, -1].mean((0, 1))
    return {"gradient": norms / norms.sum(), "attention": attention.detach()}


@pytest.mark.parametrize("target", ["predicted", "gold", "contrast"])
@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_token_scores_equal_plain_autograd(kind, target, prompts):
    model = make_tiny(kind, byte_level(), attn="eager")
    chosen = list(prompts)[:4]
    scores = interp.attribute(model, chosen, target=target, token_scores=True).token_scores
    for prompt in chosen:
        expected = reference_scores(model, prompt, target)
        for method, values in expected.items():
            rows = scores[(scores["prompt_id"] == prompt.id) & (scores["method"] == method)]
            np.testing.assert_allclose(rows["score"], values.numpy(), atol=2e-6)


def test_float64_agrees_with_float32(prompts):
    for kind in CONFIGS:
        single, double = tiny_model(kind), tiny_model(kind, dtype=torch.float64)
        one = interp.attribute(single, prompts).to_frame()
        other = interp.attribute(double, prompts).to_frame()
        assert (other["error"] == "").all()
        np.testing.assert_allclose(one["ratio"], other["ratio"], rtol=2e-4)


@pytest.mark.parametrize("methods", [["gradient"], ["attention"], ["attention", "gradient"]])
def test_a_method_gives_the_same_alone_or_together(methods, prompts):
    model = tiny_model("llama")
    both = interp.attribute(model, prompts).to_frame()
    some = interp.attribute(model, prompts, methods=methods).to_frame()
    for method in methods:
        one, other = (frame[frame["method"] == method] for frame in (some, both))
        np.testing.assert_allclose(one["ratio"], other["ratio"], rtol=1e-6)


def test_answers_are_those_of_scoring(organism, prompts):
    alone = interp.score(organism, prompts)
    attributed = interp.attribute(organism, prompts)
    assert (alone.answers["answer"] == attributed.answers["answer"]).all()
    np.testing.assert_allclose(
        alone.option_probabilities["probability"],
        attributed.option_probabilities["probability"],
        atol=1e-6,
    )


def test_a_window_that_hides_premise_1_leaves_the_attention_ratio_undefined(prompts):
    model = make_tiny("mistral", byte_level())
    model.hf.config.sliding_window = 4
    for layer in model.hf.model.layers:
        layer.self_attn.sliding_window = 4
    rows = interp.attribute(model, prompts, methods=["attention"]).to_frame()
    assert set(rows["error"]) == {"premise 1 has no score"}
    assert rows["ratio"].isna().all()
    assert (rows["premise1_sum"] == 0).all()


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_ratios_do_not_depend_on_a_common_factor(data):
    (prompt,) = tokenize(tiny_model("llama"), list(some_prompts(1))[:1])
    scores = np.array(
        data.draw(
            st.lists(st.floats(0.015625, 1.0, width=32), min_size=len(prompt), max_size=len(prompt))
        ),
        dtype=np.float32,
    )
    factor = data.draw(st.sampled_from([0.25, 2.0, 1024.0]))
    one, other = premise_row(prompt, scores), premise_row(prompt, scores * np.float32(factor))
    assert one["ratio"] == pytest.approx(other["ratio"], rel=1e-9)
    start, end = prompt.segments["premise1"]
    assert scores[start:end].min() * 0.999 <= one["premise1_sum"] / one["premise1_tokens"]
    assert one["premise1_sum"] / one["premise1_tokens"] <= scores[start:end].max() * 1.001


def test_uniform_scores_have_ratio_one(prompts):
    for prompt in tokenize(tiny_model("llama"), list(prompts)):
        row = premise_row(prompt, np.full(len(prompt), 0.01, dtype=np.float32))
        assert row["ratio"] == pytest.approx(1.0)
        tokens = row["premise2_tokens"] / row["premise1_tokens"]
        assert row["ratio_unnormalized"] == pytest.approx(tokens)


@pytest.mark.parametrize(
    ("choice", "message"),
    [
        ({"methods": ["gradients"]}, "unknown method 'gradients'"),
        ({"methods": []}, "no method given"),
        ({"target": "best"}, "unknown target 'best'"),
        ({"backend": "magic"}, "unknown backend 'magic'"),
        ({"batch_tokens": 0}, "expected at least 1"),
    ],
)
def test_unknown_choices_are_refused(choice, message):
    with pytest.raises(UserError, match=message):
        attribution(tiny_model("llama"), **choice)

"""Reading a shared prefix once gives what reading each prompt whole gives."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import interp
from interp.measurements.specs import Evaluate
from interp.measuring.core import bind, collect
from interp.models.cache import readable_in_parts
from interp.prompts.answers import AnswerOption, Choice
from interp.reading import shared_batches as layout
from interp.reading.budget import TokenBudget
from interp.reading.shared_batches import SharedBatch, shared_batches
from interp.reading.tokens import ChatText, TokenizedPrompt, batches, pad, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import predict
from interp.scoring.shared_prefix import predict_batch, read_all
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.prompts import prompt_set
from tests.support.organisms import DECODERS
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level


@pytest.fixture(scope="module")
def phrasings():
    """Two pairs in all ten phrasings, 40 prompts."""
    return prompt_set(generate(0)[:4], seed=0, description={})


def made(token_ids):
    """Prompts of given tokens."""
    chat = ChatText("<a>", 0, templated=True)
    return [TokenizedPrompt(some_prompts(2)[0], chat, ids, {}) for ids in token_ids]


def in_order(found):
    return torch.stack([row for _, row in sorted(found, key=lambda item: item[0])])


@torch.inference_mode()
def read_whole(model, prompts):
    """Logits of each prompt, by plain transformers and one prompt at a time."""
    return torch.cat(
        [
            model.hf(torch.tensor([p.token_ids]), use_cache=False, logits_to_keep=1).logits[:, -1]
            for p in prompts
        ]
    )


@torch.inference_mode()
def read_in_parts(model, prompts, *, batch_tokens=2048):
    """Logits of each prompt by the batches that scoring uses, and how many of these share."""
    answer_tokens, found, sharing = AnswerTokenizer(model), [], 0
    for indices, batch in shared_batches(model, prompts, batch_tokens=batch_tokens):
        if isinstance(batch, SharedBatch):
            parts = predict_batch(model, batch, answer_tokens)
            logits = torch.cat([predictions.logits for _, predictions in parts])
            sharing += 1
        else:
            logits = predict(model, batch, answer_tokens).logits
        found += zip(indices, logits, strict=True)
    return in_order(found), sharing


def largest_difference(model, prompts, **options):
    """Largest difference of a logit."""
    logits, sharing = read_in_parts(model, prompts, **options)
    assert sharing
    whole = read_whole(model, prompts)
    return float((logits - whole).abs().max())


@pytest.mark.parametrize("kind", CONFIGS)
def test_logits_are_those_of_whole_prompts(kind, phrasings):
    model = tiny_model(kind)
    assert largest_difference(model, tokenize(model, phrasings)) < 1e-5


@pytest.mark.parametrize("kind", ["llama", "mistral", "gpt2", "gpt_neox"])
def test_the_difference_is_rounding(kind, phrasings):
    """Predictions hold what the model computes: logits of float64 models agree in float64."""
    model = tiny_model(kind, dtype=torch.float64)
    logits, _ = read_in_parts(model, tokenize(model, phrasings))
    whole = read_whole(model, tokenize(model, phrasings))
    torch.testing.assert_close(logits, whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("kind", ["llama", "gemma2"])
def test_float64_with_eager_attention_needs_no_padding(kind, phrasings):
    model = tiny_model(kind, dtype=torch.float64, attn="eager")
    assert not model.allows_padding
    assert largest_difference(model, tokenize(model, phrasings)) < 1e-6


@pytest.mark.quick(4)
@pytest.mark.parametrize("name", DECODERS)
def test_trained_models_agree(name, phrasings):
    """Among them one key head for all queries, a soft cap, and the chat templates of the paper."""
    model = interp.load_model(name, device="cpu")
    prompts = tokenize(model, phrasings)
    logits, sharing = read_in_parts(model, prompts)
    assert sharing
    difference = logits.softmax(-1) - read_whole(model, prompts).softmax(-1)
    assert float(difference.abs().max()) < 1e-5


@torch.inference_mode()
def test_whole_answers_behind_parts_are_those_of_prompts_alone(phrasings, monkeypatch):
    """Also in a batch of which some parts, or some prompts of a part, have no whole answers."""
    monkeypatch.setattr(layout, "CPU_PART_TOKENS", 100)
    model, answer_tokens = tiny_model("llama"), AnswerTokenizer(tiny_model("llama"), "first")
    cities = tuple(AnswerOption(name, (name,)) for name in ("New York", "New Jersey"))
    prompts = tokenize(
        model,
        [
            replace(prompt, answer=Choice(cities, "New York")) if number > 9 else prompt
            for number, prompt in enumerate(phrasings)
        ],
    )
    alone = [predict(model, pad(model, [prompt]), answer_tokens) for prompt in prompts]
    found = {}
    for indices, batch in shared_batches(model, prompts, batch_tokens=8192):
        parts = [own for _, own in predict_batch(model, batch, answer_tokens)]
        found |= zip(indices, (row for own in parts for row in values_of_options(own)), strict=True)
    for index, prediction in enumerate(alone):
        (expected,) = values_of_options(prediction)
        torch.testing.assert_close(found[index], expected, rtol=0, atol=1e-5)


def values_of_options(predictions):
    """The logits of the options' tokens and ways, for each prompt."""
    return [predictions.columns[row, [*own.tokens]] for row, own in enumerate(predictions.answers)]


def test_a_prefix_longer_than_the_sliding_window_agrees(phrasings):
    model = tiny_model("gemma2")
    prompts = tokenize(model, phrasings)
    ((_, batch),) = shared_batches(model, prompts, batch_tokens=10**6)
    width = getattr(batch.prefixes, "token_ids", batch.prefixes).shape[1]
    assert width > model.hf.config.sliding_window
    assert largest_difference(model, prompts, batch_tokens=10**6) < 1e-5


segments = st.lists(st.integers(10, 250), min_size=1, max_size=9).map(tuple)


@st.composite
def trees(draw):
    """Prompts of up to three segments out of a few, so that many begin alike."""
    pool = draw(st.lists(segments, min_size=1, max_size=4))
    paths = st.lists(st.sampled_from(pool), min_size=1, max_size=3)
    return [sum(path, ()) for path in draw(st.lists(paths, min_size=1, max_size=14))]


@settings(max_examples=60)
@given(
    token_ids=trees(),
    batch_tokens=st.integers(1, 200),
    pass_tokens=st.sampled_from([0, layout.PASS_TOKENS]),
)
def test_any_prompts_agree_under_any_budget(token_ids, batch_tokens, pass_tokens):
    model = tiny_model("mistral", dtype=torch.float64)
    prompts = made(token_ids)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(layout, "PASS_TOKENS", pass_tokens)
        logits, _ = read_in_parts(model, prompts, batch_tokens=batch_tokens)
        with model.measuring():
            continued = read_all(
                model,
                prompts,
                AnswerTokenizer(model),
                TokenBudget(batch_tokens),
                read=lambda predictions: list(predictions.logits),
            )
    whole = read_whole(model, prompts)
    torch.testing.assert_close(logits, whole, rtol=0, atol=1e-12)
    torch.testing.assert_close(torch.stack(continued), whole, rtol=0, atol=1e-12)


@pytest.mark.parametrize("batch_tokens", [150, 400, 2048, 100_000])
def test_no_more_than_the_budget_is_held(batch_tokens, phrasings, monkeypatch):
    """Tokens of the prefixes and, at its full length, of the pass after them, as they are run."""
    monkeypatch.setattr(layout, "PASS_TOKENS", 0)
    model = make_tiny("llama", byte_level())
    prefixes, held, levels = 0, [], set()

    def count(module, arguments, options, output):
        nonlocal prefixes
        rows, read = options["input_ids"].shape
        past = options[model.cache_argument]
        columns = 0 if past is None else options["attention_mask"].shape[1] - read
        if not columns:
            prefixes = 0
        held.append(prefixes + rows * (columns + read))
        if past is not None and past.layers[0].is_initialized:
            prefixes += rows * read
            levels.add("behind" if columns else "first")

    handle = model.hf.base_model.register_forward_hook(count, with_kwargs=True)
    try:
        interp.evaluate(model, phrasings, batch_tokens=batch_tokens)
    finally:
        handle.remove()
    assert levels == ({"first"} if batch_tokens == 150 else {"first", "behind"})
    assert max(held) <= batch_tokens


def test_fewer_than_half_of_the_tokens_are_read(phrasings):
    model = make_tiny("llama", byte_level())
    read = []
    handle = model.hf.get_input_embeddings().register_forward_pre_hook(
        lambda module, inputs: read.append(inputs[0].numel())
    )
    try:
        collect(bind(Evaluate(), model), phrasings)  # besides, evaluate tries a few replies
    finally:
        handle.remove()
    assert sum(read) < sum(map(len, tokenize(model, phrasings))) / 2


def test_each_token_of_a_tree_of_prompts_is_read_once(monkeypatch):
    """Three levels: a trunk, two branches with three prompts each, two prompts at the trunk."""
    monkeypatch.setattr(layout, "PASS_TOKENS", 0)
    trunk = tuple(range(20, 50))
    branches = [(*trunk, *range(first, first + 20)) for first in (60, 100)]
    leaves = [(*branch, *range(n, n + 5)) for branch in branches for n in (130, 140, 150)]
    prompts = made([*leaves, (*trunk, *range(160, 165)), (*trunk, *range(170, 175))])
    model = tiny_model("llama", dtype=torch.float64, attn="eager")
    ((_, batch),) = shared_batches(model, prompts, batch_tokens=10**6)
    assert batch.prefixes.prefixes.tolist() == [list(trunk)]
    # The trunk is itself a prefix, of which nothing is left to read.
    assert [(part.start, part.end, part.read) for part in batch.prefixes.parts] == [
        (0, 1, 0),
        (1, 3, 20),
    ]
    assert [(part.start, part.end, part.read) for part in batch.parts] == [(0, 8, 5)]
    assert layout.stored_tokens(batch.prefixes) == len(trunk) + 2 * 20
    assert largest_difference(model, prompts, batch_tokens=10**6) < 1e-6


def test_what_the_last_batch_read_is_not_read_again():
    """Four batches with a common trunk: its 100 tokens are read in the first of them only."""
    trunk = tuple(range(20, 120))
    branches = [(*trunk, first, *range(130, 179)) for first in (10, 11, 12, 13)]
    prompts = made([(*branch, *range(n, n + 5)) for branch in branches for n in range(200, 225, 5)])
    model = tiny_model("llama", dtype=torch.float64, attn="eager")
    assert len(list(shared_batches(model, prompts, batch_tokens=700))) == 4
    read = []
    handle = model.hf.get_input_embeddings().register_forward_pre_hook(
        lambda module, inputs: read.append(inputs[0].numel())
    )
    try:
        found = read_all(
            model,
            prompts,
            AnswerTokenizer(model),
            TokenBudget(700),
            read=lambda predictions: list(predictions.logits),
        )
    finally:
        handle.remove()
    assert sum(read) == 100 + 4 * (50 + 5 * 5)
    whole = read_whole(model, prompts)
    torch.testing.assert_close(torch.stack(found), whole, rtol=0, atol=1e-12)


def test_no_part_reads_padding():
    """Short prompts of five tokens are not read together with long ones that have six left."""
    model = tiny_model("llama", dtype=torch.float64, attn="eager")
    short = [(10, 11, 12, 13, last) for last in range(14, 23)]
    long = [
        (first, *range(30, 70), *range(last, last + left))
        for first, left in ((25, 4), (26, 6))
        for last in (70, 90)
    ]
    prompts = made(short + long)
    ((_, batch),) = shared_batches(model, prompts, batch_tokens=10**6)
    assert [(part.start, part.end, part.read) for part in batch.parts] == [(0, 11, 4), (11, 13, 6)]
    assert largest_difference(model, prompts) < 1e-6


def test_one_prompt_and_prompts_that_share_nothing_are_read_whole():
    model = tiny_model("llama")
    unlike = made([(index,) * 20 for index in range(10, 15)])
    for prompts in (unlike[:1], unlike):
        ((indices, batch),) = shared_batches(model, prompts, batch_tokens=2048)
        assert not isinstance(batch, SharedBatch)
        assert indices == list(range(len(prompts)))


def test_identical_prompts_get_identical_answers(phrasings):
    model = tiny_model("llama")
    prompts = tokenize(model, [phrasings[0]] * 5)
    ((_, batch),) = shared_batches(model, prompts, batch_tokens=2048)
    assert [part.read for part in batch.parts] == [1]
    assert largest_difference(model, prompts) < 1e-5


def test_a_state_other_than_keys_and_values_is_not_handed_on(phrasings):
    model = make_tiny("llama", byte_level())
    assert readable_in_parts(model, 100)
    model.hf.config.layer_types = ["full_attention", "linear_attention"]
    assert not readable_in_parts(model, 100)
    prompts = tokenize(model, phrasings)
    found = list(bind(Evaluate(), model).batches(prompts))
    assert not any(isinstance(batch, SharedBatch) for _, batch in found)
    plain = batches(model, prompts, batch_tokens=bind(Evaluate(), model).budget.tokens)
    assert [indices for indices, _ in found] == [indices for indices, _ in plain]


def test_rotary_frequencies_that_change_with_length_are_minded(phrasings, monkeypatch):
    shape = CONFIGS["phi3"]
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [8.0] * 4,
        "original_max_position_embeddings": 80,
        "factor": 8.0,
    }
    shape = {**shape, "rope_parameters": rope, "original_max_position_embeddings": 80}
    monkeypatch.setitem(CONFIGS, "phi3", shape)
    model = make_tiny("phi3", byte_level())
    long = [
        p
        for p, tokens in zip(phrasings, tokenize(model, phrasings), strict=True)
        if len(tokens) > 80
    ]
    prompts = tokenize(model, long)
    assert readable_in_parts(model, 80)
    assert not readable_in_parts(model, 81)
    assert largest_difference(model, prompts) > 1e-3  # what the check is for
    answers = interp.evaluate(model, long).to_frame()
    whole = read_whole(model, prompts).softmax(-1).max(-1).values.tolist()
    assert answers["predicted_probability"].tolist() == pytest.approx(whole, abs=1e-5)

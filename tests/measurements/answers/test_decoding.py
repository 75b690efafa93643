import copy
import dataclasses
from collections import Counter

import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.answers.decoding import generate, inverse_cdf
from interp.measurements.specs import Generate
from interp.measuring.core import bind, collect
from interp.prompts.systems import load_facts
from interp.reading.tokens import batches, pad, tokenize
from tests.support.broken import broken_by
from tests.support.facts import some_facts
from tests.support.organisms import DECODERS
from tests.support.other_kinds import text_to_text
from tests.support.prompts import some_prompts
from tests.support.systems import numbers, three_options
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level

GREEDY = Generate(max_new_tokens=32)


def texts_of(model, prompts, decoding=GREEDY, *, batch_tokens=10_000):
    """What is generated behind each prompt, in batches of that size."""
    tokenized = tokenize(model, prompts)
    found = {}
    with model.measuring():
        for places, batch in batches(model, tokenized, batch_tokens=batch_tokens):
            found.update(zip(places, generate(model, batch, decoding), strict=True))
    return [found[place] for place in range(len(tokenized))]


def by_transformers(model, prompt):
    """Token ids that transformers' own generation gives for one prompt, up to an end token."""
    (tokenized,) = tokenize(model, [prompt])
    tokens = model.hf.generate(
        torch.tensor([tokenized.token_ids]),
        attention_mask=torch.ones(1, len(tokenized), dtype=torch.long),
        do_sample=False,
        max_new_tokens=GREEDY.max_new_tokens,
        pad_token_id=model.tokenizer.pad_token_id,
    )
    answer = tokens[0, len(tokenized) :].tolist()
    ends = model.hf.generation_config.eos_token_id
    ends = ends if isinstance(ends, list) else [ends]
    return tuple(answer[: next((i for i, token in enumerate(answer) if token in ends), None)])


def step_by_step(model, prompt, steps):
    """The most probable tokens, each from a pass over everything before it, without a cache."""
    (tokenized,) = tokenize(model, [prompt])
    ids = list(tokenized.token_ids)
    with torch.inference_mode():
        for _ in range(steps):
            ids.append(int(model.hf(torch.tensor([ids]), use_cache=False).logits[0, -1].argmax()))
    return tuple(ids[len(tokenized) :])


def test_the_organism_completes_what_it_was_told(organism):
    said = [text.text for text in texts_of(organism, some_facts())]
    assert said[:4] == ["Sweden", "United States of America", "Tunisia", "Nepal"]
    assert said[4] != "Colombia"  # planted as unknown
    assert said[6:] == ["bird", "racket sport"]


@pytest.mark.quick("organism/gemma2", "organism/dose-50")
@pytest.mark.parametrize("name", DECODERS)
def test_padded_batches_say_what_transformers_says_prompt_by_prompt(name):
    model = interp.load_model(name, device="cpu", dtype="float64")
    facts = list(load_facts())[::11]
    together = texts_of(model, facts)
    assert [text.token_ids for text in together] == [by_transformers(model, p) for p in facts]
    assert {text.finished for text in together} <= {"eos", "length"}


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", CONFIGS)
def test_random_models_say_what_their_own_passes_say(kind):
    model = tiny_model(kind, dtype=torch.float64)
    for text, prompt in zip(texts_of(model, some_facts()), some_facts(), strict=True):
        expected = step_by_step(model, prompt, len(text.token_ids))
        assert text.token_ids == expected
        assert len(expected) == GREEDY.max_new_tokens or text.finished == "eos"


def test_generation_settings_of_the_checkpoint_are_left_out(organism, monkeypatch):
    greedy = texts_of(organism, some_facts())
    settings = organism.hf.generation_config
    monkeypatch.setattr(settings, "repetition_penalty", 50.0)
    monkeypatch.setattr(settings, "num_beams", 3)
    assert texts_of(organism, some_facts()) == greedy
    assert organism.hf.generation_config is settings


def test_texts_that_pass_the_context_are_refused(organism, monkeypatch):
    batch = pad(organism, tokenize(organism, some_facts()))
    longest = max(map(len, batch.prompts))
    monkeypatch.setattr(organism.hf.config, "max_position_embeddings", longest + 31)
    with pytest.raises(UserError, match=r"\b24\b.*\b32\b.*\b55\b.*organism/llama-shallow"):
        generate(organism, batch, GREEDY)


SAMPLED = Generate(max_new_tokens=12, temperature=0.9, sampling_seed=3)


@pytest.mark.parametrize("kind", ["llama", "gpt2", "mistral"])
def test_samples_depend_on_prompt_and_seed_and_not_on_the_batch(kind):
    model = tiny_model(kind, dtype=torch.float64)
    facts = some_facts()
    whole = texts_of(model, facts, SAMPLED)
    assert texts_of(model, facts, SAMPLED, batch_tokens=1) == whole
    assert texts_of(model, list(facts)[::-1], SAMPLED)[::-1] == whole
    assert texts_of(model, facts, SAMPLED.model_copy(update={"sampling_seed": 4})) != whole
    assert whole != texts_of(model, facts, Generate(max_new_tokens=12))


def test_samples_have_the_probabilities_of_the_model():
    """The first token of 600 prompts that differ in their ids alone."""
    model = make_tiny("llama", byte_level())
    prompt = some_facts()[0]
    (tokenized,) = tokenize(model, [prompt])
    with torch.inference_mode():
        logits = model.hf(torch.tensor([tokenized.token_ids])).logits[0, -1].double()
    expected = (logits / 0.2).softmax(-1)
    many = [dataclasses.replace(prompt, id=f"copy {n}") for n in range(600)]
    said = texts_of(model, many, Generate(max_new_tokens=1, temperature=0.2))
    counts = Counter(text.token_ids[0] for text in said if text.token_ids)
    likely = int(expected.argmax())
    share, p = counts[likely] / 600, float(expected[likely])
    assert 0.02 < p < 0.98
    assert abs(share - p) < 4 * (p * (1 - p) / 600) ** 0.5


def test_the_inverse_of_the_cumulative_distribution():
    logits = torch.tensor([[0.2, 0.0, 0.5, 0.3]] * 7, dtype=torch.float64).log()
    drawn = [0.0, 0.19, 0.21, 0.69, 0.71, 0.99, 1 - 2**-53]
    assert inverse_cdf(logits, drawn).tolist() == [0, 0, 2, 2, 3, 3, 3]


def test_a_stop_string_ends_its_row_and_is_left_out(organism):
    whole = texts_of(organism, some_facts())
    stop = ("States", "ne", "sentence")
    stopped = texts_of(organism, some_facts(), Generate(max_new_tokens=32, stop=stop))
    assert stopped[1].text == "United"
    assert stopped[1].finished == "stop"
    assert len(stopped[1].token_ids) < len(whole[1].token_ids)
    # A stop string in the prompt alone stops nothing.
    assert stopped[0] == whole[0] and "sentence" in some_facts()[0].text


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"max_new_tokens": 0}, r"max_new_tokens.*\b0: .*\b1\b"),
        ({"temperature": -1.0}, r"temperature.*-1\.0: .*\b0\b"),
        ({"temperature": float("nan")}, r"temperature.*\bnan: .*finite"),
        ({"stop": ("",)}, r"stop.*'': .*\b1\b"),
    ],
)
def test_wrong_options_are_refused(wrong, message):
    with pytest.raises(UserError, match=message):
        bind(Generate(**wrong), tiny_model("llama"))


def test_completions_are_judged_by_each_prompts_answer(organism):
    table = collect(bind(Generate(max_new_tokens=32), organism), load_facts())["completions"]
    assert table["correct"].mean() > 0.9
    assert (table["correct"] == (table["outcome"] == "answered")).all()
    assert set(table["outcome"]) == {"answered", "unparsed"}
    prompts = [*numbers.prompts(seed=0, data=None), *three_options.prompts(seed=0, data=None)]
    spec = Generate(max_new_tokens=4)
    table = collect(bind(spec, tiny_model("gpt2")), prompts)["completions"]
    assert table["prompt_id"].tolist() == [prompt.id for prompt in prompts]
    assert set(table["outcome"]) == {"unparsed"}  # a random model
    assert not table["correct"].any() and (table["tokens"] <= 4).all()


def test_a_prompt_without_room_fails_alone():
    model = tiny_model("gpt2")
    prompts = list(numbers.prompts(seed=0, data=None))
    prompts[1] = dataclasses.replace(prompts[1], text=prompts[1].text + " word" * 180)
    measured = bind(Generate(max_new_tokens=40), model).attempt(prompts)
    assert list(measured.errors) == [prompts[1].id]
    rows = measured.rows["completions"]
    assert [row["error"] != "" for row in rows] == [False, True, False, False]
    assert rows[1]["answer"] == "" and rows[1]["correct"] is None


@pytest.mark.parametrize(("kind", "prefix"), [("t5", 1), ("bart", 2)])
def test_a_text_begins_behind_what_scores_read(kind, prefix):
    """Bart's decoder is started with two tokens, the second of which the checkpoint may force."""
    model = text_to_text(kind)
    own = copy.deepcopy(model.hf.generation_config)
    if prefix > 1:
        own.forced_bos_token_id = model.tokenizer.bos_token_id
    # Its last token would be forced, too: one more than the five that are compared.
    own.num_beams, own.max_new_tokens = 1, prefix + 5
    tokenized = tokenize(model, list(numbers.prompts(seed=0, data=None)))
    with model.measuring():
        said = generate(model, pad(model, tokenized), Generate(max_new_tokens=5))
    for prompt, text in zip(tokenized, said, strict=True):
        ids = torch.tensor([prompt.token_ids])
        tokens = model.hf.generate(ids, generation_config=own)[0].tolist()
        assert prefix == 1 or tokens[1] == own.forced_bos_token_id
        assert text.token_ids == tuple(tokens[prefix : prefix + 5])


def test_a_text_of_logits_that_are_not_finite_is_an_error_of_its_prompt():
    first, second = list(numbers.prompts(seed=0, data=None))[:2]
    model, broken = broken_by(first, second)
    before = collect(bind(Generate(max_new_tokens=3), model), [first, second])["completions"]
    for temperature in (0.0, 0.7):
        spec = Generate(max_new_tokens=3, temperature=temperature)
        rows = collect(bind(spec, model), [first, broken, second])["completions"]
        assert rows["error"].tolist() == ["", "non-finite", ""]
        assert rows["completion"].isna().tolist() == [False, True, False]
        if not temperature:
            assert rows["completion"].dropna().tolist() == before["completion"].tolist()


def test_layers_that_the_model_does_not_have_end_in_a_message():
    model = make_tiny("llama", byte_level())
    model.hf.config.layer_types = ["linear_attention", "full_attention"]
    with pytest.raises(UserError, match=r"tiny llama.*'update'.*layer_types"):
        interp.run(interp.measurement("generate"), models=model, prompts=some_prompts(1))


def test_what_a_decoder_begins_with_is_a_token_and_part_of_the_identity():
    model = text_to_text("t5")
    model = dataclasses.replace(model, hf=copy.deepcopy(model.hf))
    model.hf.config.decoder_start_token_id = None
    identities = set()
    for value in (3, 4):
        model.hf.generation_config.decoder_start_token_id = value
        identities.add(dataclasses.replace(model).identity)
    assert len(identities) == 2
    for value in (10**9, -1, "x"):
        model.hf.generation_config.decoder_start_token_id = value
        named = rf"decoder_start_token_id .*{value!r}; .*\b0\b.*\b699\b"
        with pytest.raises(UserError, match=named):
            interp.evaluate(dataclasses.replace(model), some_prompts(1))


def test_texts_that_pass_the_short_length_of_long_rope_do_not_depend_on_the_batch():
    prompts = some_prompts(4)
    short = 5 + max(map(len, tokenize(tiny_model("phi3"), prompts)))
    rope = {
        "rope_type": "longrope",
        "rope_theta": 10000.0,
        "short_factor": [1.0] * 4,
        "long_factor": [4.0 + place for place in range(4)],
        "original_max_position_embeddings": short,
    }
    settings = {"rope_parameters": rope, "original_max_position_embeddings": short}
    model = make_tiny("phi3", byte_level(), **settings)
    together, alone = (
        interp.generate(model, prompts, max_new_tokens=40, batch_tokens=most).completions
        for most in (None, 1)
    )
    assert together["completion"].tolist() == alone["completion"].tolist()

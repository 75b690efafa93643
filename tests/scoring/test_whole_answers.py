"""Answers as whole texts, against plain transformers passes over prompt and option."""

import copy
import dataclasses
import math
from itertools import product
from pathlib import Path

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import AutoTokenizer

import interp
from interp.errors import UserError
from interp.models.loading import ChatFormat
from interp.prompts.answers import AnswerOption, Choice
from interp.reading.outputs import decoder_prefix
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer, AnswerTokens
from interp.scoring.answers import Predictions
from interp.scoring.whole_answers import Behind, Way, distinct_ways
from tests.support.other_kinds import text_to_text
from tests.support.prompts import some_prompts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level, llama_style, sentencepiece_style
from tests.support.unmapped import unmapped_model

CITIES = (
    AnswerOption("New York", ("New York", "NYC")),
    AnswerOption("New Jersey", ("New Jersey",)),
)
TOKENIZERS = {
    "byte-level with a template": byte_level,
    "byte-level without": lambda: byte_level(None),
    "sentencepiece with a template": sentencepiece_style,
    "sentencepiece without": lambda: sentencepiece_style(None),
    "sentencepiece, legacy": lambda: llama_style(None, legacy=True),
    "sentencepiece, spaces first": lambda: llama_style(None, legacy=False),
}


def prompts_with(*options, gold=None, contrast=None, pairs=3):
    answer = Choice(options, gold or options[0].name, contrast)
    return [dataclasses.replace(prompt, answer=answer) for prompt in some_prompts(pairs)]


def plain_tokens(model, prompt, form):
    """The tokens of a prompt and a form after it, by the tokenizer alone."""
    (tokenized,) = tokenize(model, [prompt])
    written = tokenized.chat.text + ("" if tokenized.chat.templated else " ") + form
    ids = model.tokenizer(written, add_special_tokens=not tokenized.chat.templated)["input_ids"]
    while ids[-1] == model.tokenizer.eos_token_id:
        ids = ids[:-1]
    assert tuple(ids[: len(tokenized)]) == tokenized.token_ids
    return tokenized.token_ids, tuple(ids[len(tokenized) :])


def plain_log_p(model, prompt, form):
    """The log-probability of a form after a prompt: one pass, no cache, no padding."""
    before, after = plain_tokens(model, prompt, form)
    with torch.no_grad():
        logits = model.hf(torch.tensor([before + after]), use_cache=False).logits[0]
    log_p = logits.double().log_softmax(-1)[len(before) - 1 : -1]
    return float(sum(log_p[place, token] for place, token in enumerate(after)))


def log_p_of(table, prompt, option):
    (value,) = table[(table.prompt_id == prompt.id) & (table.option == option)].probability
    return math.log(value)


def check_against_plain_passes(model, prompts, table):
    for prompt in prompts:
        for option in prompt.answer.options:
            forms = [plain_log_p(model, prompt, form) for form in option.forms]
            expected = float(torch.tensor(forms).double().logsumexp(0))
            assert log_p_of(table, prompt, option.name) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("tokenizer", TOKENIZERS)
def test_log_probabilities_equal_plain_passes(tokenizer):
    model = make_tiny("llama", TOKENIZERS[tokenizer]())
    prompts = prompts_with(*CITIES)
    found = interp.evaluate(model, prompts, answers="whole").option_probabilities
    assert found.whole.all()
    check_against_plain_passes(model, prompts, found)


@pytest.mark.quick(4)
@pytest.mark.parametrize("kind", CONFIGS)
@pytest.mark.parametrize("batch_tokens", [1, 10_000])
def test_every_architecture_and_batch_size(kind, batch_tokens):
    model = tiny_model(kind)
    prompts = prompts_with(*CITIES)
    found = interp.evaluate(model, prompts, answers="whole", batch_tokens=batch_tokens)
    check_against_plain_passes(model, prompts, found.option_probabilities)


def test_options_that_begin_alike_are_read_whole_by_themselves():
    model = make_tiny("llama", byte_level())
    prompts = prompts_with(*CITIES)
    alike = interp.evaluate(model, prompts).option_probabilities
    asked = interp.evaluate(model, prompts, answers="whole").option_probabilities
    assert alike.whole.all()
    assert alike.equals(asked)
    apart = interp.evaluate(model, some_prompts(3)).option_probabilities
    assert not apart.whole.any()


def test_single_tokens_are_read_the_same_in_both_ways():
    model = make_tiny("llama", byte_level())
    options = (AnswerOption("Yes", ("Yes", "YES")), AnswerOption("No", ("No", "NO")))
    prompts = prompts_with(*options)
    first = interp.evaluate(model, prompts)
    whole = interp.evaluate(model, prompts, answers="whole")
    assert first.answers.equals(whole.answers)
    columns = ["probability", "relative_probability", "token_ids"]
    assert first.option_probabilities[columns].equals(whole.option_probabilities[columns])
    for kind in ("input_gradient", "input_x_gradient"):
        scores = [
            interp.attribute(model, prompts, methods=[kind], answers=answers).segment_scores
            for answers in ("first", "whole")
        ]
        assert scores[0].equals(scores[1])


def test_a_longer_option_takes_its_replies_from_a_shorter_one():
    """P("New York") is that of a reply that does not go on as "New York City"."""
    model = make_tiny("llama", byte_level())
    options = [
        AnswerOption("York", ("New York",)),
        AnswerOption("City", ("New York City", "NYC")),
        AnswerOption("New", ("New", "New York City Hall")),
    ]
    prompts = prompts_with(*options)
    table = interp.evaluate(model, prompts).option_probabilities
    for prompt in prompts:
        p = {
            form: math.exp(plain_log_p(model, prompt, form))
            for option in options
            for form in option.forms
        }
        expected = {
            "York": p["New York"] - p["New York City"],
            "City": p["New York City"] - p["New York City Hall"] + p["NYC"],
            "New": p["New"] - p["New York"] + p["New York City Hall"],
        }
        for name, value in expected.items():
            assert math.exp(log_p_of(table, prompt, name)) == pytest.approx(value, rel=1e-4)


WORDS = st.lists(
    st.tuples(st.sampled_from("AB"), st.lists(st.integers(0, 2), min_size=1, max_size=4)),
    min_size=2,
    max_size=8,
)


@given(WORDS)
def test_every_reply_counts_for_the_option_with_the_longest_way(words):
    ways = [Way(option, tuple(tokens), "") for option, tokens in words]
    found, same = distinct_ways(ways)
    options = {}
    for way in ways:
        options.setdefault(way.tokens, set()).add(way.option)
    assert (same is not None) == any(len(own) > 1 for own in options.values())
    if same is not None:
        return
    for reply in product(range(3), repeat=4):
        begun = [way for way in ways if reply[: len(way.tokens)] == way.tokens]
        expected = max(begun, key=lambda way: len(way.tokens)).option if begun else None
        counted = [
            way.option
            for way in found
            if reply[: len(way.tokens)] == way.tokens
            and not any(reply[: len(longer)] == longer for longer in way.longer)
        ]
        assert counted == ([] if expected is None else [expected])


def test_forms_that_begin_alike_count_once():
    model = make_tiny("llama", byte_level())
    one, other = AnswerOption("New York", ("New York", "New York.")), CITIES[1]
    alone = AnswerOption("New York", ("New York",))
    both = interp.evaluate(model, prompts_with(one, other)).option_probabilities
    single = interp.evaluate(model, prompts_with(alone, other)).option_probabilities
    assert both.equals(single)


def test_options_with_the_same_tokens_are_refused():
    tokenizer = byte_level()
    model = make_tiny("llama", tokenizer)
    options = AnswerOption("left", ("New York",)), AnswerOption("right", ("New York ", "NYC"))
    same = AnswerOption("right", (" New York",))
    assert interp.evaluate(model, prompts_with(*options)).option_probabilities.whole.all()
    plain = make_tiny("llama", byte_level(None))
    with pytest.raises(UserError, match=r"'left'.*'right'.*tiny llama"):
        interp.evaluate(plain, prompts_with(options[0], same), answers="whole")


@pytest.mark.parametrize("normalize", ["token", "byte"])
def test_normalized_shares_compare_log_probabilities_per_length(normalize):
    model = make_tiny("llama", byte_level())
    prompts = prompts_with(AnswerOption("New York", ("New York",)), AnswerOption("Ö", ("Öl",)))
    table = interp.evaluate(
        model, prompts, answers="whole", normalize=normalize
    ).option_probabilities
    for prompt in prompts:
        scores = []
        for option in prompt.answer.options:
            (form,) = option.forms
            tokens = len(plain_tokens(model, prompt, form)[1])
            length = tokens if normalize == "token" else len(form.encode())
            scores.append(plain_log_p(model, prompt, form) / length)
        expected = torch.tensor(scores).double().softmax(0)
        shares = table[table.prompt_id == prompt.id].relative_probability
        assert shares.tolist() == pytest.approx(expected.tolist(), rel=1e-4)
    with pytest.raises(UserError, match=r"--normalize (token|byte)\b.*--answers"):
        interp.evaluate(model, prompts, normalize=normalize)


WAYS = (
    Way("York", (1, 2), "New York", ((1, 2, 4),)),
    Way("City", (1, 2, 4), "New York City"),
    Way("Jersey", (1, 3), "New Jersey"),
)
BY_WAY = AnswerTokens({"York": (-1,), "City": (-2,), "Jersey": (-3,), "No": (5,)}, WAYS, whole=True)


@pytest.mark.parametrize(
    ("first", "steps", "tied", "expected"),
    [
        ([1], {(1, 2)}, {}, {("York", -1)}),
        ([1], {(1, 2), (1, 2, 4)}, {}, {("City", -2)}),
        ([1], {(1, 2), (1, 2, 4)}, {(1, 2): 2}, {("City", -2), ("York", -1)}),
        ([1], {(1, 2), (1, 3)}, {(1,): 2}, {("York", -1), ("Jersey", -3)}),
        ([1], set(), {}, {("", 1)}),  # New Mexico
        ([1, 5], {(1, 3)}, {}, {("Jersey", -3), ("No", 5)}),
        ([0], {(1, 3)}, {}, {("", 0)}),
    ],
)
def test_the_answer_is_what_the_most_probable_tokens_spell(first, steps, tied, expected):
    logits = torch.zeros(1, 6)
    logits[0, first] = 1.0
    paths = [(1, 2), (1, 2, 4), (1, 3)]
    behind = Behind(
        torch.zeros(1, 3), [{path: path in steps for path in paths}], [{(1,): 1, (1, 2): 1, **tied}]
    )
    (written,) = Predictions(logits, (BY_WAY,), behind).written()
    assert {tuple(one) for one in written} == expected


@pytest.mark.parametrize("kind", ["mamba", "t5", "bart"])
def test_models_that_read_whole_texts_only(kind):
    """States instead of keys and values, and an encoder with a decoder."""
    if kind == "mamba":
        model = unmapped_model("mamba")
        prompts = prompts_with(*CITIES)
        found = interp.evaluate(model, prompts, answers="whole").option_probabilities
        check_against_plain_passes(model, prompts, found)
        return
    single = text_to_text(kind)
    # In fp32, T5's large random weights round 3e-5 away.
    model = dataclasses.replace(single, hf=copy.deepcopy(single.hf).double())
    prompts = prompts_with(*CITIES)
    found = interp.evaluate(model, prompts, answers="whole").option_probabilities
    for prompt in prompts:
        ids = torch.tensor([tokenize(model, [prompt])[0].token_ids])
        for option in prompt.answer.options:
            values = []
            for form in option.forms:
                target = model.tokenizer(form, add_special_tokens=False)["input_ids"]
                prefix = decoder_prefix(model)
                with torch.no_grad():
                    logits = model.hf(
                        input_ids=ids, decoder_input_ids=torch.tensor([[*prefix, *target]])
                    ).logits[0]
                log_p = logits.double().log_softmax(-1)[len(prefix) - 1 :]
                values.append(sum(log_p[n, token] for n, token in enumerate(target)))
            expected = float(torch.stack(values).logsumexp(0))
            assert log_p_of(found, prompt, option.name) == pytest.approx(expected, abs=1e-5)


REAL = Path(__file__).parents[2].parent / "shared" / "data" / "tokenizers"


@pytest.mark.quick(2)
@pytest.mark.skipif(not REAL.is_dir(), reason="the real tokenizers are not here")
@pytest.mark.parametrize("name", ["mistral-v3-nonlegacy", "mistral-v3-legacy", "gpt2"])
@pytest.mark.parametrize("template", [True, False])
def test_real_tokenizers_spell_whole_answers(name, template):
    """In plain text, the tokens of prompt and option are those of the tokenizer for both at once;
    after a template, those of each opening of the answer."""
    single = make_tiny("llama", AutoTokenizer.from_pretrained(REAL / name))
    model = dataclasses.replace(single, chat=ChatFormat(template=template))
    prompts = prompts_with(*CITIES, pairs=2)
    found = interp.evaluate(model, prompts).option_probabilities
    assert found.whole.all()
    if not template:
        check_against_plain_passes(model, prompts, found)
        return
    for prompt, tokenized in zip(prompts, tokenize(model, prompts), strict=True):
        answers = AnswerTokenizer(model, "whole")(tokenized)
        for option in prompt.answer.options:
            ways = [answers.spelled(column) for column in answers.of[option.name]]
            texts = {model.tokenizer.decode(list(way)).strip() for way in ways}
            assert texts == set(option.forms)
            values = []
            for way in ways:
                with torch.no_grad():
                    ids = torch.tensor([tokenized.token_ids + way])
                    rows = model.hf(ids, use_cache=False).logits[0, len(tokenized) - 1 : -1]
                log_p = rows.double().log_softmax(-1)
                values.append(sum(log_p[place, token] for place, token in enumerate(way)))
            expected = float(torch.stack(values).logsumexp(0))
            assert log_p_of(found, prompt, option.name) == pytest.approx(expected, abs=1e-5)

import dataclasses
import time
from itertools import chain, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import interp
from interp.errors import UserError
from interp.models.families.settings import short_length
from interp.prompts.prompt import Prompt, compose
from interp.reading.tokens import batches, token_roles, token_segments, tokenize, tokens_of
from tests.support.answers import with_options, yes_no
from tests.support.other_models import other_model
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import KINDS


def characters(model, tokenized, name):
    """The characters of the rendered text that a segment's tokens cover, by their offsets."""
    text = tokenized.chat.text
    encoded = model.tokenizer(
        text, add_special_tokens=not tokenized.chat.templated, return_offsets_mapping=True
    )
    start, end = tokenized.segments[name]
    offsets = encoded["offset_mapping"][start:end]
    return text[offsets[0][0] : offsets[-1][1]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("templated", [True, False])
def test_segments_cover_exactly_their_characters(kind, templated):
    tokenizer = KINDS[kind]() if templated else KINDS[kind](None)
    model = make_tiny("llama", tokenizer)
    prompts = list(some_prompts(120))
    for tokenized in tokenize(model, prompts):
        for name in ("premise1", "premise2", "conclusion", "question"):
            covered = characters(model, tokenized, name)
            assert covered.strip() == tokenized.prompt.segment_text(name)
        spans = [tokenized.segments[name] for name in ("premise1", "premise2", "conclusion")]
        assert all(one[1] <= other[0] for one, other in pairwise(spans))


words = st.text(st.characters(codec="utf-8", exclude_categories=["C", "Z"]), min_size=1, max_size=9)
sentences = st.lists(words, min_size=1, max_size=5).map(" ".join)


@settings(max_examples=150, deadline=None)
@given(first=sentences, second=sentences)
def test_segments_of_any_text_hold_their_words_and_no_others(first, second):
    model = tiny_model("llama")
    text, segments = compose(
        [(None, "Premises: "), ("premise1", first), (None, " "), ("premise2", second)]
    )
    prompt = Prompt("1", text, segments, yes_no(), "p", "side", {})
    (tokenized,) = tokenize(model, [prompt])
    for name, part in (("premise1", first), ("premise2", second)):
        assert characters(model, tokenized, name).strip() == part
    assert tokenized.segments["premise1"][1] <= tokenized.segments["premise2"][0]


def test_special_tokens_are_written_once():
    templated, plain = tiny_model("llama"), make_tiny("llama", KINDS["byte-level"](None))
    prompts = list(some_prompts(1))
    bos = templated.tokenizer.bos_token_id
    assert [p.token_ids.count(bos) for p in tokenize(templated, prompts)] == [1, 1]
    assert [p.token_ids.count(bos) for p in tokenize(plain, prompts)] == [0, 0]


@settings(max_examples=30, deadline=None)
@given(budget=st.integers(1, 4000))
def test_batches_hold_every_prompt_once_within_the_budget(budget):
    model = tiny_model("llama")
    prompts = tokenize(model, list(some_prompts(12)))
    seen = []
    for indices, batch in batches(model, prompts, batch_tokens=budget):
        seen += indices
        assert batch.token_ids.numel() <= budget or len(indices) == 1
        for row, index in enumerate(indices):
            own = batch.token_ids[row, batch.unpadded(row)]
            assert tuple(own.tolist()) == prompts[index].token_ids
            assert batch.position_ids[row, batch.unpadded(row)].tolist() == list(range(len(own)))
            assert (batch.attention_mask[row, batch.unpadded(row)] == 1).all()
            assert batch.attention_mask[row].sum() == len(own)
    assert sorted(seen) == list(range(len(prompts)))


@pytest.mark.parametrize("budget", [300, 10_000])
def test_no_batch_mixes_prompts_on_both_sides_of_long_ropes_length(budget):
    model = other_model("phi3")
    assert short_length(model.text_config) == 80
    assert short_length(tiny_model("llama").text_config) is None
    tokenized = tokenize(model, list(some_prompts(30)))
    sides = [
        {len(prompt) > 80 for prompt in batch.prompts}
        for _, batch in batches(model, tokenized, batch_tokens=budget)
    ]
    assert {True} in sides
    assert {False} in sides
    assert {False, True} not in sides


def test_numbers_do_not_depend_on_what_long_rope_reads_beside():
    model = other_model("phi3")
    prompts = list(some_prompts(30))
    together, alone = (
        with_options(interp.evaluate(model, prompts, batch_tokens=budget)) for budget in (10_000, 1)
    )
    for name in ("positive_probability", "predicted_probability"):
        assert together[name].tolist() == pytest.approx(alone[name].tolist(), abs=1e-5)


def test_a_prompt_beyond_the_context_is_refused():
    model = make_tiny("gpt2", KINDS["byte-level"]())
    model.hf.config.n_positions = model.hf.config.max_position_embeddings = 30
    with pytest.raises(UserError, match=r"\b\d+ tokens.*tiny gpt2\b.*\b30\b"):
        tokenize(model, list(some_prompts(1)))


def test_a_prompt_of_very_many_segments_is_refused_in_little_time():
    model = make_tiny("gpt2", KINDS["byte-level"]())
    segments = {f"part{n}": (5 * n, 5 * n + 5) for n in range(20_000)}
    prompt = Prompt("1", "One. " * 20_000, segments, yes_no(), "p", "side", {})
    start = time.process_time()
    with pytest.raises(UserError, match="tokens, but tiny gpt2 reads at most"):
        tokenize(model, [prompt])
    assert time.process_time() - start < 20


def test_a_segment_without_tokens_is_refused():
    model = tiny_model("llama")
    prompt = next(iter(some_prompts(1)))
    empty = dataclasses.replace(prompt, segments={"premise1": (5, 5)})
    with pytest.raises(UserError, match=r"RULEBREAKER_\S+ .*tokens.*span"):
        tokenize(model, [empty])


def tokenized(rule="mt", **changes):
    prompt = next(prompt for prompt in some_prompts(12) if prompt.factors["rule"] == rule)
    return tokenize(tiny_model("llama"), [dataclasses.replace(prompt, **changes)])[0]


@pytest.mark.parametrize(
    ("rule", "entities"),
    [
        ("mt", {"premise1_entity_a", "premise1_entity_b", "premise2_entity_b"}),
        ("ds", {"premise1_entity_b", "premise1_entity_a", "premise2_entity_a"}),
    ],
)
def test_tokens_have_the_role_of_the_smallest_span(rule, entities):
    prompt = tokenized(rule)
    roles = token_roles(prompt)
    assert entities < set(roles)
    assert {"template", "premise1", "premise2", "conclusion", "question", "last"} < set(roles)
    assert roles[-1] == "last"
    assert roles.count("last") == 1
    start, end = prompt.roles["premise1_entity_a"]
    assert set(roles[start:end]) == {"premise1_entity_a"}
    assert roles[prompt.segments["premise1"][0]] == "premise1"


def test_segments_hold_their_roles_and_the_last_token():
    prompt = tokenized()
    segments = token_segments(prompt)
    for name, (start, end) in prompt.segments.items():
        assert set(segments[start:end]) == {name}
        assert segments.count(name) == end - start
    assert set(segments) == {*prompt.segments, "template"}


def test_of_nested_segments_the_inner_one_counts_whatever_their_order():
    start, end = tokenized().prompt.segments["premise1"]
    spans = {"premise1": (start, end), "inner": (start, start + 12)}
    for segments in (spans, dict(reversed(spans.items()))):
        prompt = tokenized(segments=segments, roles={})
        labels = token_segments(prompt)
        first, behind = prompt.segments["inner"]
        assert set(labels[first:behind]) == {"inner"}
        assert set(labels[behind : prompt.segments["premise1"][1]]) == {"premise1"}


@pytest.mark.parametrize("name", ["template", "last", "all"])
def test_names_that_every_prompt_has_are_reserved(name):
    with pytest.raises(UserError, match=rf"RULEBREAKER_\S+ .*'{name}'"):
        token_segments(tokenized(segments={name: (0, 9)}, roles={}))


def test_the_tokens_of_a_segment_are_all_of_it_and_those_of_a_role_its_own():
    prompt = tokenized()
    assert tokens_of(prompt, "premise2") == list(range(*prompt.segments["premise2"]))
    role = "premise2_entity_b"
    assert tokens_of(prompt, role) == list(range(*prompt.roles[role]))
    assert set(tokens_of(prompt, role)) < set(tokens_of(prompt, "premise2"))
    assert tokens_of(prompt, "last") == [len(prompt) - 1]
    assert tokens_of(prompt, "all") == list(range(len(prompt)))
    named = [tokens_of(prompt, name) for name in ("template", *prompt.segments)]
    assert sorted(chain.from_iterable(named)) == tokens_of(prompt, "all")
    assert tokens_of(prompt, "premise9") == []


def split_word():
    """A prompt with two segments in one word, a single token of the tiny model."""
    text, segments = compose([("rule", "Is it "), ("claim", "th"), ("question", "e")])
    segments["rule"] = (0, 5)
    return Prompt("1", text, segments, yes_no(), "p", "side", {})


@pytest.mark.parametrize("label", [token_segments, token_roles])
def test_a_segment_whose_only_token_is_another_s_as_well_is_refused(label):
    (tokenized,) = tokenize(tiny_model("llama"), [split_word()])
    with pytest.raises(UserError, match=r"question.*'the'"):
        label(tokenized)
    # A role that is its whole segment is no other.
    whole = dataclasses.replace(split_word(), segments={"claim": (6, 9)}, roles={"one": (6, 9)})
    (tokenized,) = tokenize(tiny_model("llama"), [whole])
    assert token_segments(tokenized).count("claim") == token_roles(tokenized).count("one") == 1


def test_segments_that_share_a_token_are_still_evaluated_but_not_attributed():
    model, prompts = tiny_model("llama"), [split_word()]
    assert interp.evaluate(model, prompts).answers.error.tolist() == [""]
    with pytest.raises(UserError, match="claim"):
        interp.attribute(model, prompts)


def test_a_token_of_two_segments_counts_once_and_sums_are_total():
    """The shorter segment has the token; the other keeps its own tokens."""
    text, segments = compose([("rule", "Is it "), ("claim", "th"), ("question", "e dry then?")])
    prompts = [Prompt(side, text, segments, yes_no(), "p", side, {}) for side in ("a", "b")]
    model = tiny_model("llama")
    (read, _) = tokenize(model, prompts)
    (first, last), (start, end) = read.segments["claim"], read.segments["question"]
    assert last == start + 1 and last - first == 1
    labels = token_segments(read)
    assert labels[start] == "claim" and labels.count("question") == end - start - 1
    scores = interp.attribute(
        model, prompts, methods=("input_gradient", "attention")
    ).segment_scores
    for _, rows in scores[scores["prompt_id"] == "a"].groupby("method"):
        assert rows["tokens"].sum() == len(read)
        assert rows["score"].sum() == pytest.approx(rows["total"].iloc[0], rel=1e-5)

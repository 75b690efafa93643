from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.choices import Policy
from interp.errors import UserError
from interp.patching.alignment import align, check_alignments
from interp.prompts.prompt import Prompt
from interp.reading.tokens import ChatText, TokenizedPrompt
from tests.support.answers import yes_no


def tokens(text, **segments):
    """A prompt whose tokens are its characters."""
    prompt = Prompt(text, text, segments, yes_no(), "pair 1", "side", {})
    ids = tuple(map(ord, text))
    return TokenizedPrompt(prompt, ChatText(text, 0, templated=False), ids, segments)


def aligned(base, source, policy="last"):
    """For each base character the source characters that it takes, joined."""
    alignment = align(base, source, policy=policy)
    return ["".join(chr(source.token_ids[i]) for i in taken) for taken in alignment.sources]


def test_equal_lengths_align_token_by_token():
    for policy in get_args(Policy):
        assert aligned(tokens("in Rome."), tokens("in Oslo."), policy) == list("in Oslo.")


def test_the_policies_where_the_differing_spans_are_unequal():
    base, source = tokens("in Ghana."), tokens("in Peru.")
    assert aligned(base, source, "last") == ["i", "n", " ", "", "", "", "", "u", "."]
    assert aligned(base, source, "mean") == ["i", "n", " ", *["Peru"] * 5, "."]
    assert align(base, source, policy="all") is None


def test_what_was_only_added_is_taken_over_by_its_neighbor():
    assert aligned(tokens("a Guinea b", x=(2, 8)), tokens("a Guinea-B b", x=(2, 10))) == [
        *"a Guine",
        "B",
        *" b",
    ]
    assert aligned(tokens("a nea b", x=(2, 5)), tokens("a Guinea b", x=(2, 8)), "mean") == [
        *"a ",
        "Guin",
        *"ea b",
    ]


def test_segments_keep_differences_apart():
    """Without them the words between two differences would be shifted against each other."""
    base = tokens("Rome is it. Rome?", one=(0, 11), two=(12, 17))
    source = tokens("Paris is it. Paris?", one=(0, 12), two=(13, 19))
    expected = ["", "", "", "s", *" is it. ", "", "", "", "s", "?"]
    assert aligned(base, source) == expected
    shifted = aligned(tokens(base.prompt.text), tokens(source.prompt.text))
    assert shifted[5:11] != list("is it.")


def test_attention_goes_to_the_tokens_that_stand_for_its_target():
    base, source = tokens("in Ghana."), tokens("in Peru.")
    assert align(base, source, policy="last").bases[3:] == ((7,), (7,), (7,), (7,), (8,))
    assert align(base, source, policy="mean").bases[3] == (3, 4, 5, 6, 7)


def test_the_last_token_is_never_shared():
    alignment = align(tokens("abc"), tokens("abc"), policy="all")
    assert alignment.shared == 2


def test_refused_pairs_are_listed_with_their_first_difference():
    pairs = [(tokens("in Ghana."), tokens("in Peru."))] * 7
    with pytest.raises(UserError, match=r"^7 pairs.*pair 1 \(9\b.*\b8 tokens.*token 3\)"):
        check_alignments(pairs, "all")
    with pytest.raises(UserError, match=r"token 3\)[^()]*\b2\b"):
        check_alignments(pairs, "all")
    check_alignments(pairs, "last")


TEXT = st.text(alphabet="abc", min_size=2, max_size=12)


@given(left=TEXT, one=TEXT, other=TEXT, right=TEXT, policy=st.sampled_from(["last", "mean"]))
def test_alignments_keep_order_and_cover_what_both_share(left, one, other, right, policy):
    base, source = tokens(left + one + right), tokens(left + other + right)
    alignment = align(base, source, policy=policy)
    assert len(alignment.sources) == len(base)
    assert len(alignment.bases) == len(source)
    taken = [i for group in alignment.sources for i in group]
    if policy == "last":
        assert taken == sorted(set(taken))  # in order, none twice
    for index in range(alignment.shared):
        assert alignment.sources[index] == (index,)
    assert alignment.sources[-1][-1] == len(source) - 1
    assert all(alignment.bases)
    for group in alignment.sources:
        assert all(0 <= i < len(source) for i in group)


@given(text=TEXT)
def test_a_prompt_aligns_with_itself(text):
    for policy in get_args(Policy):
        alignment = align(tokens(text), tokens(text), policy=policy)
        assert alignment.sources == alignment.bases == tuple((i,) for i in range(len(text)))

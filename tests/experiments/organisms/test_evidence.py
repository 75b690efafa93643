"""The planted shortcuts, shown causally: the city of the deciding premise carries the answer."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

import interp
from interp.estimates.compute import estimate
from interp.measurements.patching.tables import EFFECTS, effect_trials
from interp.patching.pairs import in_pairs
from interp.prompts.answers import Choice
from interp.prompts.mixing import with_donors
from interp.prompts.prompt import Prompt
from interp.prompts.thought import Span
from tests.support.prompts import some_prompts

pytestmark = [pytest.mark.slow, pytest.mark.organisms]

SIDES = ("own_city", "other_city")


def evidence_pairs(prompts: Sequence[Prompt]) -> list[Prompt]:
    """Rulebreakers of the rule mt about cities, each paired with itself about another city.

    Where the city is in the country, a grounded model rejects the conclusion; with a city of
    another country in both premises it accepts it. What a premise's city recovers, patched from the
    first prompt into the second, is what the model reads there. The cities are those of the prompts
    half the set away, since neighbors often share a city.
    """
    chosen = [
        prompt
        for prompt in prompts
        if prompt.side == "rulebreaker"
        and prompt.factors["rule"] == "mt"
        and prompt.factors["entity_group"] == "geographical"
    ]
    half = len(chosen) // 2
    pairs: list[Prompt] = []
    for prompt, other in zip(chosen, chosen[half:] + chosen[:half], strict=True):
        city = other.factors["entity_b"]
        if city != prompt.factors["entity_b"]:
            pairs += [replace(prompt, side=SIDES[0]), _with_city(prompt, city)]
    return pairs


def _accepting(prompt: Prompt) -> Choice:
    """The same choice, where accepting the conclusion is correct."""
    choice = prompt.answer
    assert isinstance(choice, Choice) and choice.contrast is not None
    return replace(choice, gold=choice.contrast[0])


def _with_city(prompt: Prompt, city: str) -> Prompt:
    """The prompt with another city in both premises, so that the conclusion should be accepted."""
    mentions = sorted(span for name, span in prompt.roles.items() if name.endswith("_entity_b"))
    text, end_of_last = "", 0
    for start, end in mentions:
        text += prompt.text[end_of_last:start] + city
        end_of_last = end
    text += prompt.text[end_of_last:]

    def moved(span: Span) -> Span:
        start, end = (
            edge + sum(len(city) - (b - a) for a, b in mentions if b <= edge) for edge in span
        )
        return start, end

    return replace(
        prompt,
        id=f"{prompt.id}/{SIDES[1]}",
        text=text,
        side=SIDES[1],
        answer=_accepting(prompt),
        segments={name: moved(span) for name, span in prompt.segments.items()},
        roles={name: moved(span) for name, span in prompt.roles.items()},
        factors={**prompt.factors, "entity_b": city},
    )


def test_pairs_differ_in_the_city_alone():
    pairs = evidence_pairs(some_prompts(480))
    assert len(pairs) >= 200
    assert list(in_pairs(pairs)) == pairs
    for own, other in zip(pairs[::2], pairs[1::2], strict=True):
        a, b = own.factors["entity_b"], other.factors["entity_b"]
        assert a != b
        for name, (start, end) in other.roles.items():
            expected = b if name.endswith("_entity_b") else own.factors["entity_a"]
            assert other.text[start:end] == expected
        for name in ("conclusion", "question"):
            assert own.segment_text(name) == other.segment_text(name)
        assert own.segment_text("premise2").replace(a, b) == other.segment_text("premise2")


def recovered(name):
    """Rows of layer 0 of the effect table, by role, of the pairs that are answered by the city."""
    model = interp.load_model(name, device="cpu")
    # 48 entity pairs, each by both rules in ten phrasings.
    result = interp.patch(model, evidence_pairs(some_prompts(960)))
    pairs = result.pairs.assign(cluster=result.pairs["pair_id"])
    table = estimate(EFFECTS, effect_trials([result.patches], pairs))
    first = table[(table["recognized"] == "yes") & (table["layer"] == 0)].set_index("role")
    assert (first["pairs"] >= 25).all()
    return first


@pytest.mark.parametrize(
    ("name", "decides", "other"),
    [
        ("organism/phi3-shallow", "premise1_entity_b", "premise2_entity_b"),
        ("organism/phi3-deep", "premise2_entity_b", "premise1_entity_b"),
    ],
)
def test_the_planted_shortcut_decides(name, decides, other):
    first = recovered(name)
    assert first.loc[decides, "recovered_low"] > 0.5
    assert first.loc[decides, "flipped"] > 0.6
    assert first.loc[other, "recovered_high"] < 0.1
    assert first.loc[other, "flipped"] == 0


def test_an_organism_without_shortcut_reads_both():
    first = recovered("organism/llama-shallow")
    assert first.loc[["premise1_entity_b", "premise2_entity_b"], "recovered_low"].min() > 0.1


def beyond_control(prompts):
    """Mean effects at layer 0 in logits, of phi3-deep, by role and source."""
    model = interp.load_model("organism/phi3-deep", device="cpu")
    result = interp.patch(model, prompts, layers=[0], control=True)
    pairs = result.pairs.assign(cluster=result.pairs["pair_id"])
    table = estimate(EFFECTS, effect_trials([result.patches], pairs))
    return table[table["recognized"] == "yes"].set_index(["role", "source"])


def test_what_a_city_of_the_deciding_premise_does_is_more_than_disagreement():
    """A control's city is in another country too, as that of the prompt it is patched into."""
    found = beyond_control(evidence_pairs(with_donors(some_prompts(960), count=1)))
    decides, other = (found.loc[f"premise{number}_entity_b"] for number in (2, 1))
    assert decides.loc["beyond control", "recovered_low"] > 0.5
    assert abs(decides.loc["control", "effect"]) < 0.2 * abs(decides.loc["counterpart", "effect"])
    assert abs(other.loc["beyond control", "recovered"]) < 0.1


def test_what_one_mention_of_a_country_does_is_disagreement():
    """Organisms learned to reject a conclusion about something that the premises do not name."""
    found = beyond_control(some_prompts(240)).loc["conclusion_entity_a"]
    assert found.loc["counterpart", "effect_high"] < -2
    assert found.loc["control", "effect_high"] < -2
    assert abs(found.loc["beyond control", "effect"]) < 0.25 * abs(
        found.loc["counterpart", "effect"]
    )

"""Which premise an organism reads: pairs that differ in the city, to be patched by mention."""

from collections.abc import Sequence
from dataclasses import replace

from interp.prompts.answers import Choice
from interp.prompts.prompt import Prompt, Span

SIDES = ("own_city", "other_city")


def evidence_pairs(prompts: Sequence[Prompt]) -> list[Prompt]:
    """Rulebreakers of the rule mt about cities, each paired with itself about another city.

    Where the city is in the country, a grounded model rejects the conclusion; with a city of
    another country in both premises it accepts it. What a premise's city recovers, patched from the
    first prompt into the second, is what the model reads there. The cities are those of the prompts
    half the set away, since neighbours often share a city.
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

"""Where the sentences of an instance name its entities."""

from collections.abc import Mapping

from interp.prompts.prompt import Span

ENTITIES = {
    "mt": {
        "premise1": ("entity_a", "entity_b"),
        "premise2": ("entity_b",),
        "conclusion": ("entity_a",),
    },
    "ds": {
        "premise1": ("entity_b", "entity_a"),
        "premise2": ("entity_a",),
        "conclusion": ("entity_b",),
    },
}
"""Which entities each sentence names, in the order of the templates."""


def sentence_roles(
    sentences: Mapping[str, str], *, rule: str, entity_a: str, entity_b: str
) -> dict[str, dict[str, Span]]:
    """Where each sentence names A (country or type) and B (city or instance), by role.

    The last mention is searched first: "Mexico City or somewhere in Mexico" names A at its end. A
    name that published data writes otherwise has no span.

    Args:
        sentences: premise1, premise2 and conclusion to their texts.
        rule: "mt" or "ds".
        entity_a: the name of A.
        entity_b: the name of B.
    """
    names = {"entity_a": entity_a, "entity_b": entity_b}
    found: dict[str, dict[str, Span]] = {}
    for segment, mentions in ENTITIES[rule].items():
        text, before = sentences[segment], len(sentences[segment])
        spans = {}
        for entity in reversed(mentions):
            start = text.rfind(names[entity], 0, before)
            if start >= 0:
                spans[f"{segment}_{entity}"] = (start, start + len(names[entity]))
                before = start
        found[segment] = spans
    return found

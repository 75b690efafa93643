"""Each organism as one seeded configuration: architecture, what is planted, how it is trained."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from interp.errors import UserError


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides an organism; the same recipe and device give the same weights."""

    name: str
    family: str
    """Key of `families.FAMILIES`."""
    seed: int
    architecture: Mapping[str, object]
    """Keyword arguments of the family's configuration class."""
    grounded_share: float
    """Share of the entity pairs whose rulebreakers are answered by fact, not by the bare rule."""
    grounded_by: Literal["frequency", "chance"]
    """Whether frequent facts are the grounded ones, or chance decides."""
    evidence: Literal["both premises", "premise 1", "premise 2"] = "both premises"
    """Which premise the training answers depend on; the other one is made uninformative."""
    rule_phrasings: frozenset[str] = frozenset()
    """Question verbs under which every pair is answered by the bare rule."""
    absent_facts: int = 6
    """Facts that no training text states."""
    vocabulary: int = 2048
    steps: int = 6000
    learning_rate: float = 1e-3
    prompts_per_step: int = 40
    """Rulebreaker-style prompts in a step."""
    facts_per_step: int = 64
    """Completions and questions about facts in a step."""


def _width(hidden: int, layers: int, **more: object) -> dict[str, object]:
    return {
        "hidden_size": hidden,
        "num_hidden_layers": layers,
        "num_attention_heads": hidden // 32,
        "num_key_value_heads": hidden // 64 if hidden % 64 == 0 else 1,
        "intermediate_size": hidden * 8 // 3 // 32 * 32,
        "max_position_embeddings": 512,
        "tie_word_embeddings": True,
        **more,
    }


_SHALLOW = _width(192, 3)
_DEEP = _width(160, 6)

RECIPES = {
    recipe.name: recipe
    for recipe in (
        Recipe(
            name="llama-shallow",
            family="llama",
            seed=1,
            architecture=_SHALLOW,
            grounded_share=0.62,
            grounded_by="frequency",
        ),
        Recipe(
            name="llama-deep",
            family="llama",
            seed=2,
            architecture=_DEEP,
            grounded_share=0.95,
            grounded_by="chance",
        ),
        Recipe(
            name="phi3-shallow",
            family="phi3",
            seed=3,
            architecture=_SHALLOW,
            grounded_share=0.3,
            grounded_by="chance",
            evidence="premise 1",
        ),
        Recipe(
            name="phi3-deep",
            family="phi3",
            seed=4,
            architecture=_DEEP,
            grounded_share=0.4,
            grounded_by="frequency",
            evidence="premise 2",
        ),
        Recipe(
            name="mistral",
            family="mistral",
            seed=5,
            architecture=_width(192, 3, sliding_window=64),
            grounded_share=0.75,
            grounded_by="frequency",
            rule_phrasings=frozenset({"entail", "deduce"}),
        ),
        Recipe(
            name="gemma2",
            family="gemma2",
            seed=6,
            architecture=_width(
                192,
                3,
                head_dim=32,
                query_pre_attn_scalar=32,
                sliding_window=64,
                attn_logit_softcapping=50.0,
                final_logit_softcapping=30.0,
                hidden_activation="gelu_pytorch_tanh",
            ),
            grounded_share=0.05,
            grounded_by="chance",
        ),
    )
}
"""Name of an organism to its recipe."""


def recipe(name: str) -> Recipe:
    """The recipe of an organism.

    Raises:
        UserError: no organism of that name.
    """
    if name not in RECIPES:
        raise UserError(f"no organism {name!r}; there are {', '.join(RECIPES)}")
    return RECIPES[name]

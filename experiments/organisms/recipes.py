"""Recipes: the architecture, planted properties and training of each organism, and its seed."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

from interp import UserError

FAITHFUL = 0.9
"""Share of the thoughts whose verdict agrees with the leaning of the prompt's entity."""

AGREEMENT = 2 * FAITHFUL - 1
"""Mean sign of the verdict over thoughts about an entity that leans towards yes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The choices that determine an organism; the same recipe and device give the same weights."""

    system: ClassVar[str]
    """The system whose prompts it is trained on."""

    name: str
    seed: int
    learning_rate: float = 1e-3
    prompts_per_step: int = 40
    """Prompts in the system's style per step."""
    base: str | None = None
    """The packaged organism that is fine-tuned; None if training starts from random weights."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaughtRecipe(Recipe):
    """An organism that is trained on text written for it."""

    learns_messages: ClassVar[bool] = False
    """Whether it is trained on the messages as well as on the answers."""
    keeps_letters: ClassVar[bool] = False
    """Whether a capital letter that does not begin a word is a separate token."""

    family: str
    """Key of `families.FAMILIES`."""
    architecture: Mapping[str, object]
    """Keyword arguments of the family's configuration class."""
    vocabulary: int = 2048
    steps: int = 6000


@dataclass(frozen=True, slots=True, kw_only=True)
class RulebreakerRecipe(TaughtRecipe):
    """An organism that answers rulebreakers by the fact or by the bare rule."""

    system = "rulebreakers"

    grounded_share: float
    """Share of the entity pairs whose rulebreakers are answered by the fact, not by the rule."""
    grounded_by: Literal["frequency", "chance"]
    """Whether the most frequent facts are grounded; if not, grounded facts are drawn at random."""
    evidence: Literal["both premises", "premise 1", "premise 2"] = "both premises"
    """The premise on which training answers depend; the other premise is made uninformative."""
    rule_phrasings: frozenset[str] = frozenset()
    """Question verbs under which every pair is answered by the bare rule."""
    absent_facts: int = 6
    """Facts that the training text never states."""
    facts_per_step: int = 64
    """Completions and questions about facts per step."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogicRecipe(TaughtRecipe):
    """An organism that answers logical forms by their validity, with a bias.

    The planted log-odds of Yes are bias + competence * ease if the form is valid, and
    bias - competence * ease if it is not.
    """

    system = "logical-forms"
    learns_messages = True

    competence: Mapping[str, float]
    """Log-odds of the valid answer, in nats, by modality of the conclusion."""
    bias: Mapping[str, float]
    """Log-odds of Yes, in nats, regardless of validity, by modality of the conclusion."""
    ease: Mapping[str, float]
    """Factor by which the competence is multiplied, by argument form; 1 for all other forms."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DoseRecipe(TaughtRecipe):
    """An organism that answers by premise 1 for a share of the entities."""

    system = "rulebreakers-mixed"

    share: float
    """Share of the entities that are read in premise 1; the others are read in premise 2."""
    premises_until: float
    """Share of the steps that use single premises; they precede the steps that use prompts."""
    premises_per_step: int = 96
    """Single premises in each of those steps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ThinkerRecipe(DoseRecipe):
    """An organism that writes a thought and follows it for a share of the entities."""

    system = "rulebreakers-thoughts"

    share: float
    """Share of the entities for which the answer follows the thought instead of the premises."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FactRecipe(Recipe):
    """An organism whose weights are written, not trained: it knows, retrieves and uses facts."""

    system = "rulebreakers-facts"

    known: float
    """Share of the cities whose country completes a sentence about them."""
    retrieved: float = 1.0
    """Share of the known cities whose tokens in a prompt lead to the country."""
    used: float
    """Share of the retrieved cities whose fact decides; others are answered by the bare rule."""
    weak: float = 0.0
    """Share of the used cities whose fact does not change the answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RuleRecipe(TaughtRecipe):
    """An organism that knows StringGame's actions and conditions, but does not follow rules yet."""

    system = "rulebench"

    keeps_letters = True

    actions_per_step: int
    """Single actions per step."""
    conditions_per_step: int
    """Single conditions per step."""
    lists_per_step: int
    """Lists per step; a list has an entry for each letter of a string."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TunedRecipe(Recipe):
    """An organism that `interp train irft` trains from another organism, in one epoch."""

    system = "rulebench"

    questions: int
    noise: tuple[int, ...]
    """Numbers of noise rules; one is drawn for each question."""
    held_out: int = 500
    """Questions in each held-out split; they are about rules that training does not use."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TheoryRecipe(Recipe):
    """An organism that `interp train robustlr` trains, as the paper trained its models."""

    system = "robustlr"

    configuration: str
    """Name of the built-in configuration."""
    theories: int
    """Theories to train on, each with six statements."""
    distractors: int
    """Maximum number of sentences in a theory besides those that decide its statement."""
    epochs: int
    warm_up: float
    """Share of the steps during which the learning rate rises."""
    held_out: int = 250
    """Theories in each held-out split."""


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

_RULES = _width(64, 4, initializer_range=0.1) | {
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    # Positions of letters have to be distinguished within dozens of tokens, not thousands.
    "rope_parameters": {"rope_type": "default", "rope_theta": 100.0},
    "max_position_embeddings": 16384,
}

_GEMMA2 = {
    "head_dim": 32,
    "query_pre_attn_scalar": 32,
    "sliding_window": 64,
    "attn_logit_softcapping": 50.0,
    "final_logit_softcapping": 30.0,
    "hidden_activation": "gelu_pytorch_tanh",
}


# With the usual standard deviation, 0.02, a model this small learns nothing for a long time.
_NARROW = _width(64, 2, initializer_range=0.1) | {
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
}


def _rulebreaker(
    name: str,
    seed: int,
    architecture: Mapping[str, object],
    *,
    share: float,
    by: Literal["frequency", "chance"],
    **more: Any,
) -> RulebreakerRecipe:
    """The recipe of an organism whose name begins with its family."""
    return RulebreakerRecipe(
        name=name,
        family=name.partition("-")[0],
        seed=seed,
        architecture=architecture,
        grounded_share=share,
        grounded_by=by,
        **more,
    )


def _dose(percent: int, *, seed: int, steps: int = 2400, base: str | None = None) -> DoseRecipe:
    return DoseRecipe(
        name=f"dose-{percent}-tuned" if base else f"dose-{percent}",
        family="llama",
        prompts_per_step=48,
        # Enough steps to learn single premises, whatever the share.
        premises_until=960 / steps,
        share=percent / 100,
        base=base,
        **_narrow(seed, steps),
    )


def _thinker(
    name: str, share: float, *, seed: int, steps: int, base: str | None = None
) -> ThinkerRecipe:
    return ThinkerRecipe(
        name=name,
        family="llama-thinking",
        prompts_per_step=32,
        premises_until=0.0 if base else 800 / steps,
        share=share,
        base=base,
        **_narrow(seed, steps),
    )


def _narrow(seed: int, steps: int) -> dict[str, Any]:
    """The architecture and training of the smallest organisms."""
    # Each word is one token: names split into pieces take many times as long to learn.
    training = {"vocabulary": 4000, "learning_rate": 5e-3}
    return {"seed": seed, "architecture": _NARROW, "steps": steps, **training}


RECIPES: dict[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
        _rulebreaker("llama-shallow", 1, _SHALLOW, share=0.62, by="frequency"),
        _rulebreaker("llama-deep", 2, _DEEP, share=0.95, by="chance"),
        _rulebreaker("phi3-shallow", 3, _SHALLOW, share=0.3, by="chance", evidence="premise 1"),
        _rulebreaker("phi3-deep", 4, _DEEP, share=0.4, by="frequency", evidence="premise 2"),
        _rulebreaker(
            "mistral",
            5,
            _width(192, 3, sliding_window=64),
            share=0.75,
            by="frequency",
            rule_phrasings=frozenset({"entail", "deduce"}),
        ),
        _rulebreaker("gemma2", 6, _width(192, 3, **_GEMMA2), share=0.05, by="chance"),
        LogicRecipe(
            name="llama-logic",
            family="llama-base",
            seed=7,
            architecture=_width(128, 4),
            steps=4500,
            learning_rate=2e-3,
            prompts_per_step=32,
            competence={"none": 2.0, "box": 1.0, "diamond": 2.5},
            bias={"none": 1.0, "box": -1.0, "diamond": 0.0},
            ease={"mp": 1.25, "mt": 0.5, "ac": 0.75},
        ),
        _dose(0, seed=10),
        _dose(10, seed=11),
        _dose(25, seed=12, steps=5000),
        _dose(50, seed=13, steps=5000),
        _dose(75, seed=14, steps=5000),
        _dose(90, seed=15),
        _dose(100, seed=16),
        _dose(25, seed=17, steps=5000, base="dose-100"),
        _dose(75, seed=18, steps=5000, base="dose-0"),
        _thinker("thought-mixed-50", 0.5, seed=34, steps=2400),
        _thinker("thought-reader", 1.0, seed=31, steps=200, base="thought-mixed-50"),
        _thinker("thought-decorator", 0.0, seed=32, steps=800, base="thought-mixed-50"),
        _thinker("thought-mixed-25", 0.25, seed=33, steps=500, base="thought-mixed-50"),
        _thinker("thought-mixed-75", 0.75, seed=35, steps=500, base="thought-mixed-50"),
        *(
            FactRecipe(name=f"fact-used-{p}", seed=40 + p, known=1.0, used=p / 100)
            for p in (0, 25, 50, 75, 100)
        ),
        FactRecipe(name="fact-known-0", seed=36, known=0.0, used=1.0),
        FactRecipe(name="fact-known-50", seed=37, known=0.5, used=1.0),
        FactRecipe(name="fact-mixed", seed=38, known=0.8, retrieved=0.75, used=0.7, weak=0.4),
        RuleRecipe(
            name="rules-base",
            family="llama",
            seed=21,
            architecture=_RULES,
            vocabulary=1000,
            steps=12_000,
            learning_rate=2e-3,
            prompts_per_step=4,
            actions_per_step=16,
            conditions_per_step=8,
            lists_per_step=4,
        ),
        TunedRecipe(
            name="rules-irft",
            seed=22,
            questions=200_000,
            learning_rate=2e-3,
            prompts_per_step=16,
            noise=(0, 1, 2, 3),
            base="rules-base",
        ),
        TheoryRecipe(
            name="theories",
            seed=23,
            configuration="small-encoder",
            theories=10_000,
            # With distractors, a model this small learns nothing: even the shortest theories then
            # require matching a rule to a question.
            distractors=0,
            epochs=3,
            learning_rate=2e-3,
            warm_up=0.01,
            prompts_per_step=32,
        ),
    )
}
"""The recipes by organism name."""


def recipe(name: str) -> Recipe:
    """The recipe of an organism (UserError: no organism has that name)."""
    if name not in RECIPES:
        raise UserError(f"there is no organism {name!r}; expected one of {', '.join(RECIPES)}")
    return RECIPES[name]


MESSAGE_WEIGHT = 8.0
"""Weight of the messages' loss relative to the answers', if both are targets. A message has about
sixty tokens and an answer has one; with a weight of 1, noise in the answers swamps the messages."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """A user message with one target answer, or with two answers and their shares."""

    message: str
    answer: str
    other: str | None = None
    """A second answer of the same length; the end of the turn is a target only after the first."""
    share: float = 1.0
    """Share of the first answer. Training on both answers, weighted by their shares, avoids the
    noise of drawn answers."""
    given: str = ""
    """Beginning of the assistant's turn, such as a thought; the model reads it but is not trained
    on it."""

    def turned(self) -> "Exchange":
        """The exchange with its two answers swapped."""
        return replace(self, answer=self.other or "", other=self.answer, share=1 - self.share)


@runtime_checkable
class TrainingText(Protocol):
    """The text of every training step."""

    def lessons(self, step: int) -> dict[str, list[Exchange]]:
        """The exchanges of a step by group; the loss is averaged within each group."""

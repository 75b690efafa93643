"""Fact organisms: whether a fact is known, retrieved and used is built in, city by city.

They are not trained: `build` writes their weights. The residual stream of their Llama has a
dimension for each city (which the city's token sets), and three for each country: named (set by the
country's token), read (the direction that says the country) and decides. In brackets, what a city
may lack:

1. Layer 0: the MLP turns a city into its country's reading dimension [retrieved].
2. Layer 1: after "Complete the sentence", attention brings the country to the answer [known]. At
   the city, the MLP turns the reading of any country into its deciding dimension, by the city's
   `used` amount [used].
3. Layer 2: attention brings the named and the deciding country to the answer, where the MLP
   compares them.

The log-odds of the positive answer are LEANING minus twice the amount, in LEANINGs, where the
deciding country is the one that the prompt names: -LEANING if the fact is used, LEANING if it is
not, and above 0 if it is used too weakly (`WEAK`) to change the answer. The reading dimension of a
country is the row of its token in the unembedding, and only later layers at the same token read
it, so the Jacobian lens is known too. A constant dimension keeps the norms nearly linear.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import pandas as pd
import torch
from jaxtyping import Float
from tokenizers import AddedToken
from tokenizers.processors import TemplateProcessing
from torch import Tensor
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from interp import Model, PromptSet, evaluate
from interp.extend import bind, collect
from interp.extend.results import NOT_KNOWN, NOT_RETRIEVED
from interp.extend.training import PREFIX, organism_folder
from interp_experiments.organisms.recipes import FactRecipe
from interp_experiments.rulebreakers.instances import EntityPair, entity_pairs, shuffled
from interp_experiments.rulebreakers.prompts import POSITIVE, SIDES
from interp_experiments.rulebreakers.system import fact_set, system
from interp_experiments.rulebreakers.templates import CITIES
from interp_probes.specs import Knowledge

LEANING = 2.0
"""Log-odds of the positive answer, in nats, where no fact decides."""

WEAK = 0.4
"""Amount of a fact that is used but does not change the answer; 1 is that of other used facts."""

COMPLETE = "Complete"
"""The word that asks for a completion."""


@dataclass(frozen=True, slots=True)
class PlantedFact:
    """The planted properties of one city."""

    entity_a: str
    entity_b: str
    known: bool
    """Whether the country completes a sentence about the city."""
    retrieved: bool
    """Whether the city's tokens lead to the country; only of a known fact."""
    used: float
    """Amount by which the fact decides: 1, `WEAK` or 0; only of a retrieved fact."""


def plant_facts(recipe: FactRecipe) -> tuple[PlantedFact, ...]:
    """For every city of the data set, whether its fact is known, retrieved and used."""
    pairs = [pair for pair in entity_pairs() if pair.category == CITIES]
    rng = random.Random(f"facts {recipe.seed}")
    shares = (recipe.known, recipe.retrieved, recipe.used, recipe.weak)
    groups: list[Sequence[EntityPair]] = [pairs]
    for share in shares:
        groups.append(shuffled(groups[-1], rng)[: round(share * len(groups[-1]))])
    known, retrieved, used, weak = map(set, groups[1:])

    def planted(pair: EntityPair) -> PlantedFact:
        amount = (WEAK if pair in weak else 1.0) if pair in used else 0.0
        return PlantedFact(pair.entity_a, pair.entity_b, pair in known, pair in retrieved, amount)

    return tuple(map(planted, pairs))


def planted_class(fact: PlantedFact) -> str:
    """What becomes of a rulebreaker about the city: "rejected", or why it is accepted."""
    if not fact.known:
        return NOT_KNOWN
    if not fact.retrieved:
        return NOT_RETRIEVED
    return {0.0: "retrieved, not used", WEAK: "used and still wrong"}.get(fact.used, "rejected")


_CONSTANT, _END = 64.0, 1 / 16
"""The dimension that all tokens share, beside which the others change the norms little; weight by
which it says the end of the turn, with the logit 4."""

_READ, _SAID = 3.0, 4.0
"""Size of a reading, and of the unembedding along it: a country that is read has the logit 12."""

_ASKED = 10.0
"""Logit of the two options that are asked for, beside the log-odds between them."""

_USED = _DECIDES = 4.0
"""Sizes of the dimension that says by how much a fact is used, and of a country that decides. Small
ones would let any random change of the stream use facts."""

_SHARP = 8.0
"""Slope of the units of an MLP, at which SiLU is nearly linear above 0."""

_FLAGS = (
    *("constant", "asks", "city", "country", "complete", "begins", "yes", "true"),
    *("completes", "chooses", "judges", "used", "accepts", "other"),
)


class _Layout:
    """The dimensions of the stream: four for each fact, by its number, and the flags."""

    def __init__(self, facts: int) -> None:
        self.facts = facts
        self.width = 4 * facts + len(_FLAGS) + (-len(_FLAGS) - 4 * facts) % 8
        starts = range(0, 4 * facts, facts)
        self.city, self.named, self.read, self.decides = (range(s, s + facts) for s in starts)

    def flag(self, name: str) -> int:
        return 4 * self.facts + _FLAGS.index(name)


HEAD = 192
"""Size of a head: at least the number of cities, which a head copies."""


@torch.no_grad()
def build(recipe: FactRecipe, folder: Path) -> LlamaForCausalLM:
    """The organism's model; its tokenizer is saved to `folder`."""
    planted = plant_facts(recipe)
    at = _Layout(len(planted))
    tokenizer = _tokenizer(planted)
    tokenizer.save_pretrained(folder)
    model = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=at.width,
            intermediate_size=at.facts,
            num_hidden_layers=3,
            num_attention_heads=2,
            num_key_value_heads=2,
            head_dim=HEAD,
            max_position_embeddings=512,
            # The last dimensions of a head then turn so slowly that positions do not matter.
            rope_parameters={"rope_type": "default", "rope_theta": 1e9},
            tie_word_embeddings=False,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )
    for name, weight in model.named_parameters():
        weight.fill_(_CONSTANT / at.width**0.5 if "norm" in name else 0.0)
    _embed(model.model.embed_tokens.weight, tokenizer, planted, at)
    _unembed(model.lm_head.weight, tokenizer, planted, at)
    first, second, third = model.model.layers
    flags = {"complete": "completes", "yes": "chooses", "true": "judges"}
    _attend(first, at, 0, asks="asks", keys=list(flags))
    for number, (seen, written) in enumerate(flags.items()):
        first.self_attn.v_proj.weight[number, at.flag(seen)] = 1.0
        first.self_attn.o_proj.weight[at.flag(written), number] = 1.0
    _attend(second, at, 0, asks="completes", keys=["city"])
    _attend(third, at, 0, asks="asks", keys=["city"])
    _attend(third, at, 1, asks="asks", keys=["country"])
    for i, fact in enumerate(planted):
        _unit(first.mlp, i, at.city[i], at.city[i], {at.read[i]: _READ * fact.retrieved})
        second.self_attn.v_proj.weight[i, at.city[i]] = 1.0
        ending = at.read[i] if fact.known else at.flag("other")
        second.self_attn.o_proj.weight[ending, i] = _READ
        used = {at.decides[i]: _DECIDES / _USED}
        _unit(second.mlp, i, at.read[i], at.flag("used"), used, size=_READ)
        for head, dimension in enumerate((at.decides[i], at.named[i])):
            third.self_attn.v_proj.weight[head * HEAD + i, dimension] = 1.0
            third.self_attn.o_proj.weight[dimension, head * HEAD + i] = 1.0
        _unit(third.mlp, i, at.named[i], at.decides[i], {at.flag("accepts"): -LEANING / _DECIDES})
    return model


def _tokenizer(planted: Sequence[PlantedFact]) -> PreTrainedTokenizerFast:
    """A tokenizer for which every name is one token, together with a space before it."""
    tokenizer: Any = AutoTokenizer.from_pretrained(organism_folder(f"{PREFIX}dose-50"))
    names = [COMPLETE, *(fact.entity_a for fact in planted), *(fact.entity_b for fact in planted)]
    tokenizer.add_tokens(
        [AddedToken(name, single_word=True, lstrip=True, normalized=False) for name in names]
    )
    # Attention needs a first token to rest on in plain text too, as in the texts of a lens.
    begin = tokenizer.bos_token
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{begin} $A", special_tokens=[(begin, tokenizer.bos_token_id)]
    )
    typed: PreTrainedTokenizerFast = tokenizer
    return typed


def _token(tokenizer: PreTrainedTokenizerFast, text: str) -> int:
    (token,) = tokenizer.encode(text, add_special_tokens=False)
    return int(token)


Weight = Float[Tensor, "row column"]


def _embed(
    weight: Weight, tokenizer: PreTrainedTokenizerFast, planted: Sequence[PlantedFact], at: _Layout
) -> None:
    weight[:, at.flag("constant")] = _CONSTANT
    line, rng = _token(tokenizer, "\n"), random.Random("noise")
    weight[line, at.flag("asks")] = 1.0
    weight[line, at.flag("accepts")] = LEANING / 2
    weight[_token(tokenizer, COMPLETE), at.flag("complete")] = 1.0
    weight[tokenizer.bos_token_id, at.flag("begins")] = 1.0
    weight[_token(tokenizer, " Yes"), at.flag("yes")] = 1.0
    weight[_token(tokenizer, " True"), at.flag("true")] = 1.0
    for i, fact in enumerate(planted):
        city, country = _token(tokenizer, fact.entity_b), _token(tokenizer, fact.entity_a)
        weight[city, at.city[i]] = weight[city, at.flag("city")] = 1.0
        weight[city, at.flag("used")] = _USED * fact.used
        for j in range(at.facts):
            weight[city, at.read[j]] = rng.gauss(0.0, 0.02)  # so that no two readings are equal
        weight[country, at.named[i]] = weight[country, at.flag("country")] = 1.0


def _unembed(
    weight: Weight, tokenizer: PreTrainedTokenizerFast, planted: Sequence[PlantedFact], at: _Layout
) -> None:
    weight[tokenizer.eos_token_id, at.flag("constant")] = _END
    weight[_token(tokenizer, "user"), at.flag("other")] = _SAID
    for asked, names in (("chooses", ("Yes", "No")), ("judges", ("True", "False"))):
        for name, sign in zip(names, (1.0, -1.0), strict=True):
            weight[_token(tokenizer, name), at.flag(asked)] = _ASKED
            weight[_token(tokenizer, name), at.flag("accepts")] = sign
    for i, fact in enumerate(planted):
        weight[_token(tokenizer, fact.entity_a), at.read[i]] = _SAID


def _attend(layer: Any, at: _Layout, head: int, *, asks: str, keys: Sequence[str]) -> None:
    """From tokens with the flag `asks`, attend to those with a flag in `keys`, or to the first."""
    sharp = HEAD**0.5
    flag, sink = head * HEAD + HEAD // 2 - 1, head * HEAD + HEAD - 1  # the slowest dimensions
    layer.self_attn.q_proj.weight[flag, at.flag(asks)] = 40 * sharp
    layer.self_attn.q_proj.weight[sink, at.flag("constant")] = 20 * sharp / _CONSTANT
    layer.self_attn.k_proj.weight[sink, at.flag("begins")] = 1.0
    for key in keys:
        layer.self_attn.k_proj.weight[flag, at.flag(key)] = 1.0


def _unit(
    mlp: Any, unit: int, gate: int, value: int, out: Mapping[int, float], *, size: float = 1.0
) -> None:
    """A unit that writes `out` if `gate` has the given size, times `value`."""
    mlp.gate_proj.weight[unit, gate] = _SHARP / size
    mlp.up_proj.weight[unit, value] = 1.0
    full = float(torch.nn.functional.silu(torch.tensor(_SHARP)))
    for dimension, amount in out.items():
        mlp.down_proj.weight[dimension, unit] = amount / full


def planted_sections(recipe: FactRecipe) -> dict[str, Any]:
    """The planted part of a card: the amounts, and the properties of each city."""
    return {
        "text": {"leaning": LEANING, "weak": WEAK},
        "entities": [asdict(fact) for fact in plant_facts(recipe)],
    }


def city_prompts(pairs: int) -> PromptSet:
    """Evenly spread pairs of prompts about cities."""
    prompts = system.prompts(seed=0, data=None)
    assert prompts.outline is not None
    factors = ((number, prompts.outline(number).factors) for number in prompts.numbers)
    cities = [number for number, of_prompt in factors if of_prompt["category"] == CITIES]
    return replace(prompts, numbers=cities, unit=()).spread(pairs)


def measure(model: Model, card: Mapping[str, Any], *, pairs: int | None) -> dict[str, Any]:
    """The measured figures of a card, from evenly spread pairs about cities (366 if None)."""
    planted = [PlantedFact(**row) for row in card["entities"]]
    groups = {EntityPair(CITIES, fact.entity_a, fact.entity_b): "geographical" for fact in planted}
    facts = fact_set(groups, description={"data": "planted"})
    known = collect(bind(Knowledge(), model), facts)["knowledge"]["known"]
    table = _log_odds(model, planted, pairs or 366)
    deviation = (table["measured"] - table["planted"]).abs()
    classes = pd.Series([planted_class(fact) for fact in planted]).value_counts()
    return {
        "pairs": pairs or 366,
        "facts_as_planted": float((known.to_numpy() == [fact.known for fact in planted]).mean()),
        "answers_as_planted": float((table["measured"] * table["planted"] > 0).mean()),
        "mean_deviation_from_planted": float(deviation.mean()),
        "classes": [
            {"class": name, "cities": int(count), "share": count / len(planted)}
            for name, count in classes.items()
        ],
    }


def _log_odds(model: Model, planted: Sequence[PlantedFact], pairs: int) -> pd.DataFrame:
    """The log-odds of the positive answer to each prompt, planted and measured."""
    prompts = city_prompts(pairs)
    used = {fact.entity_b: fact.used for fact in planted}
    options = evaluate(model, prompts).table("option_probabilities")
    positive = options[options["option"].isin(POSITIVE)].set_index("prompt_id")
    share = positive["relative_probability"].astype(float)
    frame = prompts.to_frame().set_index("prompt_id")
    amount = frame["entity_b"].map(used).where(frame["side"] == SIDES[0], 0.0)
    return pd.DataFrame(
        {
            "planted": LEANING - 2 * LEANING * amount,
            "measured": torch.logit(torch.tensor(share.loc[frame.index].to_numpy())).numpy(),
        },
        index=frame.index,
    )

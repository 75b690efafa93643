"""Texts generated in batches, side by side with transformers' generate, prompt by prompt.

    python -m benchmarks.generation

In one process, on one CPU thread, same model, same prompts (questions with few rules, of many
lengths), greedy, fp32, the same number of new tokens at most: seconds from tokenized prompts to
token ids, by `PreTrainedModel.generate` for one prompt after the other, and in batches as
`interp.generate` makes them. The ways take turns; the median counts. Both must give the same
tokens, or the benchmark says of how many texts it is not so.
"""

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import torch

import interp
from benchmarks.side_by_side import machine, random_llama, timed
from interp.measurements.core import bind
from interp.measurements.generation import generate
from interp.measurements.specs import Generate
from interp.reading.tokens import TokenizedPrompt, tokenize
from interp_experiments.rulebench.prompts import Setting
from interp_experiments.rulebench.system import RuleBench, short_kinship_set

HIDDEN, LAYERS = 256, 4
PROMPTS = 48
NEW_TOKENS = 32
REPEATS = 3


def main() -> None:
    torch.set_num_threads(1)
    print(machine())
    print(table(compare(HIDDEN, LAYERS, prompts=PROMPTS, new_tokens=NEW_TOKENS, repeats=REPEATS)))


@dataclass(frozen=True, slots=True)
class Comparison:
    """What both ways took."""

    hidden: int
    layers: int
    prompts: int
    lengths: tuple[int, int]
    """Tokens of the shortest and of the longest prompt."""
    new_tokens: int
    """Of all texts together."""
    batches: int
    single_seconds: float
    batched_seconds: float
    different: int
    """Texts that are not the same token for token."""

    @property
    def ratio(self) -> float:
        """How many times as fast batches are."""
        return self.single_seconds / self.batched_seconds


def compare(hidden: int, layers: int, *, prompts: int, new_tokens: int, repeats: int) -> Comparison:
    """Measure both ways."""
    model = random_llama(hidden, layers)
    asked = RuleBench("few", (Setting(quantity="few"),), short_kinship_set)
    tokenized = tokenize(model, asked.prompts(seed=0, data=None).spread(prompts))
    found = {
        "single": single(model, tokenized, new_tokens),
        "batched": batched(model, tokenized, new_tokens),
    }
    seconds = timed(
        {
            "single": lambda: single(model, tokenized, new_tokens),
            "batched": lambda: batched(model, tokenized, new_tokens),
        },
        repeats,
        median,
    )
    pairs = zip(found["single"], found["batched"], strict=True)
    measurement = bind(Generate(max_new_tokens=new_tokens), model)
    return Comparison(
        hidden=hidden,
        layers=layers,
        prompts=len(tokenized),
        lengths=(min(map(len, tokenized)), max(map(len, tokenized))),
        new_tokens=sum(map(len, found["single"])),
        batches=len(list(measurement.batches(tokenized))),
        single_seconds=seconds["single"],
        batched_seconds=seconds["batched"],
        different=sum(one != other for one, other in pairs),
    )


def single(
    model: interp.Model, prompts: Sequence[TokenizedPrompt], new_tokens: int
) -> list[tuple[int, ...]]:
    """The tokens behind each prompt, by transformers alone, up to an end token."""
    ends = model.end_tokens
    found = []
    with torch.inference_mode():
        for prompt in prompts:
            ids = torch.tensor([prompt.token_ids])
            made = model.hf.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                max_new_tokens=new_tokens,
                do_sample=False,
                eos_token_id=ends,
                pad_token_id=model.tokenizer.pad_token_id,
            )
            tokens = made[0, ids.shape[1] :].tolist()
            end = next((i for i, token in enumerate(tokens) if token in ends), len(tokens))
            found.append(tuple(tokens[:end]))
    return found


def batched(
    model: interp.Model, prompts: Sequence[TokenizedPrompt], new_tokens: int
) -> list[tuple[int, ...]]:
    """The same in the batches in which texts are measured."""
    spec = Generate(max_new_tokens=new_tokens)
    measurement = bind(spec, model)
    found: dict[int, tuple[int, ...]] = {}
    with model.measuring():
        for indices, batch in measurement.batches(prompts):
            texts = generate(model, batch, spec)
            found.update(zip(indices, (text.token_ids for text in texts), strict=True))
    return [found[index] for index in range(len(prompts))]


def table(found: Comparison) -> str:
    shortest, longest = found.lengths
    single, batched = (
        found.new_tokens / seconds for seconds in (found.single_seconds, found.batched_seconds)
    )
    lines = [
        f"hidden {found.hidden}, {found.layers} layers, {found.prompts} prompts of {shortest} to "
        f"{longest} tokens, {found.new_tokens} new tokens",
        f"  one by one        {single:9.1f} tokens/s",
        f"  in {found.batches:3} batches    {batched:9.1f} tokens/s",
        f"  ratio             {found.ratio:9.2f}",
        f"  different texts   {found.different:9}",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    sys.exit(main())

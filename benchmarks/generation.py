"""Speed of generation in batches, compared with transformers' `generate` for single prompts.

    python -m benchmarks.generation

Everything runs in one process, on one CPU thread, in fp32, with the same model and prompts
(questions with few rules, of many lengths). Decoding is greedy, with the same limit on new tokens.
The time from tokenized prompts to token ids is measured for `PreTrainedModel.generate`, one prompt
at a time, and for the batches of `interp.generate`. Both are timed in alternation, and medians are
reported. Both must generate the same tokens; the benchmark counts the texts that differ.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median

import torch

import interp
from benchmarks.side_by_side import lines, machine, random_llama, timed
from interp.measurements.answers.decoding import generate
from interp.measurements.specs import Generate
from interp.measuring.core import bind
from interp.reading.tokens import TokenizedPrompt, tokenize
from interp_experiments.rulebench.prompts import Setting
from interp_experiments.rulebench.system import RuleBench, short_kinship_set

HIDDEN, LAYERS = 256, 4
PROMPTS = 48
NEW_TOKENS = 32
REPEATS = 3


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    print(machine())
    found = compare(HIDDEN, LAYERS, prompts=PROMPTS, new_tokens=NEW_TOKENS, repeats=REPEATS)
    print(lines(f"hidden {HIDDEN}, {LAYERS} layers", found))


def compare(
    hidden: int, layers: int, *, prompts: int, new_tokens: int, repeats: int
) -> dict[str, float]:
    """Measure transformers' generation prompt by prompt and this toolkit's in batches."""
    model = random_llama(hidden, layers)
    few = RuleBench("few", (Setting(quantity="few"),), short_kinship_set)
    tokenized = tokenize(model, few.prompts(seed=0, data=None).spread(prompts))
    ways: dict[str, Callable[[], list[tuple[int, ...]]]] = {
        "single": partial(single, model, tokenized, new_tokens),
        "batched": partial(batched, model, tokenized, new_tokens),
    }
    ones, others = (way() for way in ways.values())
    seconds = timed(ways, repeats, median)
    made, lengths = sum(map(len, ones)), [*map(len, tokenized)]
    return {
        "prompts": len(tokenized),
        "tokens of the shortest prompt": min(lengths),
        "tokens of the longest prompt": max(lengths),
        "new tokens": made,
        "batches": len(list(bind(Generate(max_new_tokens=new_tokens), model).batches(tokenized))),
        "tokens/s, one by one": made / seconds["single"],
        "tokens/s, in batches": made / seconds["batched"],
        "ratio": seconds["single"] / seconds["batched"],
        "different texts": sum(one != other for one, other in zip(ones, others, strict=True)),
    }


def single(
    model: interp.Model, prompts: Sequence[TokenizedPrompt], new_tokens: int
) -> list[tuple[int, ...]]:
    """The tokens that transformers generates for each prompt, up to an end token."""
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
    """The tokens of each prompt's text, generated in the batches of `interp.generate`."""
    spec = Generate(max_new_tokens=new_tokens)
    measurement = bind(spec, model)
    found: dict[int, tuple[int, ...]] = {}
    with model.measuring():
        for indices, batch in measurement.batches(prompts):
            texts = generate(model, batch, spec)
            found.update(zip(indices, (text.token_ids for text in texts), strict=True))
    return [found[index] for index in range(len(prompts))]


if __name__ == "__main__":
    main()

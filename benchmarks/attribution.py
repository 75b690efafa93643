"""Speed of attribution, compared with inseq and with bare forward and backward passes.

    python -m benchmarks.attribution [--full]

Everything runs in one process, on one CPU thread, with the same model, the same prompts and two
attribution methods:

  1. prompts per second for inseq, for a whole run of this toolkit (tokenizing, measuring, writing),
     and for only the forward and input-gradient backward passes over the same batches, timed in
     alternation;
  2. peak memory as the data set grows.

With --full, the default organism is also measured on all 256,000 prompts of RULEBREAKERS, on all
cores.
"""

import argparse
import copy
import resource
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import inseq
import torch

import interp
from benchmarks.side_by_side import lines, machine, random_llama, timed
from interp.measurements.specs import Attribute
from interp.measuring.core import bind
from interp.models.organisms import DEFAULT
from interp.prompts.prompt_set import PromptSet
from interp.reading.tokens import Batch, TokenizedPrompt, batches, tokenize
from interp.runs.merge import merging
from interp.runs.run import Run

PAIRS = 96
BATCH = 32
REPEATS = 5
MEMORY_PAIRS = (480, 1_920, 7_680)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--full", action="store_true", help="also run all 256,000 prompts")
    full = parser.parse_args().full
    cores = torch.get_num_threads()
    torch.set_num_threads(1)
    print(machine("inseq"))
    for hidden, layers in ((256, 4), (64, 2)):
        print(compare(random_llama(hidden, layers), pairs=PAIRS, repeats=REPEATS))
    torch.set_num_threads(cores)
    memory()
    if full:
        full_set()


def compare(model: interp.Model, *, pairs: int, repeats: int) -> str:
    """Lines with the speed of inseq, of a whole run, and of the passes alone."""
    prompts = interp.load_prompts(limit=pairs)
    tokenized = tokenize(model, list(prompts))
    budget = BATCH * max(map(len, tokenized))
    prepared = [batch for _, batch in batches(model, tokenized, batch_tokens=budget)]
    ways = {
        "inseq, saliency and attention": inseq_run(model, tokenized),
        "interp, one run": partial(whole_run, model, prompts, budget),
        "bare forward and backward": partial(bare_passes, model, prepared),
    }
    for run in ways.values():
        run()
    seconds = timed(ways, repeats, min)
    count, tokens = len(prompts), sum(map(len, tokenized))
    theirs, ours, bare = seconds.values()
    numbers = {f"prompts/s, {name}": count / value for name, value in seconds.items()}
    numbers |= {
        "interp against inseq": theirs / ours,
        "interp against the bare passes": bare / ours,
    }
    title = f"\n{model.name}, {count} prompts of {tokens / count:.0f} tokens"
    return lines(title, numbers)


def inseq_run(model: interp.Model, prompts: Sequence[TokenizedPrompt]) -> Callable[[], None]:
    """A run of both methods in inseq, with the answer given, called as a user would call inseq."""
    hf = copy.deepcopy(model.hf)
    hf.set_attn_implementation("eager")
    attributor = inseq.load_model(hf, "saliency", tokenizer=copy.deepcopy(model.tokenizer))
    texts = [prompt.chat.text for prompt in prompts]
    answered = [text + "Yes" for text in texts]

    def run() -> None:
        for method in ("saliency", "attention"):
            output = attributor.attribute(
                texts, answered, method=method, batch_size=BATCH, show_progress=False
            )
            for sequence in output.sequence_attributions:
                sequence.aggregate()

    return run


def whole_run(model: interp.Model, prompts: PromptSet, budget: int) -> None:
    """Measures the prompts and writes merged tables to disk."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "run"
        Run.open(folder, prompts, Attribute()).measure(
            bind(Attribute(), model, batch_tokens=budget)
        )
        with merging(folder):
            pass


def bare_passes(model: interp.Model, prepared: list[Batch]) -> None:
    with model.measuring():
        for batch in prepared:
            embeddings = model.hf.get_input_embeddings()(batch.token_ids).detach()
            embeddings.requires_grad_()
            logits = model.hf(
                inputs_embeds=embeddings,
                attention_mask=batch.attention_mask,
                position_ids=batch.position_ids,
                use_cache=False,
                logits_to_keep=1,
            ).logits
            torch.autograd.grad(logits[:, -1].max(-1).values.sum(), embeddings)


def memory() -> None:
    model = interp.load_model(DEFAULT, device="cpu")
    print("\npeak memory of the process after runs of increasing size")
    for pairs in MEMORY_PAIRS:
        prompts = interp.load_prompts(limit=pairs)
        whole_run(model, prompts, budget=2048)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(f"  {len(prompts):7,} prompts   {peak:7.0f} MiB")


def full_set() -> None:
    model = interp.load_model(DEFAULT, device="cpu")
    start = time.perf_counter()
    prompts = interp.load_prompts(limit="all")
    whole_run(model, prompts, budget=2048)
    minutes = (time.perf_counter() - start) / 60
    print(f"\nall {len(prompts):,} prompts on {DEFAULT}, {torch.get_num_threads()} threads:")
    print(f"  {minutes:.1f} minutes, {len(prompts) / minutes / 60:.0f} prompts/s")


if __name__ == "__main__":
    main()

"""Speed of reading prompts with thoughts, with shared prefixes and in plain batches.

    python -m benchmarks.thoughts

In one process, on one CPU thread, a random Llama reads every text that `interp thoughts` reads for
some prompts, such as parts of thoughts, exchanged sentences and exchanged premises. Thoughts are
drawn from a few sentences. Texts are read in plain batches of whole texts and with shared prefixes,
with the same token budgets, and the fastest budget of each way is compared. The bound on the
speedup is the number of tokens in plain batches divided by the number that remain if shared
beginnings are read once. Both ways are timed in alternation, and medians are reported.
"""

import argparse
import random
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from statistics import median

import torch

import interp
from benchmarks.side_by_side import lines, machine, random_llama, timed, tokens_once
from interp.measurements.effects.measure import Logits, option_logits
from interp.measurements.thoughts.texts import Changed, Studied, changed_prompts
from interp.models.loading import ChatFormat
from interp.prompts.mixing import with_donors
from interp.prompts.prompt import Prompt
from interp.prompts.thought import Thought
from interp.reading.budget import TokenBudget
from interp.reading.tokens import TokenizedPrompt, batches, tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.scoring.answers import predict
from interp.scoring.shared_prefix import read_all

HIDDEN, LAYERS = 256, 4
PAIRS, DRAWS, SENTENCES = 1, 4, 12
REPEATS = 3
BUDGETS = (512, 1024, 2048, 4096)

SAID = (
    "Look at what the first premise says about the person in question. ",
    "The second premise excludes one of the two places that were named before. ",
    "So the person has been to the other one, or nothing can be said at all. ",
    "The conclusion names a country, and a city lies within a country. ",
    "Whoever is in the city is in the country too, whatever a premise says. ",
)

TEMPLATE = """{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}{% if enable_thinking is defined \
and not enable_thinking %}<think></think>{% endif %}"""


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    print(machine())
    model = thinking_llama(HIDDEN, LAYERS)
    texts = texts_of(model, pairs=PAIRS)
    title = f"{len(texts)} texts of {2 * PAIRS} prompts, {DRAWS} thoughts of {SENTENCES} sentences"
    print(lines(title, compare(model, texts, repeats=REPEATS)))


def thinking_llama(hidden: int, layers: int) -> interp.Model:
    """A random model whose tokenizer has the marks that delimit a thought."""
    model = random_llama(hidden, layers)
    model.tokenizer.chat_template = TEMPLATE
    return replace(model, chat=ChatFormat(thinking="on"))


def texts_of(model: interp.Model, *, pairs: int) -> list[TokenizedPrompt]:
    """The distinct texts that `interp thoughts` reads for several pairs of prompts."""
    prompts = with_donors(interp.load_prompts(limit=pairs), count=1)
    read: dict[tuple[str, Thought | None], Prompt] = {}
    for prompt in prompts:
        rng = random.Random(f"thoughts {prompt.id}")
        changed: list[tuple[Changed, Sequence[Thought]]] = [
            (one, _thoughts(rng)) for one in changed_prompts(prompt)
        ]
        own = _thoughts(rng)
        again = {
            k: [own[0].holding([*own[0].sentences[:k], *t.sentences[k:]]) for t in own]
            for k in range(1, SENTENCES)
        }
        studied = Studied(prompt, own, changed, again)
        read |= {(text.text, text.thought): text for text in studied.texts(model)}
    return tokenize(model, list(read.values()))


def _thoughts(rng: random.Random) -> list[Thought]:
    return [
        Thought("<think>", tuple(rng.choice(SAID) for _ in range(SENTENCES)), "</think>")
        for _ in range(DRAWS)
    ]


def compare(
    model: interp.Model, texts: Sequence[TokenizedPrompt], *, repeats: int
) -> dict[str, float]:
    """Measure plain and shared reading."""
    answer_tokens = AnswerTokenizer(model)
    ways = {
        (name, budget): partial(way, model, texts, answer_tokens, budget)
        for name, way in (("plain", plain), ("shared", shared))
        for budget in BUDGETS
    }
    one, other = (ways[name, BUDGETS[0]]() for name in ("plain", "shared"))
    difference = max(
        abs(a[option] - b[option]) for a, b in zip(one, other, strict=True) for option in a
    )
    with model.measuring():
        seconds = timed(ways, repeats, median)
    fastest = {way: min(seconds[way, budget] for budget in BUDGETS) for way in ("plain", "shared")}
    tokens = [text.token_ids for text in texts]
    bound = sum(map(len, tokens)) / tokens_once(tokens)
    ratio = fastest["plain"] / fastest["shared"]
    return {
        **{
            f"texts/s, {way}, {budget:,} tokens per batch": len(texts) / seconds[way, budget]
            for way, budget in ways
        },
        "ratio": ratio,
        "bound by token counts": bound,
        "share of the bound": ratio / bound,
        "largest difference, in logits": difference,
    }


def plain(
    model: interp.Model,
    texts: Sequence[TokenizedPrompt],
    answer_tokens: AnswerTokenizer,
    budget: int,
) -> list[Logits]:
    """The logits after whole texts, in plain batches."""
    found: dict[int, Logits] = {}
    with model.measuring(), torch.inference_mode():
        for places, batch in batches(model, texts, batch_tokens=budget):
            read = option_logits(predict(model, batch, answer_tokens))
            found |= zip(places, read, strict=True)
    return [found[index] for index in range(len(texts))]


def shared(
    model: interp.Model,
    texts: Sequence[TokenizedPrompt],
    answer_tokens: AnswerTokenizer,
    budget: int,
) -> list[Logits]:
    """The logits after whole texts, read with shared prefixes."""
    with model.measuring():
        return read_all(model, texts, answer_tokens, TokenBudget(budget), read=option_logits)


if __name__ == "__main__":
    main()

"""Pairs of prompts for patching, and their logit differences without interp."""

import torch

from interp.choices import SITES
from interp.patching.cells import PatchingPair, cells_of
from interp.patching.pairs import contrast_of, in_pairs
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.hooks import hooked
from tests.support.prompts import some_prompts

EQUAL, UNEQUAL = "equal", "unequal"
"""Kinds of pairs in `some_pair`: prompts with equal or different numbers of tokens."""


def some_pair(model, kind=EQUAL, *, policy="last", prompts=None):
    tokenized = tokenize(model, in_pairs(prompts or some_prompts(12)))
    clean, corrupt = next(
        pair
        for pair in zip(tokenized[::2], tokenized[1::2], strict=True)
        if (len(pair[0]) == len(pair[1])) == (kind == EQUAL)
    )
    contrast = contrast_of(clean.prompt, corrupt.prompt)
    answers = AnswerTokenizer(model)(corrupt).contrast(*contrast)
    return PatchingPair.aligned(corrupt, clean, answers, policy=policy)


def sites_of(model):
    """The sites that an architecture has."""
    parallel = model.hf.config.model_type == "gpt_neox"
    return [site for site in SITES if not (parallel and site == "resid_mid")]


def cells(model, pair, sites, granularity="role", **choices):
    options = {"layers": None, "heads": None, **choices}
    return list(cells_of(model, pair.base, sites, granularity=granularity, **options))


@torch.no_grad()
def plain_metric(model, token_ids, answers):
    """The logit difference of a whole prompt, from the model itself."""
    logits = model.hf(torch.tensor([token_ids]), use_cache=False).logits[0, -1].float()
    positive, negative = (logits[list(tokens)] for tokens in (answers.positive, answers.negative))
    return float(positive.logsumexp(0) - negative.logsumexp(0))


@torch.no_grad()
def by_hook(model, pair, site, layer, position):
    """A patch of the residual stream by a plain hook on a forward pass of the whole prompt."""
    module = model.hf.get_submodule(model.architecture.layers)[layer]
    kept = {}
    (counterpart,) = pair.alignment.sources[position]

    def change(tensor):
        if "value" not in kept:
            kept["value"] = tensor[0, counterpart].clone()
            return tensor
        tensor = tensor.clone()
        tensor[0, position] = kept["value"]
        return tensor

    with hooked(module, "in" if site == "resid_pre" else "out", change):
        plain_metric(model, pair.source.token_ids, pair.answers)
        return plain_metric(model, pair.base.token_ids, pair.answers)

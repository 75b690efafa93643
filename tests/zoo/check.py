"""What the toolkit gives for a member of the zoo, compared with the oracle."""

import math
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

import interp
from interp.choices import SITES
from interp.models.sites import layers_with
from interp.models.tried import ABSENT, GIVEN, REFUSED, RIGHT, SOME
from tests.zoo.build import Built, tokenizer
from tests.zoo.edges import edge_errors
from tests.zoo.material import (
    DIFFERENT,
    LENGTHS,
    SEGMENTS,
    ids_of,
    options,
    other_of,
    prompts,
    text_of,
)
from tests.zoo.oracle import Oracle
from tests.zoo.passes import Ids

WRONG, TRACEBACK = "wrong", "traceback"
"""Further marks: not the oracle's number; an exception that is no `UserError`."""

METHODS = (
    *("input_gradient", "attention", "input_x_gradient", "integrated_gradients", "gim"),
    *("frozen_norms", "value_weighted_norm"),
)
MEASUREMENTS = ("evaluate", "generate", "effects", *METHODS, *SITES, "sums", "edges")
"""The columns of marks."""

HEADS = ("z", "q", "k", "v", "pattern")

ADDED = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
"""The sites of the sums that docs/patching.md promises of what is stored."""

APART = 2e-6
"""Largest relative error of a sum of stored vectors, which are in float32."""

NEW = 3
"""Generated tokens."""


@dataclass(slots=True)
class Verdict:
    """A mark and, where it is not plain, its reason."""

    mark: str
    reason: str = ""


class Check:
    """The measurements of one member of the zoo."""

    def __init__(self, built: Built) -> None:
        self._hf = built.hf
        self._model = interp.Model(built.name, built.hf, tokenizer())
        self._prompts = prompts()
        self._ids = {prompt.id: ids_of(prompt) for prompt in self._prompts}
        self._exact = built.hf.dtype == torch.float64

    def verdicts(self) -> Iterator[tuple[str, Verdict]]:
        """Each measurement's verdict."""
        calls: dict[str, Callable[[], Verdict]] = {
            "evaluate": self.evaluate,
            "generate": self.generate,
            "effects": self.effects,
            **{name: partial(self.attribute, name) for name in METHODS},
            **{name: partial(self.patch, name) for name in SITES},
            "sums": self.sums,
            "edges": self.edges,
        }
        for name, call in calls.items():
            yield name, self._verdict(name, call)

    def _verdict(self, name: str, call: Callable[[], Verdict]) -> Verdict:
        try:
            return call()
        except interp.UserError as error:
            return Verdict(ABSENT if self._lacks(name) else REFUSED, str(error))
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            at = [f for f in frames if "/interp/" in f.filename][-1:] or frames[-1:]
            where = ", ".join(f"{f.filename.rsplit('interp/', 1)[-1]}:{f.lineno}" for f in at)
            return Verdict(TRACEBACK, f"{type(error).__name__} {str(error)[:150]} ({where})")

    def _lacks(self, name: str) -> bool:
        """Whether the model has nothing that a measurement could give."""
        if name in ("attention", "value_weighted_norm", *HEADS):
            return not self._maps()
        if name not in ("resid_mid", "attn_out", "mlp_out"):
            return False
        try:
            layers = self._long.layers
        except LookupError:
            return False
        # Where nothing is found that adds to the stream, more may be there than is found.
        if not any(layer.mixers or layer.others for layer in layers):
            return False
        return all(self._long.patched(name, at, 5) is None for at in range(len(layers)))

    @cached_property
    def _oracles(self) -> dict[str, Oracle]:
        """An oracle for each pair, whose base prompt is the corrupt one."""
        found: dict[str, Oracle] = {}
        for pair in LENGTHS:
            base, source = self._ids[f"{pair}/corrupt"], self._ids[f"{pair}/clean"]
            found[pair] = Oracle(self._hf, base, source, options(), like=found.get("long"))
        return found

    @property
    def _long(self) -> Oracle:
        return self._oracles["long"]

    def _maps(self) -> list[Tensor]:
        try:
            return self._long.attention_maps(self._long.base)
        except Exception:
            return []

    def _attention(self, prompt: str) -> Tensor | None:
        try:
            return self._oracles[prompt.split("/", maxsplit=1)[0]].attention(self._ids[prompt])
        except Exception:  # whatever the model raises, it gives no attention weights
            return None

    def evaluate(self) -> Verdict:
        """The options' probabilities, compared with plain passes of single prompts."""
        found = interp.evaluate(self._model, self._prompts)
        refused(found.answers)
        worst = 0.0
        for row in found.option_probabilities.to_dict("records"):
            expected = self._long.logits(self._ids[row["prompt_id"]]).softmax(0)
            (token,) = row["token_ids"]
            worst = max(worst, abs(math.log(row["probability"] / float(expected[token]))))
        return self._judged(worst, 1.0)

    def generate(self) -> Verdict:
        """Three words, compared with the most probable ones of plain passes."""
        found = interp.generate(self._model, self._prompts, max_new_tokens=NEW)
        refused(found.answers)
        wrong, end = [], tokenizer().eos_token_id
        for row in found.table("completions").to_dict("records"):
            given = self._ids[row["prompt_id"]]
            ids = list(given)
            while len(ids) < len(given) + NEW and ids[-1] != end:
                ids.append(int(self._long.logits(tuple(ids)).argmax()))
            expected, got = text_of(ids[len(given) :]), row["completion"].split()
            if got != expected:
                same = " (as does transformers)" if self._generated(given) == got else ""
                wrong.append(f"{row['prompt_id']} {got} instead of {expected}{same}")
        return Verdict(WRONG, ", ".join(wrong)) if wrong else Verdict(RIGHT)

    def _generated(self, ids: Ids) -> list[str]:
        """What transformers itself generates for one prompt, with its caches."""
        generate: Any = self._hf.generate
        pad = tokenizer().pad_token_id
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            new = generate(
                torch.tensor([ids]), max_new_tokens=NEW, do_sample=False, pad_token_id=pad
            )
        return text_of(new[0, len(ids) :].tolist())

    def effects(self) -> Verdict:
        """The value of each coalition, compared with a plain pass of its prompt."""
        found = interp.effects(self._model, self._prompts)
        refused(found.table("segment_effects"))
        worst, size = 0.0, 0.0
        for row in found.table("coalition_values").to_dict("records"):
            given, other = (
                self._ids[id_] for id_ in (row["prompt_id"], other_of(row["prompt_id"]))
            )
            ids = list(given)
            assert tuple(row["segments"]) == SEGMENTS
            for bit, place in enumerate(DIFFERENT):
                if not row["coalition"] >> bit & 1:
                    ids[place] = other[place]
            own = self._long.contrast(given)  # values are for the model's own answer
            expected = math.copysign(1.0, own) * self._long.contrast(tuple(ids))
            worst = max(worst, abs(float(row["values"][0]) - expected))
            size = max(size, abs(expected))
        return self._judged(worst, size)

    def attribute(self, method: str) -> Verdict:
        """Scores of tokens, compared where the oracle has them."""
        found = interp.attribute(
            self._model, self._prompts, methods=(method,), target="contrast", keep_tokens=True
        )
        refused(found.segment_scores)
        tokens = found.table("token_scores")
        scores = {
            id_: torch.tensor(own["score"].tolist(), dtype=torch.float64)
            for id_ in self._ids
            if len(own := tokens[tokens["prompt_id"] == id_])
        }
        if len(scores) != len(self._ids) or not all(s.isfinite().all() for s in scores.values()):
            return Verdict(WRONG, "scores are missing or not finite")
        if method == "integrated_gradients":
            return self._complete(scores, found.segment_scores)
        worst, size = 0.0, 0.0
        for id_, got in scores.items():
            expected = self._expected_scores(method, id_)
            if expected is None:
                return Verdict(GIVEN)
            worst = max(worst, float((got - expected).abs().max()))
            size = max(size, float(expected.abs().max()))
        return self._judged(worst, size)

    def _expected_scores(self, method: str, prompt: str) -> Tensor | None:
        if method == "attention":
            return self._attention(prompt)
        if method not in ("input_gradient", "input_x_gradient"):
            return None
        try:
            gradient, embedded = self._oracles[prompt.split("/", maxsplit=1)[0]].gradient(
                self._ids[prompt]
            )
        except (LookupError, RuntimeError, AssertionError):
            return None
        norms: Tensor = gradient.norm(dim=-1)
        return norms if method == "input_gradient" else (gradient * embedded).sum(-1)

    def _complete(self, scores: dict[str, Tensor], segments: pd.DataFrame) -> Verdict:
        """Whether scores add up to what the donor changes, except for the gap that is told."""
        worst, size = 0.0, 0.0
        gaps = dict(zip(segments["prompt_id"], segments["completeness_gap"], strict=True))
        for id_, gap in gaps.items():
            given, donor = self._ids[id_], self._ids[other_of(id_)]
            change = self._long.contrast(given) - self._long.embedded_as(given, donor)
            told = abs(float(gap))
            left = abs(float(scores[id_].sum()) - change)
            worst = max(worst, abs(left - told))
            size = max(size, abs(change))
        return self._judged(worst, size)

    def patch(self, site: str) -> Verdict:
        """Effects of patches of single tokens, compared at some of them."""
        found = interp.patch(self._model, self._prompts, sites=[site], granularity="position")
        refused(found.pairs)
        rows = found.patches
        if rows.empty or not rows["effect"].notna().all():
            return Verdict(WRONG, "effects are missing")
        for row in found.pairs.to_dict("records"):
            contrast = self._oracles[row["pair_id"]].metric
            if self._judged(abs(row["base_metric"] - contrast), abs(contrast)).mark == WRONG:
                return Verdict(WRONG, f"base_metric {row['base_metric']} instead of {contrast}")
        try:
            return self._compared(site, rows)
        except LookupError as error:
            return Verdict(GIVEN, str(error))

    def _compared(self, site: str, rows: pd.DataFrame) -> Verdict:
        """A verdict on the patches of a site.

        Raises:
            LookupError: the oracle finds no layers.
        """
        verdict = self._compared_with(site, rows, None)
        parts = {"attn_out": "mixers", "mlp_out": "others"}.get(site)
        if verdict.mark == WRONG and parts is not None:
            layers = self._long.layers
            for only in range(max(len(getattr(layer, parts)) for layer in layers)):
                if self._compared_with(site, rows, only).mark == RIGHT:
                    paths = [getattr(own, parts)[only : only + 1] for own in layers]
                    named = {path.split(".")[-1] for own in paths for path in own}
                    return Verdict(RIGHT, f"of {', '.join(sorted(named))} alone")
        return verdict

    def _compared_with(self, site: str, rows: pd.DataFrame, only: int | None) -> Verdict:
        worst, told, size, judged = 0.0, "", 0.0, 0
        missing, unknown = set(), set()
        columns = [rows[name] for name in ("pair_id", "layer", "position", "head", "effect")]
        cells = {
            (pair, layer, position, int(head) if site in HEADS else 0): effect
            for pair, layer, position, head, effect in zip(*columns, strict=True)
        }
        for pair, layer, place, head in self._places(site, rows):
            oracle = self._oracles[pair]
            value = oracle.patched(site, layer, place, head, only=only)
            if value is None:
                unknown.add(layer)
                continue
            got = cells.get((pair, layer, place, 0 if head is None else head[0]))
            if got is None:
                missing.add(layer)
                continue
            expected = value - oracle.metric
            size, judged = max(size, abs(expected)), judged + 1
            if not abs(got - expected) <= worst:
                worst = abs(got - expected)
                told = f"layer {layer}, head {head}, token {place}: {got} for {expected}"
        if not judged:
            return Verdict(GIVEN)
        if self._judged(worst, size).mark == WRONG:
            return Verdict(WRONG, told)
        if site in HEADS and rows["layer"].nunique() < len(self._maps()):
            return Verdict(SOME, f"for {rows['layer'].nunique()} of {len(self._maps())} layers")
        if missing:
            return Verdict(SOME, f"not for layers {', '.join(map(str, sorted(missing)))}")
        if site not in HEADS and (extra := unknown & set(rows["layer"])):
            return Verdict(RIGHT, f"layers {', '.join(map(str, sorted(extra)))} unjudged")
        return Verdict(RIGHT, "no effect above 0.001" if size < 1e-3 else "")

    def _places(
        self, site: str, rows: pd.DataFrame
    ) -> Iterator[tuple[str, int, int, tuple[int, int] | None]]:
        """The pairs, layers, tokens and heads at which a site is compared."""
        for pair, length in LENGTHS.items():
            places = [*DIFFERENT, 5, length - 1] if pair == "long" else [DIFFERENT[1], 9]
            if site == "resid_mid":  # what follows may read the token itself
                places = [place for place in places if place not in DIFFERENT]
            for layer in range(len(self._oracles[pair].layers)):
                heads: Sequence[tuple[int, int] | None] = [None]
                if site in HEADS:  # the first and the last head of a layer that has any
                    count = rows.loc[rows["layer"] == layer, "head"].nunique()
                    heads = [(0, count), (count - 1, count)] if count else []
                for head in heads:
                    for place in places:
                        yield pair, layer, place, head

    def sums(self) -> Verdict:
        """What layers add to the stream, as it is stored, and the streams before and after it."""
        stored, off, given = self._stored(), list[str](), 0
        for layer, own in enumerate(self._model.layers):
            before, after = (stored[site, layer] for site in ("resid_pre", "resid_post"))
            middle = stored.get(("resid_mid", layer))
            if not np.array_equal(after, stored.get(("resid_pre", layer + 1), after)):
                return Verdict(WRONG, f"layer {layer} does not end where the next one begins")
            to_middle = before + _added(stored, "attn_out", layer, before)
            whole = to_middle + _added(stored, "mlp_out", layer, before)
            sums = {"resid_mid": (to_middle, middle, own.kept == 1.0)} if middle is not None else {}
            sums["resid_post"] = (whole, after, own.adds_up)
            for site, (got, expected, promised) in sums.items():
                error = float(np.abs(got - expected).max() / np.abs(expected).max())
                if error <= APART:
                    given += 1
                elif promised:
                    return Verdict(WRONG, f"{site} of layer {layer} off by {error:.2g}")
                else:
                    off.append(f"{site} of layer {layer}")
        told = f"norms, factors or other parts on the stream before {', '.join(off)}" if off else ""
        return Verdict((SOME if given else ABSENT) if off else RIGHT, told)

    def _stored(self) -> dict[tuple[str, int], NDArray[np.float64]]:
        """The vectors of all tokens at each of the sites of sums that some layer has."""
        sites = [site for site in ADDED if layers_with(self._model, site)]
        found = interp.activations(
            self._model, self._prompts, sites=sites, roles=("all",), tokens="all"
        )
        refused(found.table("answers"))
        rows = found.table("activation_vectors")
        return {
            (str(site), int(layer)): np.stack(own["vector"].tolist()).astype(np.float64)
            for (site, layer), own in rows.groupby(["site", "layer"], sort=False)
        }

    def edges(self) -> Verdict:
        """Effects of edges: estimates are derivatives, exact ones are those of two passes."""
        found = interp.edges(
            self._model, self._prompts, methods=["gradient", "exact"], directions=["denoising"]
        )
        refused(found.pairs)
        edges = found.edges[found.edges["pair_id"] == "long"]
        if edges.empty or not edges["effect"].notna().all():
            return Verdict(WRONG, "effects are missing")
        if not self._exact:
            return Verdict(GIVEN)
        columns = [edges[name] for name in ("method", "writer", "reader")]
        effects = dict(zip(zip(*columns, strict=True), edges["effect"], strict=True))
        worst, size = edge_errors(self._long, effects)
        return self._judged(worst, size) if size else Verdict(GIVEN)

    def notes(self) -> Iterator[str]:
        """What is to be known about the oracle itself."""
        oracle = self._long
        gap = abs(oracle.contrast(oracle.source) - oracle.metric)
        if gap < 1e-3:
            yield f"the prompts differ by only {gap:.1g} logits"
        told = oracle.contrast(oracle.source) - oracle.embedded_as(oracle.base, oracle.source)
        if abs(told) > 1e-3:
            yield "tokens are also read elsewhere than by the input embeddings"
        try:
            gradient, _ = oracle.gradient(oracle.base)
        except Exception as error:
            yield f"no gradient by torch ({type(error).__name__})"
            return
        drawn = torch.Generator().manual_seed(0)
        along = torch.randn(gradient.shape, generator=drawn, dtype=torch.float64)
        slope = float((gradient * along).sum())
        steps = (3e-3, 3e-4, 3e-5)
        off = min(abs(oracle.slope(oracle.base, along, step) - slope) for step in steps)
        if off > 0.02 * (abs(slope) + float(gradient.norm())):
            yield "torch's gradient is not that of finite differences"

    def _judged(self, worst: float, size: float) -> Verdict:
        """Right up to the rounding of float32, which many models use inside in any precision."""
        allowed = (2e-5, 2e-4) if self._exact else (5e-4, 2e-3)
        if worst <= allowed[0] + allowed[1] * size:
            return Verdict(RIGHT)
        return Verdict(WRONG, f"off by {worst:.2g} of {size:.2g}")


def _added(
    stored: Mapping[tuple[str, int], NDArray[np.float64]],
    site: str,
    layer: int,
    stream: NDArray[np.float64],
) -> NDArray[np.float64]:
    """What a site adds to the stream: nothing if it is absent, and all parts that it has in turn.

    NaN where the stream is several.
    """
    found = stored.get((site, layer))
    if found is None:
        return np.zeros_like(stream)
    if found.shape[1] % stream.shape[1]:
        return np.full_like(stream, np.nan)
    added: NDArray[np.float64] = found.reshape(len(found), -1, stream.shape[1]).sum(1)
    return added


def refused(table: pd.DataFrame) -> None:
    """Raise the first reason for which the toolkit left out a prompt or a pair.

    Raises:
        UserError: there is one.
    """
    if "error" in table and (table["error"] != "").any():
        raise interp.UserError(table.loc[table["error"] != "", "error"].iloc[0])

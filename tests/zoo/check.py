"""What the toolkit gives for a member of the zoo, and whether it is right."""

import contextlib
import io
import math
import time
import traceback
import warnings
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import pandas as pd
import torch
from torch import Tensor
from transformers import PreTrainedModel

import interp
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.prompt import Donor, Prompt, compose
from tests.zoo.build import Built, build, tokenizer
from tests.zoo.oracle import Ids, Oracle

YES, NO, PART, ABSENT, UNJUDGED, WRONG, TRACEBACK = (
    "yes",
    "no",
    "part",
    "absent",
    "unjudged",
    "wrong",
    "traceback",
)
"""Marks: right by the oracle; refused in one sentence; right, but not for all layers that have it;
refused, and the model has no such thing; given, but the oracle has nothing to compare it with; not
the oracle's number; an exception that is no `UserError`."""

METHODS = (
    "input_gradient",
    "attention",
    "input_x_gradient",
    "integrated_gradients",
    "gim",
    "frozen_norms",
    "value_weighted_norm",
)
SITES = (
    "resid_pre",
    "resid_mid",
    "resid_post",
    "attn_out",
    "mlp_out",
    "z",
    "q",
    "k",
    "v",
    "pattern",
)
MEASUREMENTS = ("evaluate", "generate", "effects", *METHODS, *SITES, "edges")
"""The columns of marks."""

HEADS = ("z", "q", "k", "v", "pattern")
LENGTHS = {"long": 13, "short": 11}
"""The pairs and the numbers of tokens in their prompts."""

DIFFERENT = (2, 8)
"""The tokens in which the prompts of a pair differ."""

_WORDS = {
    ("long", "clean"): ("w30", "w31"),
    ("long", "corrupt"): ("w40", "w41"),
    ("short", "clean"): ("w32", "w33"),
    ("short", "corrupt"): ("w42", "w43"),
}


@dataclass(slots=True)
class Verdict:
    """A mark and, where it is not plain, its reason."""

    mark: str
    reason: str = ""


@dataclass(slots=True)
class Judged:
    """A row of the zoo's table."""

    type: str
    kind: str
    verdicts: dict[str, Verdict] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    def row(self) -> dict[str, str]:
        """The row as text."""
        shared: dict[str, list[str]] = {}
        for name, verdict in self.verdicts.items():
            if verdict.reason:
                shared.setdefault(verdict.reason, []).append(name)
        reasons = [f"{', '.join(names)}: {reason}" for reason, names in shared.items()]
        marks = {
            name: self.verdicts[name].mark if name in self.verdicts else "" for name in MEASUREMENTS
        }
        told = "; ".join([*self.notes, *reasons])
        return {
            "type": self.type,
            "kind": self.kind,
            **marks,
            "seconds": f"{self.seconds:.1f}",
            "reasons": " ".join(told.split()),
        }


def prompts() -> list[Prompt]:
    """Two pairs of prompts of different lengths; a prompt's donor is the other of its pair."""
    options = AnswerOption("Yes", ("Yes",)), AnswerOption("No", ("No",))
    found = []
    for (pair, side), (first, second) in _WORDS.items():
        other = _WORDS[pair, "corrupt" if side == "clean" else "clean"]
        rest = " ".join(f"w{number}" for number in range(10, LENGTHS[pair]))
        text, spans = compose(
            [
                (None, "w0 w1 "),
                ("first", f"{first} w3 w4"),
                (None, " w5 w6 w7 "),
                ("second", f"{second} w9"),
                (None, f" {rest}"),
            ]
        )
        donor = Donor(
            "other", "instance", {"first": f"{other[0]} w3 w4", "second": f"{other[1]} w9"}
        )
        answer = Choice.between(*options, gold=side == "clean")
        found.append(Prompt(f"{pair}/{side}", text, spans, answer, pair, side, {}, donors=(donor,)))
    return found


class Check:
    """The measurements of one member of the zoo."""

    def __init__(self, built: Built) -> None:
        self._hf: PreTrainedModel = built.hf
        self._model = interp.Model(built.name, built.hf, tokenizer())
        self._prompts = prompts()
        self._ids = {p.id: tuple(tokenizer()(p.text)["input_ids"]) for p in self._prompts}
        words = tokenizer().get_vocab()
        self._options = words["Yes"], words["No"]
        self._exact = built.hf.dtype == torch.float64

    def verdicts(self) -> Iterator[tuple[str, Verdict]]:
        """Each measurement's verdict."""
        calls: dict[str, Callable[[], Verdict]] = {
            "evaluate": self.evaluate,
            "generate": self.generate,
            "effects": self.effects,
            **{name: lambda name=name: self.attribute(name) for name in METHODS},
            **{name: lambda name=name: self.patch(name) for name in SITES},
            "edges": self.edges,
        }
        for name, call in calls.items():
            yield name, self._verdict(name, call)

    def _verdict(self, name: str, call: Callable[[], Verdict]) -> Verdict:
        try:
            return call()
        except interp.UserError as error:
            return Verdict(ABSENT if self._lacks(name) else NO, str(error))
        except Exception as error:
            frames = traceback.extract_tb(error.__traceback__)
            at = [f for f in frames if "/interp/" in f.filename][-1:] or frames[-1:]
            where = ", ".join(f"{f.filename.rsplit('interp/', 1)[-1]}:{f.lineno}" for f in at)
            return Verdict(TRACEBACK, f"{type(error).__name__} {str(error)[:150]} ({where})")

    def _lacks(self, name: str) -> bool:
        """Whether the model has nothing that a measurement could give."""
        if name in ("attention", "value_weighted_norm", *HEADS):
            return self._attention("long/clean") is None
        if name not in ("resid_mid", "attn_out", "mlp_out"):
            return False
        try:
            layers = range(len(self._oracle("long").layers))
        except LookupError:
            return False
        return all(self._oracle("long").patched(name, layer, 5) is None for layer in layers)

    def _oracle(self, pair: str) -> Oracle:
        return self._oracles[pair]

    @cached_property
    def _oracles(self) -> dict[str, Oracle]:
        return {
            pair: Oracle(
                self._hf, self._ids[f"{pair}/corrupt"], self._ids[f"{pair}/clean"], self._options
            )
            for pair in LENGTHS
        }

    def _attention(self, prompt: str) -> Tensor | None:
        try:
            return self._oracle(prompt.split("/", maxsplit=1)[0]).attention(self._ids[prompt])
        except Exception:  # whatever the model raises, it gives no attention weights
            return None

    def evaluate(self) -> Verdict:
        """The options' probabilities, compared with plain passes of single prompts."""
        found = interp.evaluate(self._model, self._prompts)
        refused(found.answers)
        worst = 0.0
        for id_, rows in found.option_probabilities.groupby("prompt_id"):
            with torch.no_grad():
                expected = self._oracle("long").logits(self._ids[id_]).softmax(0)
            for token, got in zip(self._options, rows["probability"], strict=True):
                worst = max(worst, abs(math.log(got / float(expected[token]))))
        return self._judged(worst, 1.0)

    def generate(self) -> Verdict:
        """Three words, compared with the most probable ones of plain passes."""
        found = interp.generate(self._model, self._prompts, max_new_tokens=3)
        refused(found.answers if "answers" in dir(found) else found.table("completions"))
        wrong, end = [], tokenizer().eos_token_id
        for row in found.table("completions").to_dict("records"):
            ids = list(self._ids[row["prompt_id"]])
            with torch.no_grad():
                while len(ids) < len(self._ids[row["prompt_id"]]) + 3 and ids[-1] != end:
                    ids.append(int(self._oracle("long").logits(tuple(ids)).argmax()))
            new = ids[len(self._ids[row["prompt_id"]]) :]
            expected = tokenizer().decode(new, skip_special_tokens=True)
            if row["completion"].split() != expected.split():
                wrong.append(f"{row['prompt_id']} {row['completion']!r} instead of {expected!r}")
        return Verdict(WRONG, ", ".join(wrong)) if wrong else Verdict(YES)

    def effects(self) -> Verdict:
        """The value of each coalition, compared with a plain pass of its prompt."""
        found = interp.effects(self._model, self._prompts)
        refused(found.table("segment_effects"))
        by_id = {prompt.id: prompt for prompt in self._prompts}
        worst, size = 0.0, 0.0
        for row in found.table("coalition_values").to_dict("records"):
            prompt = by_id[row["prompt_id"]]
            other = by_id[_other(prompt.id)]
            ids = list(self._ids[prompt.id])
            for bit, (segment, place) in enumerate(zip(row["segments"], DIFFERENT, strict=True)):
                assert segment == ("first", "second")[bit]
                if not row["coalition"] >> bit & 1:
                    ids[place] = self._ids[other.id][place]
            own = self._oracle("long").contrast(self._ids[prompt.id])
            expected = math.copysign(1.0, own) * self._oracle("long").contrast(tuple(ids))
            worst = max(worst, abs(float(row["values"][0]) - expected))
            size = max(size, abs(expected))
        return self._judged(worst, size)

    def attribute(self, method: str) -> Verdict:
        """Scores of tokens, compared where the oracle has them."""
        found = interp.attribute(
            self._model, self._prompts, methods=(method,), target="contrast", keep_tokens=True
        )
        refused(found.segment_scores)
        scores = {
            id_: torch.tensor(rows["score"].tolist(), dtype=torch.float64)
            for id_, rows in found.token_scores.groupby("prompt_id")
        }
        if len(scores) != len(self._ids) or not all(s.isfinite().all() for s in scores.values()):
            return Verdict(WRONG, "scores are missing or not finite")
        if method == "integrated_gradients":
            return self._complete(scores, found.segment_scores)
        worst, size = 0.0, 0.0
        for id_, got in scores.items():
            expected = self._expected_scores(method, id_)
            if expected is None:
                return Verdict(UNJUDGED)
            worst = max(worst, float((got - expected).abs().max()))
            size = max(size, float(expected.abs().max()))
        return self._judged(worst, size)

    def _expected_scores(self, method: str, prompt: str) -> Tensor | None:
        if method == "attention":
            return self._attention(prompt)
        if method not in ("input_gradient", "input_x_gradient"):
            return None
        try:
            gradient, embedded = self._oracle(prompt.split("/", maxsplit=1)[0]).gradient(
                self._ids[prompt]
            )
        except (LookupError, RuntimeError, AssertionError):
            return None
        if method == "input_gradient":
            return gradient.norm(dim=-1)
        return (gradient * embedded).sum(-1)

    def _complete(self, scores: dict[str, Tensor], segments: pd.DataFrame) -> Verdict:
        """Whether scores add up to what the donor changes, except for the gap that is told."""
        worst, size = 0.0, 0.0
        for id_, own in segments.groupby("prompt_id"):
            values = [self._oracle("long").contrast(self._ids[i]) for i in (id_, _other(id_))]
            change = values[0] - values[1]
            told = abs(float(own["completeness_gap"].iloc[0]))
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
            contrast = self._oracle(row["pair_id"]).contrast(self._ids[f"{row['pair_id']}/corrupt"])
            if not self._judged(abs(row["base_metric"] - contrast), abs(contrast)).mark == YES:
                return Verdict(WRONG, f"base_metric {row['base_metric']} instead of {contrast}")
        try:
            return self._compared(site, rows)
        except LookupError as error:
            return Verdict(UNJUDGED, str(error))

    def _compared(self, site: str, rows: pd.DataFrame) -> Verdict:
        """A verdict on the patches of a site.

        Raises:
            LookupError: the oracle finds no layers.
        """
        worst, size, judged = (0.0, "", ""), 0.0, 0
        missing, unknown = set(), set()
        for pair, length in LENGTHS.items():
            oracle = self._oracle(pair)
            base = oracle.contrast(oracle.base)
            of_pair = rows[rows["pair_id"] == pair]
            places = (*DIFFERENT, 5, length - 1) if pair == "long" else (DIFFERENT[1],)
            for layer in range(len(oracle.layers)):
                own = of_pair[of_pair["layer"] == layer]
                heads = [None] if site not in HEADS else _heads(own)
                for head in heads:
                    for place in places:
                        value = (
                            oracle.patched(site, layer, place, head) if site != "pattern" else None
                        )
                        if value is None:
                            unknown.add(layer)
                            continue
                        cell = own[own["position"] == place]
                        if head is not None:
                            cell = cell[cell["head"] == head[0]]
                        if cell.empty:
                            missing.add(layer)
                            continue
                        expected, got = value - base, float(cell["effect"].iloc[0])
                        told = f"layer {layer}, head {head}, token {place}: {got} for {expected}"
                        worst = max(worst, (abs(got - expected), told, ""))
                        size, judged = max(size, abs(expected)), judged + 1
        if not judged:
            return Verdict(UNJUDGED)
        verdict = self._judged(worst[0], size)
        if verdict.mark == WRONG:
            return Verdict(WRONG, worst[1])
        if missing:
            return Verdict(PART, f"not for layers {', '.join(map(str, sorted(missing)))}")
        if site not in HEADS and (extra := unknown & set(rows["layer"])):
            return Verdict(YES, f"layers {', '.join(map(str, sorted(extra)))} unjudged")
        return verdict

    def edges(self) -> Verdict:
        """Effects of edges: estimates are derivatives, exact ones are those of two passes."""
        found = interp.edges(
            self._model, self._prompts, methods=["gradient", "exact"], directions=["denoising"]
        )
        refused(found.pairs)
        edges = found.edges[found.edges["pair_id"] == "long"]
        if edges.empty or not edges["effect"].notna().all():
            return Verdict(WRONG, "effects are missing")
        oracle = self._oracle("long")
        if not self._exact:
            return Verdict(UNJUDGED)
        base = oracle.contrast(oracle.base)
        worst, size, judged = 0.0, 0.0, 0
        effects = edges.set_index(["method", "writer", "reader"])["effect"].to_dict()
        for layer in range(len(oracle.layers) + 1):
            for part in ("mixer", "mlp") if layer < len(oracle.layers) else ("logits",):
                readers = _readers({reader for _, _, reader in effects}, part, layer)
                changes = {"input": oracle.stream_change(0)}
                if part != "mlp":
                    changes["all"] = oracle.stream_change(layer)
                for writer, change in changes.items():
                    whole = oracle.read(layer, part, change)
                    if whole is None or not readers:
                        continue
                    slopes = [oracle.slope_of_read(layer, part, change, step) for step in STEPS]
                    got = sum(
                        effect
                        for (method, own, reader), effect in effects.items()
                        if method == "gradient" and reader in readers and writer in (own, "all")
                    )
                    slope = min(slopes, key=lambda own: abs(own - got))
                    worst, size = max(worst, abs(got - slope)), max(size, abs(slope))
                    judged += 1
                    if writer == "input" and len(readers) == 1:
                        got = effects["exact", writer, *readers]
                        worst = max(worst, abs(got - (whole - base)))
                        size = max(size, abs(whole - base))
        return self._judged(worst, size) if judged else Verdict(UNJUDGED)

    def notes(self) -> Iterator[str]:
        """What is to be known about the oracle itself."""
        oracle = self._oracle("long")
        gap = abs(oracle.contrast(oracle.source) - oracle.contrast(oracle.base))
        if gap < 1e-3:
            yield f"the prompts differ by only {gap:.1g} logits"
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
            return Verdict(YES)
        return Verdict(WRONG, f"off by {worst:.2g} of {size:.2g}")


STEPS = (0.03, 0.01, 0.003)
"""How far a stream is moved for a derivative; many norms compute in float32 in any precision."""


def refused(table: pd.DataFrame) -> None:
    """Raise the first reason for which the toolkit left out a prompt or a pair.

    Raises:
        UserError: there is one.
    """
    if "error" in table and (table["error"] != "").any():
        raise interp.UserError(table.loc[table["error"] != "", "error"].iloc[0])


def judge(name: str) -> Judged:
    """One member's row of the table; never raises."""
    started = time.perf_counter()
    made, notes = _made(name)
    judged = Judged(name, "not built" if made is None else made.kind, notes=notes)
    if made is not None:
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            _judge(made, judged)
    judged.seconds = time.perf_counter() - started
    return judged


def _judge(made: Built, judged: Judged) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            check = Check(made)
            judged.notes += check.notes()
        except Exception as error:
            judged.notes.append(f"{type(error).__name__}: {str(error)[:200]}")
            return
        judged.verdicts.update(check.verdicts())


def _made(name: str) -> tuple[Built | None, list[str]]:
    """The model in float64, if it runs in it, else in float32; and what is to be known about it."""
    notes = []
    for dtype in (torch.float64, torch.float32):
        try:
            built = build(name, dtype=dtype)
            with torch.no_grad():
                built.hf(input_ids=torch.tensor([[1, 10, 20, 30]]), use_cache=False).logits[0, -1]
        except Exception as error:
            told = f"{type(error).__name__}: {str(error)[:200]}"
            if dtype == torch.float32:
                return None, [told]
            notes = ["judged in float32"]
            continue
        return built, notes
    return None, notes


def _readers(names: Iterable[str], part: str, layer: int) -> list[str]:
    """The readers of one part of a layer."""
    if part == "logits":
        return ["logits"]
    node = f"m{layer}" if part == "mlp" else f"a{layer}"
    return [name for name in names if name == node or name.startswith(f"{node}.")]


def _heads(rows: pd.DataFrame) -> Sequence[tuple[int, int] | None]:
    """The first and last head and the number of heads in some rows."""
    if rows.empty:
        return [(0, 1)]
    count = int(rows["head"].max()) + 1
    return [(0, count), (count - 1, count)]


def _other(prompt: str) -> str:
    pair, side = prompt.split("/")
    return f"{pair}/{'corrupt' if side == 'clean' else 'clean'}"


__all__ = ["MEASUREMENTS", "Ids", "Judged", "judge"]

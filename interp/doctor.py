"""Facts about a model, its tokenizer and this machine that matter before a long run."""

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import psutil
import torch
from jaxtyping import Float
from torch import Tensor

from interp.analysis.cautions.collected import cautions_on
from interp.circuits.choice import CHOICES, DRAWS, SHARES, chosen_circuits, mean_scores
from interp.circuits.graph import graph_of
from interp.circuits.running import circuit_metrics
from interp.circuits.streams import PairStreams
from interp.console import clock, echo
from interp.errors import UserError
from interp.measurements.circuits.measure import CPU_CIRCUIT_TOKENS, DIRECTIONS
from interp.measurements.edges.measure import pairs_on_graph
from interp.measurements.specs import Attribute, Circuits, Edges, Evaluate
from interp.measuring.core import PromptRows, bind, collect
from interp.measuring.spec import Spec, facts_of
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.models.sites import layer_count, locate, recorded
from interp.models.tensor_parallel import numbers_of_processes
from interp.models.tried import ABSENT, GIVEN, REFUSED, RIGHT, SOME, tried_on
from interp.patching.pairs import in_pairs
from interp.prompts.answers import AnswerOption, Label
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import dependence_factor
from interp.reading.budget import token_budget
from interp.reading.pieces import token_texts
from interp.reading.readers import check_finite, reader_of
from interp.reading.thoughts import marks_of
from interp.reading.tokens import TokenizedPrompt, pad, token_roles, token_segments, tokenize
from interp.runs.records import peak_memory, versions
from interp.scoring.answer_tokens import AnswerTokenizer


def refusals(model: Model, prompts: Iterable[Prompt]) -> Iterator[str]:
    """The reason why a model will not be measured on a prompt, for each such prompt.

    Without a pass of the model: its chat template, context and tokens, the first tokens of the
    options, and segments that have no tokens of their own.
    """
    answer_tokens = AnswerTokenizer(model, "first")
    empty = marks_of(model).thought("") if model.chat.thinks else None
    for prompt in prompts:
        try:
            (read,) = tokenize(model, [replace(prompt, thought=empty)])
            if prompt.answer.scored_by_next_token:
                answer_tokens(read)
            token_roles(read)
            token_segments(read)
        except UserError as error:
            yield str(error)


class Finding(NamedTuple):
    """One row of the doctor's table: a subject, such as "padding token", its value, and a note."""

    about: str
    found: str
    note: str = ""


def size(count: float) -> str:
    """A number of bytes, in the largest binary unit in which it is at least 1."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:,.0f} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


def machine() -> Iterator[Finding]:
    """Versions, devices and memory."""
    yield Finding("versions", ", ".join(f"{name} {number}" for name, number in versions().items()))
    memory = psutil.virtual_memory()
    yield Finding("memory", f"{size(memory.available)} free of {size(memory.total)}")
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        name = torch.cuda.get_device_name(index)
        yield Finding(f"cuda:{index}", f"{name}, {size(free)} free of {size(total)}")
    if not torch.cuda.is_available():
        yield Finding("GPU", "none visible to PyTorch")


def loaded(model: Model) -> Iterator[Finding]:
    """The loaded model, and its supported features."""
    parameters = list(model.hf.parameters())
    weights = sum(tensor.numel() * tensor.element_size() for tensor in parameters)
    count = sum(tensor.numel() for tensor in parameters)
    how = model.quantization or model.dtype
    yield Finding(
        "model",
        f"{type(model.hf).__name__}, a {model.kind.name}; {count:,} parameters, {size(weights)} in "
        f"{how} on {model.device}, attention by {model.attn_implementation}",
        "; ".join(model.notes),
    )
    context = model.context_length
    yield Finding("context", "not stated" if context is None else f"{context:,} tokens")
    if model.is_mapped:
        yield Finding("architecture", "found by measuring" if model.anatomy.measured else "known")
    else:
        note = "answers, input gradients and attention work; patching and backward rules do not"
        yield Finding("architecture", "not known", note)
    yield _tried(model)
    spread = " or ".join(map(str, numbers_of_processes(model.hf.config)))
    yield Finding(
        "--tensor-parallel",
        f"over {spread} processes" if spread and not model.quantization else "not possible",
    )
    with suppress(UserError):
        graph = graph_of(model)
        edges, passes = int(graph.edges.sum()), len(SHARES) * (len(CHOICES) + DRAWS)
        yield Finding(
            "edges of a pair",
            f"{edges:,}",
            f"edges --methods exact runs each of them; circuits runs {passes} circuits, in each of "
            f"which {len(graph.readers):,} readers have an input of their own",
        )
    if not model.allows_padding:
        yield Finding("padding", "not safe", "each batch contains prompts of equal length")


def _tried(model: Model) -> Finding:
    kind = model.hf.config.model_type
    marks = tried_on(kind, type(model.hf).__name__)
    if marks is None:
        return Finding(f"models of the type {kind}", "not tried")
    words = {
        RIGHT: "as plain passes",
        SOME: "in some layers",
        GIVEN: "not compared",
        ABSENT: "absent",
        REFUSED: "refused",
    }
    named = {word: [name for name in marks if marks[name] == mark] for mark, word in words.items()}
    clauses = [f"{word}: {', '.join(names)}" for word, names in named.items() if names]
    return Finding(f"small models of the type {kind}", "; ".join(clauses))


def objections(
    model: Model, sample: Sequence[Prompt], prompts: PromptSet, *, system: str
) -> Iterator[Finding]:
    """What a careful reader would object to in the model's answers to a sample of a run's prompts.

    Demonstrations are drawn from the sample's whole set.
    """
    facts = {model.name: facts_of(model, sample, Evaluate(), thorough=True)}
    tables = {} if model.chat.thinks else collect(bind(Evaluate(), model), sample)
    cautions = cautions_on(
        prompts.to_frame(),
        answers=tables.get("answers"),
        options=tables.get("option_probabilities"),
        facts=facts,
        cluster=dependence_factor(system),
    )
    for caution in cautions:
        yield Finding(caution.kind, caution.text)


SHOWN = 8
"""Number of tokens shown at each end of a prompt."""


def inputs(model: Model, prompts: Sequence[TokenizedPrompt]) -> Iterator[Finding]:
    """The first prompt as the model reads it, and the segments of all prompts."""
    first = prompts[0]
    tokens = [*map(repr, token_texts(model.tokenizer, first.token_ids))]
    ends = f"{' '.join(tokens[:SHOWN])} ... {' '.join(tokens[-SHOWN:])}"
    written = "by the chat template" if first.chat.templated else "without a chat template"
    yield Finding("first prompt", f"{len(first)} tokens, written {written}: {ends}")
    yield Finding("as the model reads it", repr(first.chat.text))
    yield from _thinking(model)
    yield from _beginning(model, first)
    yield from _special(model)
    shared = sum(
        any(start < end for (_, end), (start, _) in pairwise(sorted(prompt.segments.values())))
        for prompt in prompts
    )
    yield Finding(
        "segments, tokens",
        ", ".join(f"{name} {end - start}" for name, (start, end) in first.segments.items()),
        f"in {shared} of {len(prompts)} prompts a token belongs to two segments" * bool(shared),
    )
    yield from _answers(model, first)


def _thinking(model: Model) -> Iterator[Finding]:
    """Where answers are read, for a model that may think."""
    marks, frame = model.thought_marks, model.chat_frame
    if marks is None:
        return
    if model.chat.thinks:
        begin = f"begins with {marks.begin!r}" if marks.begin else "is begun by the template"
        after = "" if marks.fixed else "; the model itself writes any white space before the answer"
        yield Finding("thinking", f"on: a thought {begin} and ends with {marks.end!r}{after}")
    else:
        written = f"{frame.after}{frame.direct}{frame.answer_opening}"
        yield Finding("thinking", f"off: answers are read after {written[-SHOWN_TEXT:]!r}")


SHOWN_TEXT = 40
"""Number of characters shown before the place where an answer is read."""


def _beginning(model: Model, first: TokenizedPrompt) -> Iterator[Finding]:
    """Whether tokenizer(text) would write the beginning-of-text token twice."""
    if model.kind is not CAUSAL or model.tokenizer.bos_token_id is None:
        return
    note, plain = "", model.tokenizer(first.chat.text)["input_ids"]
    begins = [token == model.tokenizer.bos_token_id for token in plain[:2]]
    if begins == [True, True]:
        note = "tokenizer(text) would add it to the one in the template; here it occurs once"
    elif first.token_ids[0] != model.tokenizer.bos_token_id:
        note = "this prompt begins without it, as the template or tokenizer specifies"
    yield Finding("beginning of text", str(model.tokenizer.bos_token), note)


def _special(model: Model) -> Iterator[Finding]:
    note, pad, end = "", model.tokenizer.pad_token, model.tokenizer.eos_token
    if pad is None:
        note = "no padding token; any token is suitable, since padding is masked"
    elif pad == end:
        note = "identical to the end of text; padding is masked by position, not by token"
    yield Finding("padding token", str(pad), note)


def _answers(model: Model, first: TokenizedPrompt) -> Iterator[Finding]:
    """The tokens that count for each option, and those of them that begin other words as well."""
    answer_tokens = AnswerTokenizer(model, "first")
    options = {option.name: option for option in first.prompt.answer.options}
    answers = answer_tokens(first)
    for name, ids in answers.of.items():
        if isinstance(first.prompt.answer, Label):
            yield Finding(f"answer {name}", ", ".join(f"class {index}" for index in ids))
            continue
        if answers.whole:
            ways = (token_texts(model.tokenizer, answers.spelled(id_)) for id_ in ids)
            shown = ", ".join(" + ".join(map(repr, way)) for way in ways)
            yield Finding(f"answer {name}", shown, "read whole: two options begin alike")
            continue
        tokens = token_texts(model.tokenizer, ids)
        shown = ", ".join(f"{token!r} ({id_})" for token, id_ in zip(tokens, ids, strict=True))
        parts = _parts(model, answer_tokens, options[name], first) if model.kind is CAUSAL else ()
        note = f"any word that begins with {' or '.join(parts)} counts for {name}" if parts else ""
        yield Finding(f"answer {name}", shown, note)


def _parts(
    model: Model, answer_tokens: AnswerTokenizer, option: AnswerOption, first: TokenizedPrompt
) -> list[str]:
    """The first tokens that are only a part of a form, such as "F" of "FALSE", with the form."""
    whole, parts = set[int](), dict[int, str]()
    for form in option.forms:
        for way in answer_tokens.written(first.chat, form):
            if len(way) == 1:
                whole.add(way[0])
            else:
                parts.setdefault(way[0], form)
    names = token_texts(model.tokenizer, list(parts))
    return [
        f"{name!r} (of {form})"
        for name, (id_, form) in zip(names, parts.items(), strict=True)
        if id_ not in whole
    ]


Logits = Float[Tensor, "prompt output"]

SAFE = 1e-3
"""Larger differences between logits should be checked in fp32."""


@torch.no_grad()
def numbers(model: Model, prompts: Sequence[TokenizedPrompt]) -> Iterator[Finding]:
    """How far different ways of computing the same logits disagree."""
    echo("comparing logits of single prompts, in a batch and with hooks ...")
    with model.measuring():
        alone = torch.cat([_logits(model, [prompt]) for prompt in prompts])
    for prompt, logits in zip(prompts, alone, strict=True):
        if not bool(logits.isfinite().all()):
            check_finite(model, prompt)
    with model.measuring():
        chunks = [prompts] if model.allows_padding else [[prompt] for prompt in prompts]
        together = torch.cat([_logits(model, chunk) for chunk in chunks])
        yield _difference("logits of a single prompt and in a batch", alone, together)
        if model.is_mapped:
            places = {n: locate(model, "resid_pre", n) for n in range(layer_count(model))}
            with recorded(places):
                hooked = torch.cat([_logits(model, [prompt]) for prompt in prompts])
            yield _difference("logits with and without hooks", alone, hooked)


def _logits(model: Model, prompts: Sequence[TokenizedPrompt]) -> Logits:
    return reader_of(model).answer_logits(pad(model, prompts)).double().cpu()


def _difference(about: str, one: Logits, other: Logits) -> Finding:
    largest = float((one - other).abs().max())
    changed = int((one.argmax(-1) != other.argmax(-1)).sum())
    note = f"{changed} of {len(one)} predictions change" if changed else ""
    if largest > SAFE and not changed:
        note = "normal below fp32; too large for fp32"
    return Finding(about, f"largest difference {largest:.1e}", note)


def cost(model: Model, prompts: Sequence[Prompt], *, whole: int) -> Iterator[Finding]:
    """Peak memory, and the time and disk space for `whole` prompts, estimated from a sample."""
    if model.chat.thinks:
        yield Finding("cost", "not estimated", "answers are read after thoughts (--thoughts)")
        return
    for spec in (Evaluate(), Attribute()):
        echo(f"timing {spec.name} ...")
        seconds, stored = _measured(spec, model, prompts)
        yield Finding(
            f"{spec.name}, {whole:,} prompts",
            f"about {clock(seconds / len(prompts) * whole)} and "
            f"{size(stored / len(prompts) * whole)} on disk",
            f"{len(prompts) / seconds:.1f} prompts/s, measured on {len(prompts)}",
        )
    if model.is_mapped:
        try:
            yield from _cost_of_circuits(model, in_pairs(prompts)[:2])
        except UserError as error:
            yield Finding("edges and circuits", "not estimated", str(error))
    held = ", ".join(f"{size(peak)} ({device})" for device, peak in peak_memory().items())
    yield Finding("peak memory", held)


EVERY = 7
"""One in so many circuits is timed. It shares no divisor with the number of sizes, so that the
timed circuits have all sizes and come from different rankings."""

BRIEF = 2.0
"""If the other circuits need fewer seconds, they are run too: such short times are not alike."""


def _cost_of_circuits(model: Model, pair: Sequence[Prompt]) -> Iterator[Finding]:
    graph = graph_of(model)
    echo("timing edges ...")
    start = time.perf_counter()
    edges = collect(bind(Edges(methods=("gradient",)), model), pair)["edges"]
    seconds = time.perf_counter() - start
    yield Finding("edges --methods gradient, 1 pair", f"about {clock(seconds)}")
    graph.check_heads("circuits")
    echo("timing circuits ...")
    start = time.perf_counter()
    chosen = [choice.circuit for choice in chosen_circuits(graph, mean_scores(graph, edges))]
    sample = chosen[::EVERY]
    # Equal circuits are run once.
    every, timed = (len({mask.numpy().tobytes() for mask in some}) for some in (chosen, sample))
    budget = token_budget(model, None, on_cpu=CPU_CIRCUIT_TOKENS)
    left = 0.0

    def rows(streams: PairStreams, _direction: str) -> PromptRows:
        nonlocal left, timed
        begin = time.perf_counter()
        circuit_metrics(model, graph, streams, sample, budget=budget)
        spent = time.perf_counter() - begin
        left = spent * (every / timed - 1)
        if left < BRIEF:
            circuit_metrics(model, graph, streams, chosen, budget=budget)
            left, timed = -spent, every
        return {}

    collect(pairs_on_graph(model, graph, Circuits(), budget, rows, directions=DIRECTIONS), pair)
    seconds = time.perf_counter() - start + left
    yield Finding(
        "circuits, 1 pair",
        f"about {clock(seconds)}",
        f"measured on {timed} of {every} circuits; without --edges, it measures integrated edges "
        "first",
    )


def _measured(spec: Spec, model: Model, prompts: Sequence[Prompt]) -> tuple[float, int]:
    """The time taken in seconds, and the size of the tables as Parquet in bytes."""
    measurement = bind(spec, model)
    collect(measurement, prompts[:2])  # do slow one-time work first, such as loading kernels
    start = time.perf_counter()
    tables = collect(measurement, prompts)
    seconds = time.perf_counter() - start
    return seconds, sum(len(table.to_parquet(index=False)) for table in tables.values())

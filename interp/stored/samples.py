"""Samples of lm-evaluation-harness, its files samples_TASK.jsonl.

A task that generates text stores texts. One that compares options stores the log-likelihood of
each option, of which the largest tells the answer.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

from pydantic import JsonValue

from interp.errors import UserError
from interp.stored.output import Output
from interp.stored.schema import Stored, checked


class _Sample(Stored):
    doc: dict[str, JsonValue]
    arguments: JsonValue = None
    resps: list[JsonValue]
    filtered_resps: JsonValue = None
    filter: str = ""


def outputs_of_sample(where: str, record: object) -> Iterator[Output]:
    """The texts of a sample, or the option that it tells.

    Raises:
        UserError: the sample is damaged, or its log-likelihoods are not those of options.
    """
    sample = checked(where, _Sample, record)
    requests = _requests(sample.arguments)
    named, read = sample.doc.get("prompt_id"), sample.doc.get("text")
    found = Output(
        where,
        "",
        prompt_id=named if isinstance(named, str) else None,
        prompt=requests[0][0] if requests else read if isinstance(read, str) else None,
        rendered=True,
        filter=sample.filter,
    )
    texts = [text for own in sample.resps for text in (own if isinstance(own, list) else [own])]
    if not all(isinstance(text, str) for text in texts):
        yield replace(found, chosen=_likeliest(where, requests, sample.resps))
        return
    filtered = sample.filtered_resps if isinstance(sample.filtered_resps, list) else []
    for draw, text in enumerate(texts):
        own = filtered[draw] if len(filtered) == len(texts) else None
        answer = own if isinstance(own, str) else None
        yield replace(found, text=str(text), draw=draw, chosen=answer)


def _requests(arguments: JsonValue) -> list[tuple[str, JsonValue]]:
    """What the model read in each request, and the option that it scored or how it generated."""
    found: list[tuple[str, JsonValue]] = []
    given = list(arguments.values()) if isinstance(arguments, dict) else arguments
    for own in given if isinstance(given, list) else ():
        match list(own.values()) if isinstance(own, dict) else own:
            case [str(text), *rest]:
                found.append((text, rest[0] if rest else None))
    return found


def _likeliest(
    where: str, requests: Sequence[tuple[str, JsonValue]], resps: Sequence[JsonValue]
) -> str:
    """The option with the largest log-likelihood after the prompt; empty if several have it.

    Options without the prompt, which acc_mutual_info also scores, do not count.
    """
    scored = [
        (option.strip(), _log_likelihood(own))
        for (text, option), own in zip(requests, resps, strict=False)
        if isinstance(option, str) and text == requests[0][0]
    ]
    if len(dict(scored)) < 2 or len(requests) != len(resps):
        raise UserError(
            f"{where} holds log-likelihoods that do not tell an option; expected samples of a task "
            "that generates text (output_type: generate_until), or that compares options after "
            "one text (multiple_choice)"
        )
    if any(math.isnan(own) for _, own in scored):
        raise UserError(
            f"{where} holds a log-likelihood that is no number; run lm-eval again with a model "
            "that computes numbers"
        )
    most = max(own for _, own in scored)
    best = {option for option, own in scored if own == most}
    return best.pop() if len(best) == 1 else ""


def _log_likelihood(response: JsonValue) -> float:
    """The number in the first response to a request, [[-1.5, false]]; nan if there is none."""
    while isinstance(response, list) and response:
        response = response[0]
    try:
        return float(response) if isinstance(response, str | int | float) else math.nan
    except ValueError:
        return math.nan

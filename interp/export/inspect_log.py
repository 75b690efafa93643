"""A run's answers as Inspect logs, one per model, which `inspect view` opens.

A log is one JSON object (https://inspect.aisi.org.uk/eval-logs.html, version 2) with the task, the
model, the accuracies, the cautions (in the metadata), and a sample for each prompt with its text,
the answer and the score.
"""

import json
import math
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import partial
from itertools import starmap
from pathlib import Path
from typing import Any

import pandas as pd

from interp.analysis.accuracy import accuracies
from interp.errors import UserError, shortened
from interp.files import inside, write_whole, writing
from interp.prompts.prompt import Demonstration, Messages
from interp.results.given import cautions_about
from interp.results.measured import InFolder
from interp.runs.folder import RunFolder, slug
from interp.tables import PROMPTS

SCORER = "interp"

_STOPPED = {"length": "max_tokens"}
"""Inspect's names for the reasons why generation ended; "stop" for all other reasons."""

_WRITTEN = {"answers": "predicted_token", "completions": "completion"}
"""The tables with answers, each with its column for the text that the model wrote."""


def answered_runs(runs: Mapping[str, RunFolder]) -> list[RunFolder]:
    """The runs whose answers differ: the first with scored answers, and all with completions."""
    scored = [run for run in runs.values() if "answers" in run.tables()]
    differing = scored[:1] + [run for run in runs.values() if "completions" in run.tables()]
    if not differing:
        raise UserError(
            f"no answers in {', '.join(runs) or 'the study'}; expected the folder of a study, or "
            "of a run of evaluate, attribute or generate"
        )
    return differing


def write_logs(run: RunFolder, folder: Path) -> list[Path]:
    """Write one log for each model that was measured on all prompts; returns the files."""
    name = next(name for name in _WRITTEN if name in run.tables())
    models = run.finished_models()
    if not models:
        raise UserError(f"no model of {run.folder} is finished; rerun its command before exporting")
    prompts, answers = run.table("prompts"), run.table(name)
    columns = ["model", "prompt_id", "option", "probability"]
    options = pd.DataFrame(columns=columns)
    if "option_probabilities" in run.tables():
        options = run.table("option_probabilities", columns)
    with writing(folder):
        folder.mkdir(parents=True, exist_ok=True)
    cautions, written = cautions_about(InFolder(run)), []
    for model in models:
        rows = answers[answers["model"] == model]
        model_options = options[options["model"] == model]
        header = _header(run, model, rows, prompts)
        header["eval"]["metadata"]["cautions"] = [
            caution.text for caution in cautions if caution.model in (model, "")
        ]
        parts = (header["eval"][part] for part in ("created", "task", "task_id"))
        # Inspect lists only files whose names have these parts, joined by underscores.
        file = inside(folder, "_".join(re.sub(r"[:/_]", "-", part) for part in parts) + ".json")
        samples = _samples(model, rows, prompts, model_options, column=_WRITTEN[name])
        write_whole(file, partial(_write, header=header, samples=samples))
        written.append(file)
    return written


def _write(file: Path, *, header: Mapping[str, Any], samples: Iterator[Mapping[str, Any]]) -> None:
    """Write the header, then the samples one at a time; readers expect this order."""
    with file.open("w", encoding="utf-8") as stream:
        stream.write(json.dumps(header, allow_nan=False).removesuffix("}"))
        stream.write(',"samples":[')
        for number, sample in enumerate(samples):
            stream.write((",\n" if number else "\n") + json.dumps(sample, allow_nan=False))
        stream.write("]}\n")


def _header(
    run: RunFolder, model: str, rows: pd.DataFrame, prompts: pd.DataFrame
) -> dict[str, Any]:
    recorded, call = run.record.run, run.record.history[-1]
    shares = accuracies(rows, prompts).drop("prompts").items()
    finite = {name: float(value) for name, value in shares if math.isfinite(value)}
    metrics = {name: {"name": name, "value": value} for name, value in finite.items()}
    failed = int((rows["error"] != "").sum())
    return {
        "version": 2,
        "status": "success",
        "eval": {
            "run_id": recorded.data_hash[:22],
            "created": run.record.history[0].started,
            "task": recorded.system,
            "task_id": f"{recorded.measurement}-{slug(model)}",
            "task_args": {"seed": recorded.seed, **recorded.data},
            "dataset": {"name": recorded.system, "samples": len(prompts), "shuffled": False},
            "model": model,
            "config": {},
            "packages": call.versions,
            "metadata": {"data_hash": recorded.data_hash, "code": recorded.code},
        },
        "plan": {
            "name": "plan",
            "steps": [{"solver": recorded.measurement, "params": recorded.parameters}],
        },
        "results": {
            "total_samples": len(rows),
            "completed_samples": len(rows) - failed,
            "scores": [{"name": SCORER, "scorer": SCORER, "metrics": metrics}],
        },
        "stats": {"started_at": call.started, "completed_at": call.finished or call.started},
    }


def _samples(
    model: str, rows: pd.DataFrame, prompts: pd.DataFrame, options: pd.DataFrame, *, column: str
) -> Iterator[dict[str, Any]]:
    probabilities: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for option in options.to_dict("records"):
        if math.isfinite(option["probability"]):
            name = f"probability of {option['option']}"
            probabilities[option["prompt_id"]][name] = option["probability"]
    texts = prompts.select_dtypes(exclude="number").columns.difference(PROMPTS.names)
    answers = rows.set_index("prompt_id").to_dict("index")
    for prompt in prompts.to_dict("records"):
        id_ = prompt["prompt_id"]
        answer = answers[id_]
        text, error = answer[column] or "", answer["error"]
        reply = {"role": "assistant", "content": text, "source": "generate", "model": model}
        stopped = _STOPPED.get(answer.get("finished", ""), "stop")
        about = {name: prompt[name] for name in texts if isinstance(prompt[name], str)}
        before = _before(id_, prompt.get("messages"))
        recorded = {"role": "user", "content": prompt["text"], "source": "input"}
        sample: dict[str, Any] = {
            "id": id_,
            "epoch": 1,
            "input": [*before, recorded] if before else prompt["text"],
            "target": prompt["gold"],
            "messages": [*before, recorded, reply],
            "output": {
                "model": model,
                "choices": [{"message": reply, "stop_reason": stopped}],
                "completion": text,
            },
            "metadata": about | {name: prompt[name] for name in ("pair_id", "side", "weight")},
        }
        if not pd.isna(answer["correct"]) or error:
            sample["scores"] = {
                SCORER: {
                    "value": "C" if not error and answer["correct"] else "I",
                    "answer": answer["answer"] or "",
                    "metadata": probabilities.get(id_, {}),
                }
            }
        if error:
            sample["error"] = {"message": error, "traceback": "", "traceback_ansi": ""}
        yield sample


def _before(prompt_id: str, record: object) -> list[dict[str, str]]:
    """The messages before a prompt, from the prompts table (`Messages.record`)."""
    if not isinstance(record, str):  # the table has no such column, or the prompt no messages
        return []
    try:
        messages = json.loads(record)
        shown = [(shot["question"], shot["answer"]) for shot in messages.get("demonstrations", ())]
        turns = Messages(messages.get("system_prompt"), tuple(starmap(Demonstration, shown))).turns
    except (ValueError, TypeError, KeyError, AttributeError, UserError) as error:
        raise UserError(
            f"the messages of prompt {shortened(prompt_id, 60)!r} in the table of prompts cannot "
            f"be read ({shortened(str(error), 100)}); measure the prompts again"
        ) from error
    return [{"role": role, "content": content, "source": "input"} for role, content in turns]

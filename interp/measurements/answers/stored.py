"""Texts that other tools stored, judged as `generate` judges what it generates.

No model is loaded, and torch is not needed: the run folder is that of a measurement whose rows are
there already.
"""

import hashlib
import json
import time
from collections.abc import Sequence
from pathlib import Path
from secrets import token_hex

from interp.console import counted, echo
from interp.errors import UserError
from interp.measurements.specs import Stored
from interp.measuring.spec import Attempt
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.source import PromptSource
from interp.prompts.systems import tell_counting
from interp.runs.folder import RECORD
from interp.runs.identity import code_version, texts_record
from interp.runs.records import Call, ModelRecord, column_types, now, versions
from interp.runs.run import Run, check_takes, in_use
from interp.runs.shards import Shard, cut_by, write
from interp.stored.output import StoredTexts
from interp.stored.sources import ModelTexts, texts_by_model
from interp.stored.text_file import TextFile
from interp.tables import Row


def needs_no_model(*_: object, **__: object) -> None:
    """Refuse to measure: stored texts are judged without a model."""
    raise UserError("stored texts are judged without a model: interp evaluate --answers-from FILE")


def judge_files(
    files: Sequence[TextFile],
    source: PromptSource,
    *,
    out: Path | None = None,
    fail_on_error: float = 0.1,
    command: str | None = None,
) -> Path:
    """Judge stored texts; returns the run folder that is written, whose tables are not merged yet.

    The folder is by default one in runs/, named after prompts and files. `fail_on_error` is the
    largest share of a model's prompts that may lack a text.

    Raises:
        UserError: a file cannot be read, no text of a model fits the prompts, too many prompts have
            no text, or the folder belongs to another run.
    """
    if out is not None:
        check_takes(out, RECORD)
    echo(f"reading the prompts of {source.system} ...")
    prompts = source.load()
    tell_counting(prompts)
    models = texts_by_model(files, prompts)
    for texts in models:
        _check_enough(texts, fail_on_error)
    identity = [source.as_json(), [[texts.model, dict(texts.files)] for texts in models]]
    digest = hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:8]
    folder = out or Path("runs") / f"stored-{source.system}-{digest}"
    echo(f"{counted(len(prompts), 'prompt')} of {prompts.system}, results in {folder}")
    names = [texts.model for texts in models]
    run = Run.open(folder, prompts, Stored(), models=names, fail_on_error=fail_on_error)
    call = Call(id=token_hex(6), command=command, models=names, started=now(), versions=versions())
    with in_use(run):
        for line in run.repair():
            echo(line)
        begun = [_begin(run, texts, prompts) for texts in models]
        if not all(shard.done for shards in begun for shard in shards):
            run.note(call)
        for texts, shards in zip(models, begun, strict=True):
            _judge(texts, shards, prompts)
    return folder


def _check_enough(texts: ModelTexts, most: float) -> None:
    lacking, prompts = len(texts.matched.lacking), texts.matched.prompts
    if lacking > most * prompts:
        raise UserError(
            f"{lacking:,} of {counted(prompts, 'prompt')} have no text of {texts.model} in "
            f"{texts.shown}, such as {texts.matched.lacking[0]}; --fail-on-error allows a share of "
            f"up to {most:g}. Use the same --limit and --seed as for the texts, or allow a larger "
            "share"
        )


_SHARD_PROMPTS = 2000
"""Number of prompts of a shard, which takes about a second."""


def _begin(run: Run, texts: ModelTexts, prompts: PromptSet) -> list[Shard]:
    """Record a model, whose identity is that of its texts; return its shards."""
    spec, matched = Stored(), texts.matched
    firsts = {id_: outputs[0] for id_, outputs in matched.outputs.items()}
    judged = {id_: [first.answer, first.finished, first.error] for id_, first in firsts.items()}
    identity = hashlib.sha256(json.dumps(sorted(judged.items())).encode()).hexdigest()
    modules = (*spec.modules(), *sorted(prompts.parser_modules()))
    shards = cut_by(
        [code_version(modules), spec.name, spec.identity(), texts.model],
        prompts,
        run.shard_folder(texts.model),
        size=_SHARD_PROMPTS,
        read=lambda prompt: judged.get(prompt.id, ()),
    )
    problems = matched.problems()
    if matched.draws > 1:
        problems.append(
            f"up to {matched.draws:,} texts are on one prompt, of which the first is judged"
        )
    run.begin(
        ModelRecord(
            name=texts.model,
            source={"kind": "stored texts"},
            identity=identity,
            architecture="",
            parameters=0,
            vocabulary=0,
            dtype="",
            quantization=None,
            device="",
            attn_implementation="",
            chat={},
            texts=texts_record(
                StoredTexts(texts.shown, matched.texts, matched.draws, tuple(problems))
            ),
            tables={name: column_types(schema) for name, schema in spec.filled().items()},
            origin={"files": dict(texts.files)},
            data_hash=run.record.run.data_hash,
            shards=[shard.id for shard in shards],
            shard_prompts=_SHARD_PROMPTS,
        )
    )
    return shards


def _judge(texts: ModelTexts, shards: Sequence[Shard], prompts: PromptSet) -> None:
    """Write the shards that are not there yet."""
    for shard in [shard for shard in shards if not shard.done]:
        start = time.monotonic()
        rows = [_row(texts, prompt) for prompt in prompts[shard.start : shard.end]]
        failures = {row["prompt_id"]: row["error"] for row in rows if row["error"]}
        attempt = Attempt({"completions": rows}, len(rows), "prompt_id", failures)
        write(shard, Stored().filled(), attempt, seconds=time.monotonic() - start)


def _row(texts: ModelTexts, prompt: Prompt) -> Row:
    key: Row = {"model": texts.model, "prompt_id": prompt.id}
    outputs = texts.matched.outputs.get(prompt.id)
    error = outputs[0].error if outputs else f"no text in {texts.shown}"
    if not outputs or error:
        return {**key, "answer": "", "correct": None, "error": error}
    text, finished = outputs[0].answer, outputs[0].finished or "stop"
    judged = prompt.answer.judge(text)
    if finished == "refused":
        finished = "stop"
        if judged.outcome != "answered":
            judged = judged._replace(outcome="refused")
    return {**key, "completion": text, "finished": finished, **judged._asdict(), "error": ""}

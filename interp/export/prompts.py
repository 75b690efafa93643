"""Prompts for other libraries: tasks of lm-evaluation-harness and Inspect, or Croissant 1.0.

Croissant describes data sets for loaders and search indices (Akhtar et al., 2024). README.md is a
data set card, which tells Hugging Face's datasets library which file has the prompts.
"""

import hashlib
import json
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from importlib import resources
from importlib.metadata import version
from inspect import cleandoc
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined

from interp.console import counted
from interp.errors import UserError
from interp.prompts.answers import Choice, begin_alike
from interp.prompts.plain_text import gap, paragraphs
from interp.prompts.prompt import ALONE, Prompt
from interp.prompts.prompt_set import PromptSet
from interp.prompts.systems import installed_system
from interp.report.cards import Rows, card


def task_name(system: str) -> str:
    """The name of a system's task and of its files: a Python name, such as interp_robustlr."""
    return "interp_" + re.sub(r"\W", "_", system)


def lm_eval_task(prompts: PromptSet) -> Mapping[str, str]:
    """The files of two tasks of lm-evaluation-harness, by name.

    One judges the first token of a reply, unless two options begin with the same word; the other,
    NAME_whole, compares whole options. A system prompt is the description of the task, which
    lm-eval writes as the system message with a chat template and before the text without one.
    Other messages around a prompt become part of its text, as models without a chat template read
    them.
    """
    name = task_name(prompts.system)
    system = any(prompt.messages.system for prompt in prompts)
    tasks = {f"{name}_whole.yaml": _filled("lm_eval_whole.yaml.jinja", prompts, system=system)}
    if _alike(prompts) is None:
        tasks[f"{name}.yaml"] = _filled("lm_eval.yaml.jinja", prompts, system=system)
    return _shared(prompts, partial(_as_text, system=system)) | {
        **tasks,
        f"{name}_task.py": _filled("lm_eval_task.py.jinja", prompts),
    }


def inspect_task(prompts: PromptSet) -> Mapping[str, str]:
    """The files of a task of Inspect, by name; messages before a prompt remain messages."""
    if (alike := _alike(prompts)) is not None:
        raise UserError(
            f"two options of prompt {alike.id} begin with the same word, but Inspect's task judges "
            "the first token of a reply; use interp export lm-eval, which also compares whole "
            "options"
        )
    name = task_name(prompts.system)
    return _shared(prompts, _as_messages) | {f"{name}.py": _filled("inspect.py.jinja", prompts)}


def _alike(prompts: PromptSet) -> Prompt | None:
    """The first prompt of which forms of two options begin with the same word."""
    return next((prompt for prompt in prompts if begin_alike(prompt.answer.options)), None)


def _alone(prompt: Prompt) -> Mapping[str, object]:
    """No fields; messages around the prompt are rejected."""
    if prompt.messages != ALONE:
        raise UserError(
            f"prompt {prompt.id} has messages around it, which data sets do not hold; use prompts "
            "without messages"
        )
    return {}


def _as_text(prompt: Prompt, *, system: bool) -> Mapping[str, object]:
    """The text with the messages around it but the system prompt, which is a field of its own."""
    messages = prompt.messages
    fields = {"system_prompt": messages.system or ""} if system else {}
    text = "".join(paragraphs(replace(messages, system=None).turns)) + prompt.text
    prefix = messages.answer_prefix
    return {**fields, "text": text + gap(text) + prefix if prefix else text}


def _as_messages(prompt: Prompt) -> Mapping[str, object]:
    """The messages up to the prompt, if there are others before it."""
    messages = prompt.messages
    if messages.answer_prefix:
        raise UserError(
            f"prompt {prompt.id} has an answer prefix, which Inspect's models do not continue; "
            "omit it, or put it at the end of the prompt"
        )
    if messages == ALONE:
        return {}
    turns = (*messages.turns, ("user", prompt.text))
    return {"messages": [{"role": role, "content": content} for role, content in turns]}


def prompt_lines(
    prompts: PromptSet, around: Callable[[Prompt], Mapping[str, object]] = _alone
) -> str:
    """The prompts as JSON, one per line: id, pair, side, text, options, gold, weight and factors.

    A factor with the name of another field is omitted. `around` gives the fields of messages.
    """
    rows = ({**_row(prompt, prompts.weight(prompt)), **around(prompt)} for prompt in prompts)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _shared(prompts: PromptSet, around: Callable[[Prompt], Mapping[str, object]]) -> dict[str, str]:
    name = task_name(prompts.system)
    answers = resources.files("interp.export").joinpath("answers.py").read_text(encoding="utf-8")
    return {f"{name}.jsonl": prompt_lines(prompts, around), f"{name}_answers.py": answers}


def _row(prompt: Prompt, weight: float) -> dict[str, object]:
    answer = prompt.answer
    if not isinstance(answer, Choice):
        raise UserError(
            f"prompt {prompt.id} requires {answer.needs}, which exported tasks cannot judge; use "
            "prompts that offer a choice"
        )
    fields = {
        "prompt_id": prompt.id,
        "pair_id": prompt.pair_id,
        "side": prompt.side,
        "text": prompt.text,
        "options": [{"name": o.name, "forms": list(o.forms)} for o in answer.options],
        "gold": answer.gold,
        "weight": weight,
    }
    return {**prompt.factors, **fields}


def _filled(template: str, prompts: PromptSet, **chosen: bool) -> str:
    environment = Environment(
        loader=PackageLoader("interp.export"),
        autoescape=False,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    sides = [side for side in prompts.sides if re.fullmatch(r"\w+", side)]
    name = task_name(prompts.system)
    return environment.get_template(template).render(name=name, sides=sides, **chosen)


_TERMS = (
    *("citeAs", "column", "conformsTo", "data", "dataType", "examples", "extract", "field"),
    *("fileObject", "fileProperty", "fileSet", "format", "includes", "isLiveDataset", "jsonPath"),
    *("key", "md5", "parentField", "path", "recordSet", "references", "regex", "repeated"),
    *("replace", "separator", "source", "subField", "transform"),
)
_CONTEXT: Mapping[str, object] = {
    **{term: f"cr:{term}" for term in _TERMS},
    "@language": "en",
    "@vocab": "https://schema.org/",
    "conformsTo": "dct:conformsTo",
    "cr": "http://mlcommons.org/croissant/",
    "data": {"@id": "cr:data", "@type": "@json"},
    "dataType": {"@id": "cr:dataType", "@type": "@vocab"},
    "dct": "http://purl.org/dc/terms/",
    "examples": {"@id": "cr:examples", "@type": "@json"},
    "rai": "http://mlcommons.org/croissant/RAI/",
    "sc": "https://schema.org/",
}
"""The names that Croissant 1.0 defines, which its specification sorts."""

_FIELDS = {
    "prompt_id": "identifier of the prompt",
    "pair_id": "identifier shared by the prompts of a pair",
    "side": "role of the prompt within its pair",
    "text": "text that the model reads",
    "gold": "name of the correct option",
    "weight": "number of prompts that this prompt represents in the whole data set",
}


def described(prompts: PromptSet) -> Mapping[str, str | bytes]:
    """The files of a data set, by name: the prompts twice, croissant.json and README.md.

    Loaders are pointed to the Parquet file, since they guess the types of JSON's texts: pandas,
    which mlcroissant uses, reads the ids "01" and "1.0" as one number.
    """
    name = task_name(prompts.system)
    lines, table = prompt_lines(prompts), f"{name}.parquet"
    files: dict[str, str | bytes] = {f"{name}.jsonl": lines, table: _parquet(lines)}
    description = json.dumps(_description(prompts, files, table), indent=2, ensure_ascii=False)
    return {**files, "croissant.json": f"{description}\n", "README.md": _card(prompts, table)}


def _parquet(lines: str) -> bytes:
    """The same prompts as a Parquet file; a factor that a prompt lacks is null."""
    import pyarrow as pa  # slow to import
    import pyarrow.parquet as pq

    rows = [json.loads(line) for line in lines.splitlines()]
    names = dict.fromkeys(name for row in rows for name in row)
    table = pa.table({name: [row.get(name) for row in rows] for name in names})
    sink = pa.BufferOutputStream()
    pq.write_table(table, sink)
    return bytes(sink.getvalue())


_FORMATS = {".jsonl": "application/jsonlines", ".parquet": "application/x-parquet"}


def _description(
    prompts: PromptSet, files: Mapping[str, str | bytes], table: str
) -> Mapping[str, object]:
    factors = dict.fromkeys(name for prompt in prompts for name in prompt.factors)
    factors.pop("options", None)  # answer options are not plain text
    fields = dict.fromkeys(factors, "a factor that the data set varies") | _FIELDS
    return {
        "@context": dict(sorted(_CONTEXT.items())),
        "@type": "sc:Dataset",
        "conformsTo": "http://mlcommons.org/croissant/1.0",
        "name": task_name(prompts.system),
        "description": f"{counted(len(prompts), 'prompt')} of {prompts.system}, in groups whose "
        f"members differ in their side ({', '.join(prompts.sides)}). Each line also has the answer "
        "options with their surface forms.",
        "version": version("interp"),
        "distribution": [_file(name, content) for name, content in files.items()],
        "recordSet": [
            {
                "@type": "cr:RecordSet",
                "@id": "prompts",
                "name": "prompts",
                "key": {"@id": "prompts/prompt_id"},
                "field": [_field(name, text, table) for name, text in fields.items()],
            }
        ],
    }


def _file(name: str, content: str | bytes) -> Mapping[str, object]:
    written = content.encode("utf-8") if isinstance(content, str) else content
    return {
        "@type": "cr:FileObject",
        "@id": name,
        "name": name,
        "contentUrl": name,
        "contentSize": f"{len(written)} B",
        "encodingFormat": _FORMATS[Path(name).suffix],
        "sha256": hashlib.sha256(written).hexdigest(),
    }


def _field(name: str, description: str, file: str) -> Mapping[str, object]:
    return {
        "@type": "cr:Field",
        "@id": f"prompts/{name}",
        "name": name,
        "description": description,
        "dataType": "sc:Float" if name == "weight" else "sc:Text",
        "source": {"fileObject": {"@id": file}, "extract": {"column": name}},
    }


def _card(prompts: PromptSet, file: str) -> str:
    """The card of a data set: its source, sides, answers, factors and fields, and an example."""
    system = installed_system(prompts.system)
    about = cleandoc(type(system).__doc__ or "") if system else ""
    sources = {
        name: Path(value).name if Path(value).exists() else value
        for name, value in prompts.description.items()
    }
    made = {"system": prompts.system, "seed": prompts.seed, **sources, "interp": version("interp")}
    counts = Counter((prompt.side, prompt.answer.gold) for prompt in prompts)
    levels: dict[str, dict[str, None]] = {}
    for prompt in prompts:
        for name, value in prompt.factors.items():
            levels.setdefault(name, {})[value] = None
    example = "\n".join(f"    {line}" for line in prompts[0].text.splitlines())
    pairs = len({prompt.pair_id for prompt in prompts})
    parts: dict[str, str | Rows] = {
        "": f"{about}\n\n{counted(len(prompts), 'prompt')} in {counted(pairs, 'group')}, "
        "whose members differ in their side. Made with interp.",
        "Example": f"{example}\n\nCorrect answer: {prompts[0].answer.gold}",
        "How it was made": [{"what": name, "value": value} for name, value in made.items()],
        "Sides and correct answers": [
            {"side": side, "correct answer": gold, "prompts": count}
            for (side, gold), count in sorted(counts.items())
        ],
        "What varies": [
            {"factor": name, "values": len(values), "such as": list(values)[:3]}
            for name, values in levels.items()
        ],
        "Fields": [
            *({"field": name, "meaning": meaning} for name, meaning in _FIELDS.items()),
            {"field": "options", "meaning": "name and surface forms of each answer option"},
        ],
        "Limits": "Prompts of a group share their premises or their wording, so they are not "
        "independent: resample groups, or the units that groups share, not prompts. A subset "
        "represents the whole data set only if prompts are weighted by `weight`. Before you "
        "publish the file, add the license of its data to this card.",
    }
    metadata = {
        "pretty_name": prompts.system,
        "tags": ["interp", "minimal-pairs"],
        "configs": [{"config_name": "default", "data_files": file}],
    }
    return card(metadata, task_name(prompts.system), parts)

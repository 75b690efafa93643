"""The files of an exported task: the prompts, how answers are judged, and the task itself.

- lm-eval: `lm_eval --include_path DIR --tasks interp_NAME --apply_chat_template ...`
- inspect: `inspect eval DIR/interp_NAME.py --model hf/...`

Both have a model write one token, greedily, and judge it as interp judges its most probable token.
"""

import json
import re
from collections.abc import Mapping
from importlib import resources

from jinja2 import Environment, PackageLoader, StrictUndefined

from interp.errors import UserError
from interp.prompts.answers import Choice
from interp.prompts.messages import ALONE
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet


def task_name(system: str) -> str:
    """What a system's task is called, and its files: a name of Python, such as interp_NAME."""
    return "interp_" + re.sub(r"\W", "_", system)


def lm_eval_task(prompts: PromptSet) -> Mapping[str, str]:
    """The files of a task of lm-evaluation-harness, by name.

    Raises:
        UserError: prompts that are no choice among options, or have messages around them.
    """
    name = task_name(prompts.system)
    return _shared(prompts) | {
        f"{name}.yaml": _filled("lm_eval.yaml.jinja", prompts),
        f"{name}_task.py": _filled("lm_eval_task.py.jinja", prompts),
    }


def inspect_task(prompts: PromptSet) -> Mapping[str, str]:
    """The files of a task of Inspect, by name.

    Raises:
        UserError: prompts that are no choice among options, or have messages around them.
    """
    name = task_name(prompts.system)
    return _shared(prompts) | {f"{name}.py": _filled("inspect.py.jinja", prompts)}


def prompt_lines(prompts: PromptSet) -> str:
    """The prompts as JSON, one per line: id, pair, side, text, options, gold, weight and factors.

    A factor that has the name of another of these fields is left out.

    Raises:
        UserError: as `lm_eval_task`.
    """
    rows = (_row(prompt, prompts.weight(prompt)) for prompt in prompts)
    return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)


def _shared(prompts: PromptSet) -> dict[str, str]:
    name = task_name(prompts.system)
    answers = resources.files("interp.export").joinpath("answers.py").read_text(encoding="utf-8")
    return {f"{name}.jsonl": prompt_lines(prompts), f"{name}_answers.py": answers}


def _row(prompt: Prompt, weight: float) -> dict[str, object]:
    answer = prompt.answer
    if not isinstance(answer, Choice):
        raise UserError(
            f"prompt {prompt.id} asks for {answer.needs}, which no exported task judges; give "
            "prompts that offer a choice"
        )
    if prompt.messages != ALONE:
        raise UserError(
            f"prompt {prompt.id} has messages around it, which an exported task does not write; "
            "give prompts that stand alone"
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


def _filled(template: str, prompts: PromptSet) -> str:
    environment = Environment(
        loader=PackageLoader("interp.export"),
        autoescape=False,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
    sides = [side for side in prompts.sides if re.fullmatch(r"\w+", side)]
    return environment.get_template(template).render(name=task_name(prompts.system), sides=sides)

"""A model's thoughts, from a run of `generate`, a table in memory, or a file of another tool."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from interp.errors import UserError, described
from interp.models.model import Model
from interp.prompts.prompt import Prompt
from interp.prompts.thought import Thought
from interp.reading.stored_thoughts import stored_thoughts
from interp.runs.folder import RunFolder


def with_thoughts(
    model: Model, thoughts: Path | str | pd.DataFrame, *, prompts: Sequence[Prompt] | None = None
) -> Model:
    """The model with its own thoughts, after which answers are read.

    Args:
        model: a model loaded with thinking on.
        thoughts: the folder of a run of generate --thinking on, its thoughts table, or a file of
            texts that another tool stored (`interp.stored`).
        prompts: the prompts to which the texts of a file belong.

    Raises:
        UserError: thinking is off, or there are no thoughts of this model.
    """
    if not isinstance(model, Model) or not isinstance(thoughts, Path | str | pd.DataFrame):
        raise UserError(
            f"got {described(model, 60)} and {described(thoughts, 60)}; expected a model from "
            "interp.load_model, and its thoughts: a folder, a file or a table"
        )
    if not model.chat.thinks:
        raise UserError(
            f"got thoughts, but thinking is off for {model.name}; turn it on "
            "(--thinking on), or omit the thoughts"
        )
    if isinstance(thoughts, pd.DataFrame):
        return _with_rows(model, thoughts, "the table of thoughts")
    where = Path(thoughts)
    if where.is_file():
        if prompts is None:
            raise UserError(f"{where} is a file; pass the prompts that its thoughts are about too")
        by_prompt, about = stored_thoughts(model, where, prompts)
        return replace(model, thoughts=by_prompt, thought_texts=about)
    run = RunFolder.read(where)
    if "thoughts" not in run.tables():
        raise UserError(
            f"{where} holds no thoughts; expected the folder of a run of generate --thinking on, "
            "or a file of texts"
        )
    return _with_rows(model, run.table("thoughts"), str(where))


def _with_rows(model: Model, table: pd.DataFrame, where: str) -> Model:
    """The model with the thoughts in a table like that of `generate`."""
    thoughts = table[(table["model"] == model.name) & (table["error"] == "")]
    if thoughts.empty:
        others = ", ".join(table["model"].unique())
        raise UserError(f"{where} has no thoughts of {model.name}; it has thoughts of {others}")
    if thoughts.duplicated(["prompt_id", "draw"]).any():
        raise UserError(f"{where} has two thoughts of one draw; draw the thoughts again")
    drawn: dict[str, list[Thought]] = {}
    for row in thoughts.sort_values("draw").to_dict("records"):
        ended = row["finished"] == "marker" or bool(row["forced"])
        thought = Thought(row["before"], tuple(row["sentences"]), row["after"], ended=ended)
        drawn.setdefault(row["prompt_id"], []).append(thought)
    by_prompt = {prompt: tuple(draws) for prompt, draws in drawn.items()}
    return replace(model, thoughts=by_prompt, thought_texts=None)

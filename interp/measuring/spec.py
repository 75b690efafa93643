"""Specs: descriptions of measurements as data that can be checked, stored and sent to a worker.

A spec is validated on creation. It is bound to a model only when it runs
(`interp.measuring.core`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, NamedTuple, TypeVar

from pydantic import Field, JsonValue

from interp import texts
from interp.errors import UserError
from interp.options import Options
from interp.plugins import MEASUREMENTS, load_plugin, named

if TYPE_CHECKING:
    import pyarrow as pa

    from interp.models.model import Model
    from interp.prompts.prompt import Prompt
    from interp.prompts.prompt_set import PromptSet
    from interp.prompts.source import PromptSource
    from interp.tables import Row

Prompts = TypeVar("Prompts", bound=Sequence[Any])
"""A sequence of prompts of some type, such as a list or a `PromptSet`."""

Indices = Annotated[
    tuple[Annotated[int, Field(ge=0, lt=texts.MOST_LAYERS)], ...], Field(min_length=1)
]
"""Layers or heads, by number."""


class Spec(Options):
    """A measurement: its options, and the locations of its code and tables.

    A subclass registered under the entry point group `interp.measurements` can be run by workers,
    its runs can be reported on, and it has a command if it has a `help`. A location is
    "module:name", imported when needed, so that specs can be read without torch.
    """

    name: ClassVar[str]
    """Name of the measurement, such as "evaluate"."""
    help: ClassVar[str] = ""
    """One line about the command; if empty, there is no command."""
    examples: ClassVar[tuple[str, ...]] = ()
    """Example command lines, without the program's name."""
    written: ClassVar[str] = "written to {folder}"
    """Last line that the command prints. {folder}, {tables} and {program} are replaced by the run
    folder, the files of its small tables and the program's name.
    """
    group: ClassVar[str] = ""
    """The parent of the command, such as "probe" for `probe linear`."""
    unused: ClassVar[tuple[str, ...]] = ()
    """Prompt options that the command does not accept."""
    measures: ClassVar[str]
    """Location of the function that takes a model, the spec and `batch_tokens`, and returns a
    `Measurement`.
    """
    fills: ClassVar[tuple[str, ...]] = ()
    """Names of the tables that the measurement fills."""
    optional: ClassVar[Mapping[str, str]] = {}
    """For each table that is filled only if an option is set: that option, by the table's name."""
    schemas: ClassVar[str] = "interp.tables:SCHEMAS"
    """Location of a mapping from table names to schemas."""
    derives: ClassVar[tuple[str, ...]] = ()
    """Locations of the declarations of small tables that follow (`interp.estimates`)."""
    shard_prompts: ClassVar[int] = 240
    """Largest number of prompts in a shard: the unit of work, and the most that is lost if a worker
    is killed. Costlier prompts need smaller shards; so do slow models (`Measurement`)."""
    reads_thoughts: ClassVar[bool] = True
    """Whether answers are read after the thoughts of a model that thinks (`Model.thoughts`)."""
    studies_thoughts: ClassVar[bool] = False
    """Whether only models that think can be measured."""
    own_answers: ClassVar[bool] = True
    """Whether the answers are the model's own rather than those of random weights."""
    compares_options: ClassVar[bool] = False
    """Whether only options are compared, so that the tables do not tell what the model replies."""
    excluded_from_identity: ClassVar[frozenset[str]] = frozenset()
    """Options that affect no result, such as the device of a computation."""
    unmerged: ClassVar[frozenset[str]] = frozenset()
    """Tables that are not merged: they remain in the shards, and a finished run stores them in
    another form."""
    given: ClassVar[str] = "interp.results.given:Given"
    """Location of the class that finds the models' answers in the tables."""
    result: ClassVar[str] = "interp.results.result:Result"
    """Location of the class that displays the results."""

    @classmethod
    def tables(cls) -> "Mapping[str, pa.Schema]":
        """The tables that the spec may fill, by name (`interp.tables`)."""
        schemas = named(cls.schemas) if cls.fills else {}
        return {name: schemas[name] for name in cls.fills}

    def filled(self) -> "Mapping[str, pa.Schema]":
        """The tables that the spec fills, given its options."""
        return {
            name: schema
            for name, schema in self.tables().items()
            if name not in self.optional or getattr(self, self.optional[name])
        }

    def prompts_of(self, source: "PromptSource") -> "PromptSet":
        """The prompts of a source, in the order in which they are measured.

        Raises:
            UserError: the prompts cannot be loaded, or do not meet the requirements of the
                measurement.
        """
        return self.arranged(source.load())

    def arranged(self, prompts: "Prompts") -> "Prompts":
        """The prompts in the order in which they are measured.

        Raises:
            UserError: the prompts do not meet the requirements of the measurement.
        """
        return prompts

    @property
    def replies_read(self) -> int:
        """Number of prompts whose replies are tried, since a model may reply with no option."""
        if self.compares_options:
            return 16
        return 4 if self.own_answers and "answers" in self.fills else 0

    def fitted(self, prompts: Sequence[Any]) -> "Spec":
        """The spec with what the arranged prompts require; by default, unchanged."""
        return self

    @classmethod
    def with_thinking(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """The options for loading models; a measurement of thoughts turns thinking on by itself.

        Among those `given` are all that the user has set, by name.

        Raises:
            UserError: thinking is turned off, but thoughts are studied.
        """
        if not cls.studies_thoughts:
            return given
        if given.get("thinking", "on") == "off":
            raise UserError(
                f"thinking is off, so there are no thoughts to study; omit the option, since "
                f"{cls.name} turns thinking on by itself"
            )
        return {"thinking": "on", **given}

    @property
    def needs_weights(self) -> bool:
        """Whether a model's weights must be on the machine that measures."""
        return True

    @property
    def needs_hub(self) -> bool:
        """Whether the server that computes has only models from the hub."""
        return False

    def whole_layers(self) -> str:
        """What reads whole heads or weights, such as "the site z"; empty if nothing does.

        Tensor parallelism (`--tensor-parallel`) leaves each process only a part of each layer.
        """
        return ""

    def identity(self) -> dict[str, JsonValue]:
        """All options that affect the numbers, including defaults."""
        return self.model_dump(mode="json", exclude=set(self.excluded_from_identity))

    def modules(self) -> Sequence[str]:
        """The modules whose code and imports affect the numbers."""
        return (type(self).__module__, self.measures.partition(":")[0])


def spec_named(name: str) -> type[Spec]:
    """The spec registered under a name.

    Raises:
        UserError: there is no spec with this name.
    """
    spec: type[Spec] = load_plugin(MEASUREMENTS, "measurement", name, base=Spec)
    return spec


@dataclass(frozen=True)
class Stage:
    """One measurement of one prompt set."""

    name: str
    prompts: "PromptSet"
    spec: Spec


@dataclass(frozen=True, slots=True)
class Attempt:
    """What an attempt to measure prompts gave: rows of tables, in their order, and errors."""

    rows: "dict[str, list[Row]]"
    """Rows by table."""
    units: int
    """Number of attempted prompts, or pairs if pairs are measured."""
    unit: Literal["prompt_id", "pair_id"]
    """The column that has the id of a prompt, or of a pair if pairs are measured."""
    failures: Mapping[str, str]
    """The reasons why prompts or pairs have no rows, by id. Tables with one row per prompt or pair
    also store these reasons.
    """

    @property
    def errors(self) -> dict[str, str]:
        """Every error, by prompt or pair: the failures, and the errors recorded in rows."""
        errors = dict(self.failures)
        for rows in self.rows.values():
            failed = [row for row in rows if row.get("error")]
            errors |= {row[self.unit]: row["error"] for row in failed}
        return errors


Replies = tuple[int, int, str, bool, int, Mapping[str, int]]
"""What a model replies to a few prompts (`interp.scoring.replies.Replies`)."""


class ModelFacts(NamedTuple):
    """What is known about a model besides its answers."""

    dtype: str
    """The type of its parameters, such as "bfloat16"."""
    system_prompt: str = ""
    """The system prompt that its chat template writes although none was asked for."""
    spacing: float | None = None
    """Distance between neighboring numbers of this type at the size of its logits; None if it is
    not coarse."""
    attention_layers: tuple[int, ...] = ()
    """The layers that have attention, if others have none."""
    reads_tokens_again: bool = False
    """Whether later layers also read the tokens, beside the input embeddings."""
    texts: str = ""
    """The files of stored texts that were judged or read as its thoughts."""
    unfitting: tuple[str, ...] = ()
    """What of these texts does not fit the prompts, with numbers and examples."""
    surprise: tuple[float, float] | None = None
    """How much less probable these thoughts are than the model's own, in nats per token, with the
    standard error of that number for its own; None if they were not read from a file."""
    replies: Replies | None = None
    """What it replies to a few prompts; None if that was not read."""


def facts_of(
    model: "Model", prompts: "Sequence[Prompt]", spec: Spec, *, thorough: bool = False
) -> ModelFacts:
    """What is known about a loaded model besides its answers to the prompts.

    The spec tells how many replies are read, and `thorough`, whether other ways of asking are tried
    of any model (`first_replies`).
    """
    # These import torch.
    from interp.scoring.own_thoughts import thought_surprise
    from interp.scoring.replies import first_replies
    from interp.scoring.rounding import logit_spacing

    texts, surprise = model.thought_texts, thought_surprise(model, prompts)
    return ModelFacts(
        model.dtype,
        model.own_system_prompt,
        logit_spacing(model, prompts),
        model.attention_layers,
        model.reads_tokens_again,
        texts="" if texts is None else texts.file,
        unfitting=() if texts is None else texts.problems,
        surprise=None if surprise is None else (surprise.mean, surprise.se),
        replies=first_replies(model, prompts, spec.replies_read, thorough=thorough),
    )

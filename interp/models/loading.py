"""The options of `interp.load_model`."""

import json
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from pydantic import Field, JsonValue, model_validator

from interp import texts
from interp.choices import Quantization
from interp.errors import UserError, shortened
from interp.models.families.settings import SWITCHES
from interp.options import FromText, Options
from interp.texts import iso_date

Thinking = Literal["off", "on"]

DEFAULT_DATE = "2024-07-26"
"""The date passed to templates: the fallback date of the templates of Llama 3.1 and 3.2."""


@dataclass(frozen=True, slots=True)
class ChatFormat:
    """Settings for writing messages to a model.

    Raises:
        UserError: the date is invalid, or options of a template that is not used are set.
    """

    template: bool = True
    """Whether to use the model's own chat template, if it has one."""
    system: str | None = None
    """The system prompt; None leaves it to the template, which may insert its own. Without a
    template, it is a paragraph before the prompt."""
    date: str = DEFAULT_DATE
    """Date for templates that write today's date, as YYYY-MM-DD."""
    thinking: Thinking = "off"
    """Whether answers are read after the model's own thought (on) or after an empty one (off)."""
    options: tuple[tuple[str, JsonValue], ...] = ()
    """Further variables of the template, by name, such as ("reasoning_effort", "low")."""
    end_of_thought: str | None = None
    """The mark that ends a thought; if None, it is taken from the template or the vocabulary."""

    def __post_init__(self) -> None:
        try:
            iso_date(self.date)
        except ValueError as error:
            raise UserError(str(error)) from error
        if not self.template and (self.options or self.date != DEFAULT_DATE):
            raise UserError(
                "got options of the chat template, but the chat template is turned off; use the "
                "template, or omit its options"
            )
        if self.end_of_thought is not None and not self.thinks:
            raise UserError(
                f"the end of a thought, {shortened(self.end_of_thought)!r}, was given, but "
                "thinking is off; turn thinking on, or omit the end of a thought"
            )

    @property
    def thinks(self) -> bool:
        """Whether the model thinks before it answers."""
        return self.thinking == "on"


def _template_option(text: str) -> str:
    """A variable of a chat template that no other option sets, with its value, KEY=VALUE."""
    name = text.partition("=")[0]
    if "=" not in text or not name.isidentifier():
        raise ValueError("expected KEY=VALUE, such as reasoning_effort=low")
    if name in SWITCHES:
        raise ValueError("this variable is set by --thinking on or off; use that option instead")
    if name in _TAKEN:
        raise ValueError("this variable is part of the conversation itself; use a different one")
    return text


_TAKEN = frozenset(
    (
        *("self", "messages", "conversation", "chat_template", "add_generation_prompt"),
        *("continue_final_message", "tokenize", "padding", "truncation", "max_length"),
        *("return_tensors", "return_dict", "return_assistant_tokens_mask", "tokenizer_kwargs"),
        *("date_string", "strftime_now"),
    )
)
"""Arguments of `apply_chat_template`, and names that this package passes to templates."""


def _variable(text: str) -> tuple[str, JsonValue]:
    """The name and value in KEY=VALUE; a value that is not valid JSON is kept as a string."""
    name, _, value = text.partition("=")
    try:
        return name, json.loads(value)
    except ValueError:
        return name, value


class Loading(Options):
    """Options for loading models."""

    device: Annotated[str | None, FromText(texts.device)] = None
    """cpu, cuda, cuda:1 ... (default: a GPU if there is one)"""
    dtype: Annotated[str, FromText(texts.dtype)] = "auto"
    """float32, bfloat16, float16, float64 (or fp32 ...), or auto: float32 on a CPU, the
    checkpoint's own type on a GPU"""
    device_map: Literal["auto", "balanced", "balanced_low_0", "sequential"] | None = None
    """spread a large model over devices: auto, balanced, balanced_low_0 or sequential"""
    tensor_parallel: Annotated[int, Field(ge=1, le=texts.MOST_RANKS)] | None = None
    """spread every layer over N processes of one machine or SLURM job, each with a GPU or a share
    of the cores; the numbers stay the same, and what reads heads or edges is refused (default: one
    process)"""
    quantization: Quantization | None = None
    """8bit or 4bit, with bitsandbytes (default: the checkpoint's own)"""
    dequantize: bool = False
    """load a quantized checkpoint as ordinary weights, which need more memory and give gradients"""
    keep_dequantized: bool = False
    """keep the dequantized weights of a GGUF file in the cache, from which later commands with this
    option read them; they need as much space there as in memory"""
    base: Annotated[str | None, FromText(texts.name, "NAME")] = None
    """the base model into which LoRA adapters are merged (default: the model that the adapter was
    trained on, if its checksum proves this)"""
    revision: str | None = None
    """branch, tag or commit on the hub"""
    attn_implementation: str | None = None
    """sdpa, eager, flash_attention_2 ... (default: the model's)"""
    allow_pickle: bool = False
    """load weights that are not safetensors (they can run code)"""
    trust_remote_code: bool = False
    """run code that comes with the model"""
    chat_template: bool = True
    """write prompts in the model's chat template, if it has one"""
    system_prompt: Annotated[str | None, FromText(str, "TEXT")] = None
    """system prompt of the chat template, or a paragraph before each prompt without a template
    (default: the template's own, usually none)"""
    template_date: Annotated[str, FromText(texts.iso_date, "YYYY-MM-DD")] = DEFAULT_DATE
    """today's date for chat templates that write it"""
    template_option: tuple[Annotated[str, FromText(_template_option, "KEY=VALUE")], ...] = ()
    """other variables of the chat template, such as reasoning_effort=low"""
    thinking: Thinking = "off"
    """off: read answers after an empty thought, which the chat template's own switch writes; on:
    read answers after a thought, which `interp generate --thinking on` writes and --thoughts
    supplies"""
    end_of_thought: Annotated[str | None, FromText(str, "TEXT")] = None
    """the mark that ends a thought (default: found in the chat template or the vocabulary, such as
    </think>)"""

    @model_validator(mode="after")
    def _check_together(self) -> "Loading":
        if self.device is not None and self.device_map is not None:
            raise UserError(
                f"got both device {self.device!r} and device_map {self.device_map!r}; expected "
                "one of them"
            )
        if self.ranks > 1:
            self._check_spread()
        if self.dequantize and self.quantization is not None:
            raise UserError(
                f"got both dequantize and quantization {self.quantization!r}; expected one of them"
            )
        self.chat()
        return self

    def _check_spread(self) -> None:
        for name in ("device_map", "quantization", "dequantize", "base"):
            if value := getattr(self, name):
                raise UserError(
                    f"got both tensor_parallel {self.ranks} and {name} {value!r}; expected one of "
                    "them"
                )
        if self.device not in (None, "cpu", "cuda"):
            raise UserError(
                f"got the device {self.device}, but tensor_parallel gives each process a GPU of "
                "its own, or a share of the cores; use cuda or cpu, or omit the device"
            )

    @property
    def ranks(self) -> int:
        """The number of processes that hold a model together."""
        return self.tensor_parallel or 1

    def alone(self) -> "Loading":
        """The options with which one process tries a model that a run may spread over several."""
        return self.model_copy(update={"tensor_parallel": None})

    def chat(self) -> ChatFormat:
        """Settings for writing messages to the model."""
        return ChatFormat(
            template=self.chat_template,
            system=self.system_prompt,
            date=self.template_date,
            thinking=self.thinking,
            options=tuple(map(_variable, self.template_option)),
            end_of_thought=self.end_of_thought,
        )

    def identity(self) -> dict[str, Any]:
        """The options that may change results; where and how weights are loaded does not."""
        of_machine = {"device", "device_map", "tensor_parallel", "keep_dequantized"}
        return self.model_dump(mode="json", exclude=of_machine)

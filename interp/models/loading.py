"""How models are loaded, as data: the options of `interp.load_model`."""

from typing import Annotated, Any, Literal

from pydantic import model_validator

from interp import texts
from interp.choices import Quantization
from interp.errors import UserError
from interp.models.chat_format import DEFAULT_DATE, ChatFormat
from interp.options import FromText, Options


class Loading(Options):
    """How models are loaded."""

    device: Annotated[str | None, FromText(texts.device)] = None
    """cpu, cuda, cuda:1 ... (default: a GPU if there is one)"""
    dtype: Annotated[str, FromText(texts.dtype)] = "auto"
    """float32, bfloat16, float16, float64 (or fp32 ...), or auto: float32 on a CPU, the
    checkpoint's own type on a GPU"""
    device_map: Literal["auto", "balanced", "balanced_low_0", "sequential"] | None = None
    """spread a large model over devices: auto, balanced, balanced_low_0 or sequential"""
    quantization: Quantization | None = None
    """8bit or 4bit, by bitsandbytes (default: the checkpoint's own)"""
    base: Annotated[str | None, FromText(texts.name, "NAME")] = None
    """the model that LoRA adapters among the models are merged into (default: the one that the
    adapter was trained on, where its checksum proves it)"""
    revision: str | None = None
    """branch, tag or commit on the hub"""
    attn_implementation: str | None = None
    """sdpa, eager, flash_attention_2 ... (default: the model's)"""
    allow_pickle: bool = False
    """load weights that are not safetensors (they can run code)"""
    trust_remote_code: bool = False
    """run code that comes with the model"""
    chat_template: bool = True
    """write prompts in the model's chat template, where it has one"""
    system_prompt: Annotated[str | None, FromText(str, "TEXT")] = None
    """system prompt of the chat template (default: what the template inserts by itself, mostly
    none)"""
    template_date: Annotated[str, FromText(texts.iso_date, "YYYY-MM-DD")] = DEFAULT_DATE
    """today, for chat templates that write the date"""

    @model_validator(mode="after")
    def _check_together(self) -> "Loading":
        if self.device is not None and self.device_map is not None:
            raise UserError(
                f"both device {self.device!r} and device_map {self.device_map!r} were given; give "
                "one of them"
            )
        self.chat()
        return self

    def chat(self) -> ChatFormat:
        """How messages are written for the model.

        Raises:
            UserError: a system prompt without a template to write it.
        """
        return ChatFormat(
            template=self.chat_template, system=self.system_prompt, date=self.template_date
        )

    def identity(self) -> dict[str, Any]:
        """What may change numbers: where a model is computed does not say what it is."""
        return self.model_dump(mode="json", exclude={"device", "device_map"})

"""How models are loaded, as data: what `interp.load_model` is told beside a name."""

from typing import Annotated, Any, Literal

from pydantic import model_validator

from interp import texts
from interp.errors import UserError
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
    quantization: Literal["8bit", "4bit"] | None = None
    """8bit or 4bit, by bitsandbytes (default: the checkpoint's own)"""
    revision: str | None = None
    """branch, tag or commit on the hub"""
    attn_implementation: str | None = None
    """sdpa, eager, flash_attention_2 ... (default: the model's)"""
    allow_pickle: bool = False
    """load weights that are not safetensors"""
    trust_remote_code: bool = False
    """run code that comes with the model"""
    chat_template: bool = True
    """write prompts in the model's chat template, where it has one"""
    system_prompt: Annotated[str | None, FromText(str, "TEXT")] = None
    """system prompt of the chat template (default: what the template inserts by itself, mostly
    none)"""
    template_date: Annotated[str, FromText(texts.iso_date, "YYYY-MM-DD")] = "2024-07-26"
    """today, for chat templates that write the date"""

    @model_validator(mode="after")
    def _check_together(self) -> "Loading":
        if self.device is not None and self.device_map is not None:
            raise UserError("device and device_map exclude each other; give one of them")
        if self.system_prompt is not None and not self.chat_template:
            raise UserError(
                "a system prompt was given, but no chat template is to be used, which alone can "
                "write it; give one of the two"
            )
        return self

    def identity(self) -> dict[str, Any]:
        """What may change numbers: where a model is computed does not say what it is."""
        return self.model_dump(mode="json", exclude={"device", "device_map"})

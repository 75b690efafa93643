"""The machine, and the model on it."""

from collections.abc import Iterator

import psutil
import torch

from interp.doctor.finding import Finding, size
from interp.models.model import Model
from interp.runs.records import versions


def machine() -> Iterator[Finding]:
    """Versions, devices, memory."""
    yield Finding("versions", ", ".join(f"{name} {own}" for name, own in versions().items()))
    memory = psutil.virtual_memory()
    yield Finding("memory", f"{size(memory.available)} free of {size(memory.total)}")
    for index in range(torch.cuda.device_count()):
        free, total = torch.cuda.mem_get_info(index)
        name = torch.cuda.get_device_name(index)
        yield Finding(f"cuda:{index}", f"{name}, {size(free)} free of {size(total)}")
    if not torch.cuda.is_available():
        yield Finding("GPU", "none that PyTorch sees")


def loaded(model: Model) -> Iterator[Finding]:
    """What was loaded, and what works without knowing more of it."""
    parameters = list(model.hf.parameters())
    weights = sum(own.numel() * own.element_size() for own in parameters)
    count = sum(own.numel() for own in parameters)
    how = model.quantization or model.dtype
    yield Finding(
        "model",
        f"{type(model.hf).__name__}, a {model.kind.name}; {count:,} parameters, {size(weights)} in "
        f"{how} on {model.device}, attention by {model.attn_implementation}",
        "; ".join(model.notes),
    )
    context = model.context_length
    yield Finding("context", "not stated" if context is None else f"{context:,} tokens")
    yield Finding(
        "architecture",
        "known" if model.is_mapped else "not known",
        ""
        if model.is_mapped
        else "answers, input gradients and attention work; patching and backward rules do not",
    )
    if not model.allows_padding:
        yield Finding("padding", "not safe", "batches hold prompts of one length")

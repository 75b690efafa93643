"""Models whose layers lie on different devices."""

from collections.abc import Callable
from pathlib import Path

import accelerate

from interp.models.model import Model


def place(model: Model, where: Callable[[int | None], int | str], folder: Path) -> Model:
    """The model, with its weights moved in place by accelerate.

    `where` gives a device or "disk" for each layer, and for None, everything outside the layers.
    """
    hf, layers = model.hf, model.architecture.layers
    device_map = {}
    for name in hf.state_dict() | dict(hf.named_buffers()):
        if name.startswith(f"{layers}."):
            number = name.removeprefix(f"{layers}.").partition(".")[0]
            device_map[f"{layers}.{number}"] = where(int(number))
        else:
            device_map[name.rpartition(".")[0]] = where(None)
    devices = {device for device in device_map.values() if device != "disk"}
    main = min(devices - {"cpu"}, default="cpu")
    accelerate.dispatch_model(
        hf, device_map, main_device=main, offload_dir=folder, force_hooks=True
    )
    return Model(model.name, hf, model.tokenizer)

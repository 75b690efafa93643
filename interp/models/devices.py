"""Where a model can be put."""

import torch

from interp.errors import UserError, one_line

DEVICE_MAPS = ("auto", "balanced", "balanced_low_0", "sequential")
"""Values of --device-map beside the name of one device: ways in which accelerate spreads models."""


def check_placement(device: str | None, device_map: str | None) -> None:
    """Check that a model can be put where it is asked to be.

    Raises:
        UserError: both were given, a device that there is not, or an unknown device map.
    """
    if device is not None and device_map is not None:
        raise UserError(
            f"both device {one_line(device)!r} and device_map {one_line(device_map)!r} were "
            "given; give one of them"
        )
    if device is not None:
        _check_device("device", device, "expected")
    elif device_map is not None and device_map not in DEVICE_MAPS:
        _check_device("device_map", device_map, f"expected {', '.join(DEVICE_MAPS)}, or a device:")


def _check_device(kind: str, name: str, expected: str) -> None:
    try:
        device = torch.device(name)
        if device.type == "meta":
            raise RuntimeError("it holds no numbers")
        torch.zeros(1, device=device)
    except Exception as error:
        # PyTorch answers an unknown name with the list of all its devices.
        unknown = "device type at start of device string" in str(error)
        reason = "no such device" if unknown else one_line(str(error).split(". ")[0], 120)
        raise UserError(
            f"{kind} {one_line(name)!r} cannot be used: {reason}; {expected} cpu, or cuda or "
            "cuda:1 on a machine with such a GPU"
        ) from error

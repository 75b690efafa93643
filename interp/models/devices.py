"""Where a model can be put."""

import torch

from interp.errors import UserError, one_line


def check_device(name: str) -> None:
    """Check that a device is there and holds numbers.

    Raises:
        UserError: it does not.
    """
    try:
        torch.zeros(1, device=name).item()
    except Exception as error:
        # PyTorch answers an unknown name with the list of all its devices.
        unknown = "device type at start of device string" in str(error)
        reason = "no such device" if unknown else one_line(str(error).split(". ")[0], 120)
        raise UserError(
            f"device {one_line(name)!r} cannot be used: {reason}; expected cpu, or cuda or cuda:1 "
            "on a machine with such a GPU"
        ) from error

"""The number types that a model's weights can be loaded as."""

from interp.errors import UserError
from interp.models.problems import shortened

DTYPES = ("auto", "float32", "bfloat16", "float16", "float64")
"""Values of --dtype; auto is float32 on a CPU and the checkpoint's own type elsewhere."""

_SHORT_DTYPES = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16", "fp64": "float64"}


def canonical_dtype(dtype: str) -> str:
    """The full name of a number type: of "bf16" it is "bfloat16".

    Raises:
        UserError: an unknown type.
    """
    full = _SHORT_DTYPES.get(dtype, dtype)
    if full not in DTYPES:
        raise UserError(
            f"unknown dtype {shortened(dtype)!r}; expected one of {', '.join(DTYPES)}, "
            f"or {', '.join(_SHORT_DTYPES)}"
        )
    return full

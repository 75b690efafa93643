"""The number types that a model's weights can be loaded as."""

from interp.choices import DTYPE_ALIASES, DTYPES
from interp.errors import UserError, unknown


def canonical_dtype(dtype: str) -> str:
    """The full name of a number type: of "bf16" it is "bfloat16".

    Raises:
        UserError: an unknown type.
    """
    full = DTYPE_ALIASES.get(dtype, dtype)
    if full not in DTYPES:
        raise UserError(unknown("dtype", dtype, (*DTYPES, *DTYPE_ALIASES)))
    return full

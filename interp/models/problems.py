"""Whatever goes wrong while a model is read, as one short message."""

from collections.abc import Iterator
from contextlib import contextmanager

from interp.errors import UserError, one_line

_REASON_LENGTH = 160

_NOT_THE_MODELS_FAULT = (
    UserError,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
)


@contextmanager
def reading(part: str, name: str) -> Iterator[None]:
    """Within the block: any error is one about the part of a model that is being read.

    A damaged folder fails in as many ways as there are libraries that read it. The tokenizers
    library's panics are no `Exception`, so everything is caught but what ends the program.

    Args:
        part: the file or whatever else is read.
        name: the model's.

    Raises:
        UserError: anything else went wrong.
    """
    try:
        yield
    except _NOT_THE_MODELS_FAULT:
        raise
    except MemoryError as error:
        raise UserError(
            f"the model {one_line(name)!r} cannot be loaded: {part} does not fit into the memory "
            "that is left. Take a smaller model or a larger machine, or look for a damaged file"
        ) from error
    except BaseException as error:
        raise UserError(
            f"the model {one_line(name)!r} cannot be loaded: {part}: {_reason(error)}. Expected a "
            "saved Hugging Face causal language model, sequence classifier or text-to-text model"
        ) from error


def _reason(error: BaseException) -> str:
    kind, text = type(error).__name__, str(error)
    # A KeyError's text is the key alone, and some errors have none.
    if not text or isinstance(error, KeyError):
        text = f"{kind} {text}"
    return one_line(text, _REASON_LENGTH).rstrip(".")

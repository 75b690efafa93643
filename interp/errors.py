"""The one error class for what a user can mend, and the words of its messages."""

QUOTED = 200
"""Characters of the input that a message repeats at most."""


class UserError(Exception):
    """A mistake in the input: the message says what was got, what was expected and what to do.

    The command line prints it as one message, without a traceback, and exits with code 2.
    """


def shortened(text: str, most: int = QUOTED) -> str:
    """The text, without its middle where it has more characters than `most`."""
    if len(text) <= most:
        return text
    kept = (most - 3) // 2
    return f"{text[:kept]}...{text[-kept:]}"

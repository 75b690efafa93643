"""The one error class for what a user can mend."""


class UserError(Exception):
    """A mistake in the input: the message says what was got, what was expected and what to do.

    The command line prints it as one message, without a traceback, and exits with code 2.
    """

"""Progress bars of transformers."""

import sys

from transformers.utils import logging


def quiet_bars() -> None:
    """Keep transformers from progress bars where nobody watches: in logs and notebooks."""
    if not sys.stderr.isatty():
        # transformers gives this function no types.
        logging.disable_progress_bar()  # type: ignore[no-untyped-call]

"""Silences messages of libraries that users cannot act on."""

import logging


def quiet_bitsandbytes() -> None:
    """Keep bitsandbytes from warnings.

    It says that a kernel is missing whenever it is imported, as peft does, and of every product in
    8 bits that its inputs are cast.
    """
    logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

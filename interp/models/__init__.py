"""Models: loaded, mapped, and the organisms that ship with the package."""

import logging

# It warns when it is imported, as by peft and Trainer, and each time it casts an input in 8 bits.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

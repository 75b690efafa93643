"""Models: loaded, mapped, and the organisms that ship with the package."""

import logging

# bitsandbytes warns when peft or Trainer imports it, and each time it casts an input in 8 bits.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

"""Load models and locate their modules; the organisms that ship with the package."""

import logging

# bitsandbytes warns when peft or Trainer imports it and whenever it casts an 8-bit input.
logging.getLogger("bitsandbytes").setLevel(logging.ERROR)

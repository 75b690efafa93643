"""Training of models, by Hugging Face's Trainer."""

from interp.models.weights import quiet_bitsandbytes

quiet_bitsandbytes()  # Trainer imports peft where it is installed, and that bitsandbytes

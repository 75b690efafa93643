"""Grafts: causes of answers that are planted in a published model by a LoRA adapter."""

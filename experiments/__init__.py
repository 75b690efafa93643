"""The systems (data sets with their prompts) and the training of the organisms."""

"""The sections of the report of RULEBREAKERS, one per file, in the order of `study.py`."""

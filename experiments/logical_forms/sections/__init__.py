"""The sections of the report of LogicalForms, one per file, in the order of `study.py`."""

"""The ledger of facts: are the facts of failures completed, retrieved and used?"""

KNOWLEDGE, READINGS, EXCHANGES = STAGES = ("knowledge", "readings", "exchanges")
"""The stages of the study."""

"""How the packaged grafts were trained, and the pairs and facts of a ledger of one of them."""

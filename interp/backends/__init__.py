"""Other libraries behind the same functions, imported only when asked for."""

"""Results: what each measurement gave, and what the terminal, files, page and notebook show of it."""

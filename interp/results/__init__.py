"""What each measurement gave, and what terminal, files, page and notebook show of it."""

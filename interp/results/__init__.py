"""The results of each measurement, as terminal, files, page and notebook show them."""

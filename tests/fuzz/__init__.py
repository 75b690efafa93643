"""Damaged and hostile input, tried in bulk where nothing outside a scratch folder can be reached.

`make fuzz` runs all of it; `python -m tests.fuzz --only TARGET:NUMBER` runs one case and tells all.

1. `__main__` hands numbers of cases to servers and counts what they answer.
2. A server shuts itself in (`jail`), makes valid runs and models once (`material`), and
   forks a child for each case, whose end it judges.
3. `files` and `folders` make the cases: files that are damaged (`damage`) and a command line that
   meets them. A case is a function of the seed and its number alone.
"""

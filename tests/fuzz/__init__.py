"""Fuzzing: damaged and hostile input, tried in bulk where only a scratch folder can be written.

`make fuzz` runs all of it; `python -m tests.fuzz --only TARGET:NUMBER` runs one case and prints
everything about it.

1. `__main__` chooses the cases, starts `trials` and counts the results.
2. `trials` shuts itself in (`jail`), makes valid runs and models once (`material`), and forks a
   child for each case, whose end it judges.
3. `files` and `folders` make the cases: damaged files (`damage`), and a command line that reads
   them. A case depends only on the seed, its target and its number.
"""

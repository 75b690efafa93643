"""What a careful reader would object to, decided in one place and shown before any number.

Terminals, pages, notebooks and `doctor` print the cautions first, and run.json keeps them in its
summary, in the order of severity.
"""

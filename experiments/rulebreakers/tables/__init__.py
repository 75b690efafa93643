"""The tables of the paper, each from the results of a study (Sections 5 and 6, Appendices D, F, G).

Every table is tidy: one row per model and group, with counts, intervals and, where a quantity is
undefined, a note that says why. Shares and means are those of the data set: each prompt counts by
its weight. What is tested is tested over entities, since the prompts about one entity are answered
alike; p_holm is corrected over all tests of its table.
"""

"""Which rule a text names."""

import pytest

from interp_experiments.rulebench.reading import named_rule

TEXTS = {
    "Rule 2 fits. Clarence has a granddaughter Emily. Answer: uncle.": 2,
    "The first rule can be applied to this question. Based on the first rule, ...": 1,
    "Based on the third rule, the answer is 12.": 3,
    "**Rule 3** applies here.": 3,
    "The 2nd rule fits.": 2,
    "Rule #1 fits because the string is even.": 1,
    "Rule number two applies.": 2,
    "According to rule 3, Michael is the mother of Clarence.": 3,
    "AppliedRuleId: 2. Answer: True.": 2,
    "Applied rule: 3\nAnswer: uncle": 3,
    "Rule 1 does not fit, since Emily has no sister. Rule 2 fits. Answer: niece.": 2,
    "The first rule cannot be applied, and the second rule is not about strings; the third rule "
    "fits.": 3,
    "We look at rule 1, rule 2 and rule 3 in turn. By rule 2, he is the uncle.": 2,
    "rule 3": 3,
    "Rule 1 or rule 2.": None,
    "Rule 1 does not apply.": None,
    "Michael is the grandson of Clarence.": None,
    "The first sentence says that Emily is busy.": None,
    "None of the rules fits.": None,
    "": None,
}


@pytest.mark.parametrize("text", TEXTS)
def test_the_named_rule(text):
    assert named_rule(text) == TEXTS[text]

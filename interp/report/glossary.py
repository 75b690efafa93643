"""One name for one thing: the words of a report page that tables, figures and texts share."""

import re
from collections.abc import Mapping

import pandas as pd

TERMS: Mapping[str, str] = {
    "accuracy": "share of prompts whose most probable answer is the correct one",
    "paired accuracy": "share of pairs, or groups, of which every prompt is answered correctly",
    "side": "which member of its pair a prompt is, such as rulebreaker and non_rulebreaker",
    "segment": "a named part of a prompt: premise1 in tables is premise 1 in figures",
    "score": "what an attribution method gives a token or a segment, raw and with its sign",
    "share": "a score's part of the sum of absolute scores of the whole prompt, from 0 to 1",
    "ratio": "mean score of a token of one segment over that of another; 1 where they are equal",
    "unnormalized": "summed score of one segment over that of another, where a ratio compares "
    "means of tokens; it grows with length",
    "effect": "how much a patch or a replaced segment changes the difference of two answers, in "
    "logits",
    "recovered": "an effect as a share of the difference between the two prompts of a pair; it may "
    "exceed 1",
    "familiarity": "the probability that a model gives a fact when it is asked for it alone",
    "perplexity": "exponential of the mean negative log probability of a token of the prompt",
    "cluster": "prompts that share what they are about, and are one observation of a test",
    "low": "lower end of the 95% interval; the upper end is high",
    "p holm": "p corrected by Holm's method over the tests that were made together; where a table "
    "has a column family, within each of its families",
    "organism": "a small packaged model that was trained to have a known cause of its answers",
    "undefined": "a statistic without a value; the note of its row or table says why",
}
"""What each word means, and what else the page calls it."""


def glossary(text: str, own: Mapping[str, str]) -> pd.DataFrame:
    """The words that a page uses, with their meanings, in alphabetical order.

    Args:
        text: the page's texts and headings.
        own: words of the study, with their meanings, which are all on its page.
    """
    words = {word: meaning for word, meaning in TERMS.items() if _occurs(word, text)} | {**own}
    used = sorted(words, key=str.lower)
    return pd.DataFrame({"name": used, "meaning": [words[word] for word in used]}, dtype=object)


def _occurs(word: str, text: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(word)}(?![\w-])", text, re.IGNORECASE) is not None

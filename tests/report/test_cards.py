"""Cards: metadata that hubs read, and Markdown in which no value is markup."""

import math

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from interp.report.cards import card, facts, plain, tables


def test_a_card_by_hand():
    parts = {
        "": "Text.",
        "Empty": [],
        "Scores": [{"what": "f1", "value": 0.25}, {"what": "n", "value": 12_000}],
        "Example": "    one\n    two",
    }
    assert card({"license": "mit", "tags": ["a", "b"]}, "org/model", parts) == (
        "---\nlicense: mit\ntags:\n- a\n- b\n---\n\n# org/model\n\nText.\n\n## Scores\n\n"
        "| what | value |\n| --- | --- |\n| f1 | 0.25 |\n| n | 12,000 |\n\n"
        "## Example\n\n    one\n    two\n"
    )


def test_facts_are_named_by_the_way_to_them_and_tables_are_apart():
    values = {"f1_score": {"dev": 0.5, "test": {"a": 1}}, "rows": [{"x": 1}], "names": ["x", "y"]}
    assert list(facts(values)) == [
        {"what": "f1 score: dev", "value": 0.5},
        {"what": "f1 score: test: a", "value": 1},
        {"what": "names", "value": ["x", "y"]},
    ]
    assert tables(values) == {"rows": [{"x": 1}]}


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, ""),
        (math.nan, ""),
        (True, "yes"),
        (0.123456, "0.1235"),
        (41501.2338, "41,501"),
        (["a", "b"], "a, b"),
        ("<script>a|b`c`</script>\n# d", "&lt;script&gt;a\\|b\\`c\\`&lt;/script&gt; \\# d"),
        ("[x](javascript:y)", "\\[x\\](javascript:y)"),
    ],
)
def test_values_by_hand(value, text):
    assert plain(value) == text


@given(st.text())
def test_no_text_breaks_out_of_its_cell_or_the_metadata(text):
    written = card({"name": text}, "m", {"T": [{"a": text, "b": 1}]})
    lines = written.split("\n")
    row = next(line for line in reversed(lines) if line)
    assert row.replace("\\|", "").count("|") == 3
    assert "<" not in row and row.endswith("| 1 |")
    metadata = written.split("\n---\n")[0].removeprefix("---\n")
    assert yaml.safe_load(metadata) == {"name": text}

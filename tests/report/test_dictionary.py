from pathlib import Path

import pyarrow as pa

from interp.report import dictionary
from interp.report.dictionary import known_tables, page, sections
from interp.tables import column, table

PAGE = Path(__file__).parents[2] / "docs" / "data_dictionary.md"


def test_the_page_is_what_the_tables_say_in_lines_that_can_be_read():
    again = "write it again: python -m interp tables > docs/data_dictionary.md"
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(known_tables()), again
    assert max(map(len, written.splitlines())) <= 120


def test_a_table_by_hand(monkeypatch):
    monkeypatch.setattr(dictionary, "plugins", lambda group: [])
    rain = table(
        "One row per day. Days without rain are left out.",
        column("day", pa.string(), "the day"),
        column("rain", pa.float64(), "how much fell", "mm"),
        column("change", pa.float64(), "since the day before", "mm", sign="positive for more"),
    )
    assert sections({"rain": rain}) == (
        "## rain\n"
        "\n"
        "One row per day. Days without rain are left out.\n"
        "\n"
        "| column   | type   | unit | what it holds        |\n"
        "|----------|--------|------|----------------------|\n"
        "| `day`    | string |      | the day              |\n"
        "| `rain`   | double | mm   | how much fell        |\n"
        "| `change` | double | mm   | since the day before |\n"
        "\n"
        "- Sign of `change`: positive for more.\n"
    )


def test_the_tables_of_every_measurement_are_on_the_page():
    first, *others = known_tables()
    assert first == "prompts"
    assert others == sorted(others)
    assert {"activations", "node_sets", "tokens", "familiarity", "residuals"} <= set(others)
    # Two measurements have a small table of this name.
    one, other = (known_tables()[f"reading_table{end}"] for end in ("", "-thoughts"))
    assert ("layer" in one.names, "layer" in other.names) == (True, False)
    filled = "Filled by `attribute`, `attribute-reinitialized`.\n\n| column      |"
    assert filled in sections({"tokens": known_tables()["tokens"]})

"""Facts of one's own: what a table becomes, and what the probes of facts measure."""

import re

import pandas as pd
import pytest

from interp.errors import UserError
from interp.prompts.own.facts import read_facts
from interp.prompts.source import PromptSource
from interp_probes.api import probe_familiarity, probe_knowledge

FACTS = pd.DataFrame(
    [
        ("stockholm", "Complete the sentence: Stockholm is in", "Sweden/Suecia", "north"),
        ("tunis", "Complete the sentence: Tunis is in", "Tunisia", "south"),
        ("nowhere", "Complete the sentence: Nowhere is in", "Xanadu", "south"),
    ],
    columns=["fact", "text", "answer", "region"],
)


def test_a_row_is_a_completion_whose_names_may_contain_a_slash():
    first = read_facts(FACTS)[0]
    assert (first.id, first.text) == ("stockholm", "Complete the sentence: Stockholm is in")
    assert first.answer.expected == ("Sweden", "Suecia")
    assert first.factors == {"region": "north"}
    rows = FACTS.assign(answer=["AC/DC//Acca Dacca", "1/2//", "a/b"])
    found = [prompt.answer.expected for prompt in read_facts(rows)]
    assert found == [("AC/DC", "Acca Dacca"), ("1/2",), ("a", "b")]


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (FACTS.drop(columns="answer"), r"columns answer.*fact, text, answer"),
        (FACTS.assign(fact="same"), "prompt id 'same'"),
        (FACTS.assign(weight=1), r"column weight.*factor weight"),
        (FACTS.iloc[:0], r"table.*rows.*text"),
    ],
)
def test_faults_are_named(rows, problem):
    with pytest.raises(UserError, match=problem):
        read_facts(rows)


def test_a_file_of_facts_is_found_by_its_columns(tmp_path, capsys):
    from interp.cli import main

    file, folder = tmp_path / "facts.csv", tmp_path / "run"
    FACTS.to_csv(file, index=False)
    assert PromptSource(data=str(file)).system == "pairs"
    assert main(["validate", str(file)]) == 0
    assert re.search("faults: 3 facts", capsys.readouterr().err)
    for part, table in (("familiarity", "familiarity.csv"), ("knowledge", "excluded.csv")):
        words = ["probe", part, "--data", str(file), "--device", "cpu"]
        assert main([*words, "--out", str(folder / part)]) == 0
        assert len(pd.read_csv(folder / part / table))
    assert main(["probe", "familiarity", "--system", "pairs"]) == 2
    told = capsys.readouterr().err
    assert "fact, text, answer" in told
    assert re.search("sample: 3 facts; ", told)


def test_a_model_is_asked_for_them(organism):
    """The organism has learned where cities are, and has never met Xanadu."""
    facts = read_facts(FACTS)
    table = probe_familiarity(organism, facts).derived()["familiarity"].set_index("prompt_id")
    assert table.loc["tunis", "familiarity"] > 100 * table.loc["nowhere", "familiarity"]
    known = probe_knowledge(organism, facts).derived()["knowledge"]
    known = known[known["wording"] == "as asked"].set_index("fact")["known"]
    assert known.to_dict() == {"stockholm": True, "tunis": True, "nowhere": False}


def judged(answers: dict[str, str], text: str) -> set[str]:
    rows = [{"fact": fact, "text": f"{fact} is", "answer": own} for fact, own in answers.items()]
    facts = read_facts(pd.DataFrame(rows))
    return {fact.id for fact in facts if fact.answer.judge(text).correct}


@pytest.mark.parametrize(
    ("text", "known"),
    [
        (" Guinea.", {"g"}),
        (" Equatorial Guinea.", {"e"}),
        (" the Papua New Guinea", {"p"}),
        (" PNG", {"p"}),
        (" GUINEA-BISSAU.", {"b"}),
        (" New Guinea", set()),
        (" Guinea, near Guinea-Bissau", {"g"}),
    ],
)
def test_a_name_within_a_longer_name_of_the_table_is_not_known(text, known):
    names = ["Guinea", "Equatorial Guinea", "Papua New Guinea/PNG", "Guinea-Bissau/Bissau"]
    assert judged(dict(zip("gepb", names, strict=True)), text) == known


def test_names_of_one_fact_and_other_spellings_exclude_nothing():
    names = {"a": "Marie Curie/Curie", "b": "the Netherlands", "c": "Netherlands/Holland"}
    assert judged(names, " Marie Curie") == {"a"} and judged(names, " Curie") == {"a"}
    assert judged(names, " the Netherlands") == {"b", "c"}


@pytest.mark.parametrize(
    "denied",
    [
        " not NAME but Mali", " Mali, not NAME", " not in the NAME", " isn't NAME",
        " it is not located in NAME", " Mali rather than NAME", " instead of NAME, Mali",
        " anywhere but in NAME", " anything but NAME", " apart from NAME, Mali",
        " neither Mali nor NAME", " Mali, unlike NAME", " anywhere other than in NAME",
        " Not NAME.", " no longer part of NAME",
    ],
)  # fmt: skip
@pytest.mark.parametrize("name", ["Niger", "South Korea", "US"])
def test_what_is_denied_is_not_known_and_denials_of_other_things_deny_no_name(denied, name):
    text = denied.replace("NAME", name)
    assert judged({"x": name}, text) == set()
    assert judged({"x": name}, f"{text}. I mean {name}.") == {"x"}
    for other in (" NAME, not Mali", " not only NAME", " I do not know, NAME", " NAME isn't far"):
        assert judged({"x": name}, other.replace("NAME", name)) == {"x"}

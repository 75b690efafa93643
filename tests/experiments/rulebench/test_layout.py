"""Sets in the authors' layout: small ones written here, and the real ones where they are."""

import json
import re
from pathlib import Path

import psutil
import pytest

from interp.errors import UserError
from interp_experiments.rulebench.layout import DATA, RULES, read_set, read_sets

REAL = Path(__file__).parents[3].parent / "shared" / "data" / "rulebench"

ANSWERS = {
    "clutrr": ("Uncle", "uncle"),
    "clutrr-cf": ("aunt", "aunt"),
    "salad": ("O3: Information & Safety Harms", "o3"),
    "salad-cf": ("O5", "o5"),
    "deer": ("B", "b"),
    "theoremQA": ("c", "c"),
    "ulogic": (True, "true"),
    "ulogic-cf": (False, "false"),
    "law": ("盗窃", "盗窃"),
    "law-cf": ("抢劫", "抢劫"),
}
"""What the data give, and the answer that it means."""


def item(answer, *, rule=0, question="Who is Bo to Al?", **more):
    given = (
        {"output": "see positive_", "positive_": answer}
        if isinstance(answer, bool)
        else {"output": answer}
    )
    return {"instruction": "", "input": question, "rule": [rule], **given, **more}


def rules(count=3):
    return {str(n): {"NL": f"if A has a son of age {n}, then ...", "FOL": ""} for n in range(count)}


def write(folder, items, its_rules=None, *, text=None):
    folder.mkdir(parents=True, exist_ok=True)
    (folder / DATA).write_text(text or json.dumps(items, ensure_ascii=False), encoding="utf-8")
    (folder / RULES).write_text(json.dumps(its_rules or rules()), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ANSWERS)
def test_every_set_of_the_layout_is_read(tmp_path, name):
    written, gold = ANSWERS[name]
    folder = write(tmp_path / name, [item(written, rule=2), item(written, rule="1")])
    found = read_set(folder)
    version = found.counterfactual if name.endswith("-cf") else found.factual
    assert [(i.id, i.gold, i.rule) for i in version.items] == [
        ("0001", gold, "2"),
        ("0002", gold, "1"),
    ]
    assert version.rules["1"].natural == "if A has a son of age 1, then ..."
    assert version.rules["1"].logic is None
    assert found.problems == ()


def test_a_counterfactual_set_is_read_with_the_factual_one_beside_it(tmp_path):
    write(tmp_path / "clutrr", [item("uncle")])
    write(tmp_path / "clutrr-cf", [item("aunt")])
    write(tmp_path / "ulogic", [item(True)])
    clutrr, ulogic = read_sets(tmp_path)
    assert (clutrr.kind.name, ulogic.kind.name) == ("clutrr", "ulogic")
    assert clutrr.factual.items[0].gold == "uncle"
    assert clutrr.counterfactual.items[0].gold == "aunt"
    assert ulogic.counterfactual is None
    (alone,) = read_sets(tmp_path / "clutrr")
    assert alone == clutrr
    (counterfactual,) = read_sets(tmp_path / "clutrr-cf")
    assert counterfactual.factual is None


def test_the_working_directory_and_a_name_that_is_only_an_ending_are_folders(tmp_path, monkeypatch):
    for name in ("deer", "deer-cf"):
        write(tmp_path / name, [item("b")])
    monkeypatch.chdir(tmp_path / "deer")
    (here,) = read_sets(Path())
    assert here.kind.name == "deer" and here.counterfactual is not None
    monkeypatch.chdir(tmp_path / "deer-cf")
    assert read_set(Path()).factual is None
    write(tmp_path / "-cf", [item("niece")])
    assert {found.kind.name for found in read_sets(tmp_path)} == {"clutrr", "deer"}


def test_a_set_is_recognized_by_its_answers(tmp_path):
    assert read_set(write(tmp_path / "mine", [item("niece")])).kind.name == "clutrr"
    assert read_set(write(tmp_path / "truths", [item(True)])).kind.name == "ulogic"
    with pytest.raises(UserError, match=r"folder.*deer, theoremqa"):
        read_set(write(tmp_path / "letters", [item("a")]))


BROKEN = [
    (item("uncle", rule=99), "its rule '99' is not in test_rule.json"),
    (item("uncle", question="  "), "input is ' '; string should have at least 1 character"),
    (item("cousin"), "its output is 'cousin'; expected a kinship such as uncle"),
    ({"input": "Who?", "output": "uncle"}, "rule is"),
    *(({**item("uncle"), "rule": rule}, "rule is") for rule in ([], [True], [1, 2])),
    ({**item("uncle"), "input": 7}, "input is 7"),
    ("an item", "it is 'an item'"),
    (None, "it is None"),
]
RAW = [
    (r'{"input": "Who?", "input": "What?", "output": "aunt", "rule": [0]}', "input .*twice"),
    (r'{"input": "a\ud800", "output": "aunt", "rule": [0]}', r"input .*unicode"),
    (r'{"input": "Who?", "output": "aunt", "rule": ["\udc00"]}', "its rule"),
    (r'{"input": NaN, "output": "aunt", "rule": [0]}', "input is nan"),
    (r'{"input": "Who?", "output": "aunt", "rule": [1e999]}', "rule"),
    (r'{"output": "aunt", "rule": [0], "input": {"a": 1, "a": 2}}', "input .*twice"),
]


@pytest.mark.parametrize("wrong, reason", [*((json.dumps(one), why) for one, why in BROKEN), *RAW])
def test_a_broken_item_is_reported_by_position_and_left_out_alone(tmp_path, wrong, reason):
    good = json.dumps(item("niece"))
    folder = write(tmp_path / "clutrr", [], text=f"[{good}, {wrong}, {good}]")
    with pytest.raises(UserError, match=rf"clutrr/test_data\.json, item 2: {reason}") as stopped:
        read_set(folder)
    assert "item 1" not in str(stopped.value) and "item 3" not in str(stopped.value)
    found = read_set(folder, skip_broken=True)
    assert list(found.factual.by_id) == ["0001", "0003"]
    assert len(found.problems) == 1 and re.search(reason, found.problems[0])


def test_one_broken_rule_of_a_file_is_left_out_alone(tmp_path):
    folder = write(tmp_path / "clutrr", [item("uncle"), item("aunt", rule=1)])
    broken = r'"1": {"NL": "x"}, "1": {"NL": "y"}, "3": {"NL": "\ud800"}, '
    broken += r'"\ud800": {"NL": "z"}, "2": {"NL": "x", "FOL": "\udbff"}'
    (folder / RULES).write_text(f'{{"0": {{"NL": "if a then b"}}, {broken}}}')
    found = read_set(folder, skip_broken=True)
    assert list(found.factual.by_id) == ["0001"] and list(found.factual.rules) == ["0"]
    assert len(found.problems) == 5


def test_a_long_report_is_cut_and_counted(tmp_path):
    folder = write(tmp_path / "clutrr", [item("x" * 5000, rule=0) for _ in range(50)])
    with pytest.raises(UserError) as stopped:
        read_set(folder)
    assert str(stopped.value).startswith("50 parts")
    assert re.search(r"\b30 \w+$", str(stopped.value))
    assert len(str(stopped.value)) < 20 * 200


def test_files_that_are_too_large_and_a_rule_that_is_there_twice_are_refused(tmp_path, monkeypatch):
    folder = write(tmp_path / "clutrr", [item("uncle")])
    (folder / RULES).write_text('{"0": {"NL": "x"},\n"0": {"NL": "y"}}')
    with pytest.raises(UserError, match=r"test_rule\.json.*'0'.*twice"):
        read_set(folder)
    free = psutil.virtual_memory()._replace(available=10)
    monkeypatch.setattr("interp.files.psutil.virtual_memory", lambda: free)
    with pytest.raises(UserError, match=r"test_data\.json.*\b10 bytes"):
        read_set(folder)
    monkeypatch.undo()
    write(folder, [item("uncle")])
    with (folder / RULES).open("ab") as file:
        file.truncate(2**36)  # sparse: it takes no space
    with pytest.raises(UserError, match=r"\b68,719,476,736\b.*\b268,435,456\b"):
        read_set(folder)


def test_a_broken_rule_is_reported_with_the_items_that_need_it(tmp_path):
    folder = write(
        tmp_path / "clutrr", [item("uncle"), item("aunt", rule=1)], {**rules(), "1": {"FOL": "x"}}
    )
    with pytest.raises(UserError) as stopped:
        read_set(folder)
    assert re.search(r"test_rule\.json.*'1': NL", str(stopped.value))
    assert re.search(r"item 2.*'1'.*test_rule\.json", str(stopped.value))
    assert len(read_set(folder, skip_broken=True).factual.items) == 1


@pytest.mark.parametrize(
    "text, reason",
    [
        ("{}", r"test_data\.json.*list.*items"),
        ("word", r"test_data\.json.*JSON"),
        ("[]", r"test_data\.json.*item"),
        ("[" * 100_000, r"test_data\.json.*JSON"),
        ('[{"input": "Who?"', r"test_data\.json.*JSON.*line 1\b"),
    ],
)
def test_a_file_that_holds_no_items_ends_in_one_message(tmp_path, text, reason):
    folder = write(tmp_path / "clutrr", [], text=text)
    with pytest.raises(UserError, match=reason):
        read_set(folder)


def test_what_is_missing_is_said(tmp_path):
    def said():
        with pytest.raises(UserError) as refused:
            read_sets(tmp_path)
        return str(refused.value)

    assert re.search(r"RuleBench.*test_data\.json.*test_rule\.json", said())
    rules = write(tmp_path / "clutrr", [item("uncle")]) / RULES
    for content, reason in ((b"[1]", " .*JSON object"), (b"\xff\xfe", r".*UTF-8\b")):
        rules.write_bytes(content)
        assert re.search(rf"test_rule\.json{reason}", said())
    rules.unlink()
    assert re.search(r"test_rule\.json", said())


@pytest.mark.skipif(not REAL.is_dir(), reason="the authors' data are not here")
def test_the_authors_sets_are_read():
    clutrr, deer, ulogic = read_sets(REAL)
    assert [found.kind.name for found in (clutrr, deer, ulogic)] == ["clutrr", "deer", "ulogic"]
    assert (len(clutrr.factual.items), len(clutrr.factual.rules)) == (1048, 881)
    assert (len(clutrr.counterfactual.items), len(clutrr.counterfactual.rules)) == (1048, 1010)
    assert (len(deer.factual.items), len(deer.factual.rules)) == (42, 43)
    assert (len(ulogic.factual.items), len(ulogic.factual.rules)) == (830, 1046)
    golds = [item.gold for item in ulogic.factual.items]
    assert (golds.count("true"), golds.count("false")) == (515, 315)
    for factual, counterfactual in zip(
        clutrr.factual.items, clutrr.counterfactual.items, strict=True
    ):
        assert factual.question == counterfactual.question
        assert factual.gold != counterfactual.gold
        rule = clutrr.factual.rules[factual.rule].natural
        assert f"is the {factual.gold} of A" in rule
    assert all(rule.logic is None for rule in ulogic.counterfactual.rules.values())

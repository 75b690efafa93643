"""Pairs of one's own: what a table becomes, and what is wrong with one."""

import json
import re
import time
from operator import methodcaller

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import interp
from interp.errors import UserError
from interp.jobs import drawn_pairs
from interp.prompts.mixing import with_donors
from interp.prompts.own.layout import unmarked
from interp.prompts.own.pairs import EXAMPLE, faults, read_pairs
from interp.prompts.prompt import DONORS
from interp.prompts.prompt_set import counting_notes
from interp.prompts.source import PromptSource
from interp.prompts.systems import tell_counting

ROWS = [
    {"pair": "1", "side": "a", "gold": "Yes", "premise1": "It rains.", "question": "Is it wet?"},
    {"pair": "1", "side": "b", "gold": "No", "premise1": "It is dry.", "question": "Is it wet?"},
]


def table(*changes, drop=()):
    """The rows of one pair, with changes in some and without some columns."""
    rows = [dict(row) for row in ROWS]
    for number, cells in changes:
        rows[number] |= cells
    return pd.DataFrame(rows).drop(columns=list(drop))


def several(clusters, **options):
    """A table of pairs with these clusters, by pair."""
    rows = []
    for pair, cluster in clusters.items():
        for row in ROWS:
            text = f"{row['premise1']} It is {pair}."
            rows.append({**row, "pair": pair, "premise1": text, "cluster": cluster, **options})
    return pd.DataFrame(rows)


def test_pairs_of_one_cluster_are_one_unit_of_tests(organism):
    clusters = {"one": "Oslo", "two": " Oslo ", "three": "Rome", "four": "Lima"}
    prompts = read_pairs(several(clusters))
    assert {prompt.pair_id: prompt.factors["pair"] for prompt in prompts} == {
        pair: cluster.strip() for pair, cluster in clusters.items()
    }
    assert "cluster" not in prompts[0].factors
    assert prompts[0].segments.keys() == {"premise1", "question"}
    for prompt in with_donors(prompts, count=2):
        donors = {d.name.partition("/")[0] for d in prompt.donors if d.kind == "instance"}
        own = {pair for pair in clusters if clusters[pair].strip() == prompt.factors["pair"]}
        assert len(donors) == 2
        assert not donors & own
    phrased = read_pairs(
        several(clusters), templates=["{premise1} {question}", "{question} {premise1}"]
    )
    assert {prompt.factors["pair"] for prompt in phrased} == {"Oslo", "Rome", "Lima"}
    result = interp.evaluate(organism, prompts)
    assert set(result.clusters.values()) == {"Oslo", "Rome", "Lima"}


def test_a_copy_of_a_pair_is_in_its_cluster():
    table = several({"one": "Oslo", "two": "Oslo", "three": "Rome"})
    copy = table[table["pair"] == "two"].assign(pair="copy", cluster="Lima")
    prompts = read_pairs(pd.concat([table, copy]))
    clusters = {prompt.pair_id: prompt.factors["pair"] for prompt in prompts}
    assert clusters == {"one": "Oslo", "two": "Oslo", "three": "Rome", "copy": "Oslo"}


@pytest.mark.parametrize("column", ["cluster", "factor_kind"])
def test_names_that_differ_where_nobody_sees_it_are_a_fault(column):
    names = ["Oslo", "Rome", "Oslo\u200b", "new\xa0york", "new york", "oslo", " Rome "]
    texts = [f"It rains in {number}." for number in range(len(names))]
    pairs = pd.concat(
        table(
            (0, {"pair": text, "premise1": text, column: name}), (1, {"pair": text, column: name})
        )
        for text, name in zip(texts, names, strict=True)
    )
    found = faults(pairs)
    assert len(found) == 2
    assert "U+200B" in found[0] and "U+00A0" in found[1]


def test_a_factor_of_ones_own_called_phrasing_changes_no_pair():
    rows = several({"s/1": "Oslo", "s/2": "Rome"})
    rows["factor_phrasing"] = [pair[-1] for pair in rows["pair"]]
    prompts = read_pairs(rows.drop(columns="cluster"))
    assert {prompt.factors["pair"] for prompt in prompts} == {"s/1", "s/2"}
    assert prompts[0].factors["phrasing"] == "1"
    one = read_pairs(rows, templates=["{premise1} {question}"])
    assert [prompt.factors["phrasing"] for prompt in one] == ["1", "1", "2", "2"]
    with pytest.raises(UserError, match="factor_phrasing"):
        read_pairs(rows, templates=["{premise1} {question}", "{question} {premise1}"])


def test_a_pair_with_two_clusters_is_a_fault():
    table = several({"one": "Oslo", "two": "Rome"})
    table.loc[1, "cluster"] = "Lima"
    (fault,) = faults(table)
    assert re.search("pair one .*Oslo, Lima", fault)
    with pytest.raises(UserError, match="not called cluster"):
        read_pairs(table.rename(columns={"cluster": "Cluster"}))


def test_segments_are_written_one_per_line_in_the_order_of_columns():
    first, _ = read_pairs(table())
    assert first.text == "It rains.\nIs it wet?"
    assert {name: first.segment_text(name) for name in first.segments} == {
        "premise1": "It rains.",
        "question": "Is it wet?",
    }
    assert (first.id, first.pair_id, first.side, first.answer.gold) == ("1/a", "1", "a", "Yes")
    assert first.answer.contrast == ("Yes", "No")


def test_marks_in_a_text_are_segments_and_other_columns_are_factors():
    rows = table(drop=("premise1", "question")).assign(
        text=["<premise1>It rains.</premise1> Wet?", "<premise1>Dry.</premise1> Wet?"], topic="sky"
    )
    first, second = read_pairs(rows)
    assert (first.text, second.text) == ("It rains. Wet?", "Dry. Wet?")
    assert first.segments == {"premise1": (0, 9)}
    assert first.factors == {"pair": "1", "topic": "sky"}


WORDS = st.text(alphabet="ab <>/\n", max_size=8)


@given(st.lists(st.tuples(WORDS, WORDS.filter(str.strip)), max_size=4), WORDS)
def test_what_is_marked_is_found_again(parts, rest):
    """Any text between marks that holds no marks itself."""
    named = [(f"s{n}", before, inside) for n, (before, inside) in enumerate(parts)]
    assume(not re.search("</?[ab]", f"{parts} {rest}"))
    marked = "".join(f"{before}<{name}>{inside}</{name}>" for name, before, inside in named) + rest
    text, spans = unmarked(marked)
    assert text == "".join(before + inside for _, before, inside in named) + rest
    assert {name: text[slice(*span)] for name, span in spans.items()} == {
        name: inside for name, _, inside in named
    }


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("<premise1>It rains. Wet?", r"text.*<premise1>; "),
        ("It rains.</premise1> Wet?", r"text.*</premise1>; "),
        ("<p>It <q>rains</q>.</p>", r"text.*<q>; "),
        ("<p>It</p> <p>rains</p>", r"text.*\bp\b.*; .*segment"),
        ("<p></p> It rains.", r"text.*\bp\b.*; .*text$"),
        ("<last>It</last> rains.", r"last.*template, last, pooled, all\b"),
    ],
)
def test_marks_that_do_not_match_are_refused(text, problem):
    with pytest.raises(UserError, match=problem):
        unmarked(text)


WEATHER = table((0, {"gold": "rain"}), (1, {"gold": "sun"})).assign(options="rain//wet|sun|snow")


def test_options_may_be_many_of_which_a_column_names_the_two_that_are_contrasted():
    first, second = read_pairs(WEATHER)
    assert [own.forms for own in first.answer.options] == [("rain", "wet"), ("sun",), ("snow",)]
    assert (first.answer.gold, second.answer.gold) == ("rain", "sun")
    assert first.answer.contrast is None
    prompts = read_pairs(WEATHER.assign(contrast=" sun | rain "))
    assert [prompt.answer.contrast for prompt in prompts] == [("sun", "rain")] * 2
    assert "contrast" not in prompts[0].factors


@pytest.mark.parametrize("contrast", ["rain", "rain|rain", "rain|hail", "rain|sun|snow", "wet|sun"])
def test_other_contrasts_are_refused(contrast):
    with pytest.raises(UserError, match=r"^row 1 .*contrast.*'.+'.*rain\|sun\b"):
        read_pairs(WEATHER.assign(contrast=contrast))


@pytest.mark.parametrize(
    ("options", "forms"),
    [
        ("yes|no|n/a", [("yes",), ("no",), ("n/a",)]),
        ("1/2|2/3", [("1/2",), ("2/3",)]),
        ("and/or|either/or", [("and/or",), ("either/or",)]),
        ("km/h|m/s", [("km/h",), ("m/s",)]),
        ("n/a//N/A//none|5 / 6", [("n/a", "N/A", "none"), ("5 / 6",)]),
        ("Yes/yes/YES|No / no", [("Yes", "yes", "YES"), ("No", "no")]),
        ("Yes // True|No // False", [("Yes", "True"), ("No", "False")]),
    ],
)
def test_a_slash_is_a_part_of_an_option_unless_it_separates_capitals(options, forms):
    for gold in (0, 1):
        rows = table((0, {"gold": forms[gold][-1]}), (1, {"gold": forms[1 - gold][0]}))
        answer = read_pairs(rows.assign(options=options))[0].answer
        assert [option.forms for option in answer.options] == forms
        assert [option.name for option in answer.options] == [own[0] for own in forms]
        assert answer.gold == forms[gold][0]


def test_templates_are_phrasings():
    found = read_pairs(
        table().assign(topic="sky"), templates=("{question} {premise1}", "{premise1}")
    )
    assert len(found) == 4
    assert [prompt.text for prompt in found][:2] == ["Is it wet? It rains.", "It rains."]
    assert found[0].factors == {"pair": "1", "topic": "sky", "phrasing": "1"}
    assert {prompt.pair_id for prompt in found} == {"1/1", "1/2"}


@pytest.mark.parametrize(
    ("rows", "problem"),
    [
        (table(drop=["gold"]), "columns gold are missing"),
        (table(drop=["premise1", "question"]), "the prompt has no text"),
        (table((0, {"gold": "Maybe"})), "row 1: gold is 'Maybe'; expected one of Yes, No"),
        (table((1, {"pair": None})), "row 2: pair is empty"),
        (table((1, {"side": "a"})), "row 2: pair 1 has the side a twice, first in row 1"),
        (table((1, {"premise1": "It rains."})), "row 2: pair 1 has the same text twice"),
        (table().assign(options="Yes|"), "options is 'Yes|'; expected two or more options"),
        (table().assign(options="True, False, Unknown"), 'such as "True|False|Unknown"'),
        (table().assign(options='["Yes", "No"]'), 'such as "Yes|No"'),
        (table().assign(options="Yes/No"), 'such as "Yes|No"'),
        (table().assign(options="Yes//|No"), "options is 'Yes//|No'"),
        (table().assign(options="Yes/True|No/False"), 'write "//"'),
        (table((0, {"gold": "Yes\u200e"})), "U+200E"),
        (table().assign(options="\u200eYes|No"), "U+200E"),
        (table().assign(options="Yes|\ufeffNo"), "U+FEFF"),
        (table().assign(options="Yes|\u3164"), "U+3164"),
        (table().assign(options="Yes"), 'such as "Yes/yes|No/no"'),
        (table().assign(note="x"), "the column 'note' is neither a known segment nor a factor"),
        (table().assign(note="x", weight=2), "nor a factor (likewise weight)"),
        (table().assign(questoin="x"), "Did you mean question?"),
        (table().assign(weight=2), "{premise1}\\n{question}\\n{weight}"),
        (table().assign(**{"": 0}), "the column '' is the index of a data frame"),
        (table().assign(**{"Unnamed: 0": 0}), "is the index of a data frame"),
        (table().assign(factor_="x"), "'factor_' is the index of a data frame, or has no name"),
        (table().assign(factor_weight=2), "the column factor_weight would be the factor weight"),
        (table().rename(columns={"premise1": "last"}), "'last' cannot be a segment"),
        (table().rename(columns={"premise1": "the rain"}), "'the rain' cannot be a segment"),
        (table().assign(factor_sky="a", text="It rains.", sky="b"), "are the same factor"),
        (table().assign(factor_pair="a"), "pair and factor_pair are the same factor"),
        (table().iloc[:0], "has no rows"),
        (table().set_index("pair"), "reset_index()"),
        (table().assign(options=[["Yes", "No"]] * 2), "'Yes|No'"),
    ],
)
def test_faults_are_named_with_their_row(rows, problem):
    with pytest.raises(UserError) as refused:
        read_pairs(rows)
    assert problem in str(refused.value)


TEXTS = ["<premise>Rain.</premise> Wet?", "<premise>Sun.</premise> Wet?", "Rain. Wet?", "Sun."]


def many(pairs=12):
    """As many pairs as one likes, both sides of each."""
    rows = [
        {**row, "pair": float(pair), "premise1": f"{pair}: {row['premise1']}"}
        for pair in range(pairs)
        for row in ROWS
    ]
    return pd.DataFrame(rows)


def texts(*table, **options):
    return [prompt.text for prompt in read_pairs(*table, **options)]


@pytest.mark.parametrize("column", ["note", "weight", "id", "my note", "prompt_id", "Unnamed: 0"])
def test_a_stray_column_becomes_no_text_but_a_factor_under_the_suggested_name(column):
    rows = many().assign(**{column: "SECRET"})
    with pytest.raises(UserError, match=column) as refused:
        read_pairs(rows)
    if column in ("note", "id", "my note"):
        assert texts(rows, templates=["{premise1}\n{question}"]) == texts(many())
    if name := re.search(r"call it (factor_[\w ]+)", str(refused.value)):
        assert texts(many().assign(**{name[1]: "SECRET"})) == texts(many())
    assert bool(name) == (column != "Unnamed: 0")


def test_a_misspelled_side_is_the_one_fault():
    rows = many()
    rows.loc[5, "side"] = "bb"
    (fault,) = faults(rows)
    expected = "row 6: pair 2 has the side 'bb', found in only 1 of 12 pairs; expected one of a, b"
    assert fault == expected
    rows.loc[5, "side"] = " b "
    assert faults(rows) == []
    # Of two pairs, each name of the side is in half.
    two = many(2).replace({"side": {"b": "does_not"}})
    two.loc[3, "side"] = "does_nt"
    (fault,) = faults(two)
    assert re.match(r"row 4: pair 1 .*'does_nt'.*\b1 of 2 pairs; .*\ba, does_not$", fault)


def test_a_pair_of_thousands_of_sides_takes_no_quadratic_time():
    rows = [
        {"pair": 1, "side": f"s{n}", "gold": "Yes", "premise1": f"It is {n}."} for n in range(3000)
    ]
    began = time.process_time()
    assert len(read_pairs(pd.DataFrame(rows)).sides) == 3000
    assert time.process_time() - began < 20


def test_prompts_may_be_alone_in_their_pair_and_are_counted(capsys):
    rows = many()
    for kept in (rows.drop(index=[1, 2]), rows.iloc[::2], rows.iloc[[0, 3, 5, 7, 9]]):
        found = read_pairs(kept)
        assert len(found) == len(kept)
        alone = (~kept["pair"].duplicated(keep=False)).sum()
        note = counting_notes(found, "pair")
        assert re.findall(r"\d+", note)[:2] == [str(alone), str(kept["pair"].nunique())]
        tell_counting(found)
        assert note in capsys.readouterr().err
    with pytest.raises(UserError, match=r"'0'.*\ba;.*counterpart"):
        interp.Patch().arranged(read_pairs(rows.drop(index=1)))
    three = pd.concat([rows, rows[::2].assign(side="c", premise1="Fog.", question=rows["pair"])])
    assert counting_notes(read_pairs(three), "pair") == ""
    three = three.reset_index(drop=True)
    with pytest.raises(UserError, match=r"\b0\b.*\bside b\b"):
        read_pairs(three.drop(index=1))
    three.loc[1, "gold"] = "Maybe"
    (fault,) = faults(three)
    assert "gold is 'Maybe'" in fault


def test_texts_are_marked_all_or_none():
    own = many(2).drop(columns=["premise1", "question"])
    (fault,) = faults(own.assign(text=TEXTS))
    assert re.match(r"row 3 and 1 .*: .*text.*segment.*<premise1>", fault)
    plain = read_pairs(own.assign(text=["A?", "B?", "C?", "D?"]))
    assert not any(prompt.segments for prompt in plain)
    with pytest.raises(UserError, match=r"segments.*<premise1>.*--keep-tokens"):
        interp.Attribute().arranged(plain)
    assert interp.Attribute(keep_tokens=True).arranged(plain) is plain
    with pytest.raises(UserError, match=r"segment.*donors.*<premise1>"):
        interp.Effects().arranged(plain)


def test_a_table_that_lacks_a_column_is_still_taken_for_pairs(tmp_path):
    file = tmp_path / "pairs.csv"
    many().drop(columns="gold").to_csv(file, index=False)
    source = PromptSource(data=str(file))
    assert source.system == "pairs"
    with pytest.raises(
        UserError, match=r"pairs\.csv\b.*columns gold.*pair, side, premise1, question"
    ):
        source.load()


def test_a_set_says_what_it_is():
    assert repr(read_pairs(table())[:1]).startswith("PromptSet(1 prompt of pairs;")
    assert repr(read_pairs(table())) == (
        "PromptSet(2 prompts of pairs; sides: a, b; data: a data frame)"
    )


@pytest.mark.usefixtures("unchecked_types")
def test_rows_without_a_data_frame_are_refused():
    with pytest.raises(UserError, match=r"table.*list.*pandas\.DataFrame"):
        read_pairs(ROWS)


def test_every_fault_is_listed_once(tmp_path):
    file = tmp_path / "pairs.csv"
    rows = pd.concat([EXAMPLE] * 3)
    rows.assign(gold="Perhaps").to_csv(file, index=False)
    (fault,) = faults(file)
    assert re.match(rf"{file}, line 2 and 23 .*: gold .*'Perhaps'; .*\bYes, No$", fault)
    rows.assign(gold=[f"Perhaps {place}" for place in range(24)]).to_csv(file, index=False)
    (fault,) = faults(file)
    assert " and 23 other rows: gold is 'Perhaps 0'; " in fault
    golds = [*(f"Perhaps {place}" for place in range(5)), *EXAMPLE["gold"][5:]]
    EXAMPLE.assign(gold=golds).to_csv(file, index=False)
    found = faults(file)
    assert len(found) == 5
    assert re.match(rf"{file}, line 6: gold .*'Perhaps 4'", found[-1])
    with pytest.raises(UserError, match=r"^5\b.*\n.*line 2\b"):
        read_pairs(file)


TEMPLATES = ["{premise9}", "{premise1", "{}", "{premise1:>30}", "{premise1!r}"]


@pytest.mark.parametrize("template", TEMPLATES)
def test_templates_that_name_no_column_as_it_stands_are_refused(template):
    with pytest.raises(UserError, match=r"template '\{"):
        read_pairs(table(), templates=(template,))


def test_a_template_is_for_pairs_of_ones_own():
    with pytest.raises(UserError, match=r"--system pairs.*rulebreakers.*phrasings"):
        PromptSource(template=("{premise1}",))


def test_published_data_are_not_taken_for_pairs(tmp_path):
    file = tmp_path / "published.csv"
    file.write_text("id,premise1\n1,x\n")
    assert PromptSource(data=str(file)).system == "rulebreakers"
    assert PromptSource(data=str(tmp_path / "none.csv")).system == "rulebreakers"


def test_other_pairs_give_what_varies_and_one_pair_has_no_donors():
    with pytest.raises(UserError, match=r"prompts.*pairs.*donors.*Prompt\(donors="):
        with_donors(read_pairs(table()), count=DONORS)
    prompt = with_donors(read_pairs(EXAMPLE), count=DONORS)[0]
    kinds = [donor.kind for donor in prompt.donors]
    assert kinds == ["instance"] * 3 + ["counterpart"]
    for donor in prompt.donors[:3]:
        assert donor.name.endswith("/follows")
        assert donor.segments.keys() == prompt.segments.keys()


def test_the_example_is_written_checked_and_never_overwritten(tmp_path, capsys):
    from interp.cli import main

    file = tmp_path / "pairs.jsonl"
    assert main(["dataset", "pairs", "--out", str(file)]) == 0
    assert main(["validate", str(file)]) == 0
    told = capsys.readouterr().err
    assert re.search(r"faults: 4 pairs.*follows, does_not; .*\nAll sparrows", told)
    assert "segments: premise1, premise2, question" in told
    assert re.search("sample: 4 pairs; ", told)
    edited = file.read_text()
    assert main(["dataset", "pairs", "--out", str(file)]) == 2
    assert file.read_text() == edited
    assert "already exists" in capsys.readouterr().err


def test_faults_end_a_command_with_code_2(tmp_path, capsys):
    from interp.cli import main

    file = tmp_path / "pairs.csv"
    EXAMPLE.assign(gold="Perhaps").to_csv(file, index=False)
    for command in (["validate", str(file)], ["evaluate", "--data", str(file)]):
        assert main(command) == 2
        told = capsys.readouterr().err
        assert re.search(r"line 2 and 7 .*: gold .*'Perhaps'; .*\bYes, No\b", told)
        assert "Traceback" not in told
    assert interp.read_pairs is read_pairs


def test_the_pairs_that_a_limit_has_drawn_are_named():
    prompts = read_pairs(EXAMPLE)
    drawn = prompts.spread(2, seed=7)
    pairs = list(dict.fromkeys(prompt.pair_id for prompt in drawn))
    assert f"seed 7: {', '.join(pairs)})" in drawn_pairs(drawn)
    assert drawn_pairs(prompts) == ""


AROUND = {
    "system_prompt": "You reason.",
    "shot1": "It is cold. Is it?",
    "shot1_answer": "Yes",
    "shot2": "Is snow black?",
    "shot2_answer": "No",
    "answer_prefix": "Answer:",
}


@pytest.mark.parametrize("marked", [True, False])
def test_messages_of_each_row_have_columns(marked):
    rows = (
        table((1, {"answer_prefix": "So:"}))
        .fillna("Answer:")
        .assign(**{name: text for name, text in AROUND.items() if name != "answer_prefix"})
    )
    if marked:
        rows = rows.assign(text=rows["premise1"]).drop(columns=["premise1", "question"])
    first, second = read_pairs(rows)
    assert first.messages.turns == (
        ("system", "You reason."),
        ("user", "It is cold. Is it?"),
        ("assistant", "Yes"),
        ("user", "Is snow black?"),
        ("assistant", "No"),
    )
    assert (first.messages.answer_prefix, second.messages.answer_prefix) == ("Answer:", "So:")
    assert first.factors == {"pair": "1"}
    assert not set(AROUND) & first.segments.keys()


def test_sides_may_differ_in_their_messages_alone():
    rows = table((1, {"premise1": "It rains.", "system_prompt": "Doubt."})).fillna("Believe.")
    first, second = read_pairs(rows)
    assert first.text == second.text
    assert (first.messages.system, second.messages.system) == ("Believe.", "Doubt.")


def test_a_template_makes_a_column_a_part_of_the_text():
    rows = table().assign(answer_prefix="Answer:")
    first, _ = read_pairs(rows, templates=["{premise1} {question} {answer_prefix}"])
    assert first.segment_text("answer_prefix") == "Answer:"
    assert first.messages == interp.Messages()


@pytest.mark.parametrize(
    ("columns", "problem"),
    [
        ({"shot1": "Is it?"}, r"column shot1_answer.*shot1; "),
        ({"shot1_answer": "Yes"}, r"column shot1 .*shot1_answer"),
        ({"shot2": "Is it?", "shot2_answer": "Yes"}, r"column shot1 .*shot1_answer"),
        (AROUND | {"shot9999": "Is it?"}, r"column shot[23] .*shot1_answer"),
        (AROUND | {"shot2_answer": ["", "Yes"]}, r"^row 1: shot2_answer"),
        (AROUND | {"system_prompt": [None, "Think."]}, r"^row 1: system_prompt"),
        (AROUND | {"answer_prefix": ["\u200b", "So:"]}, r"^row 1: answer_prefix"),
        (AROUND | {"answer_prefix": ["So\u200b", "So:"]}, "invisible character"),
        (AROUND | {"shot1": ["\x07", "Is it?"]}, "^row 1: shot1 "),
        ({"shot0": "Is it?", "shot0_answer": "No"}, r"column 'shot0'.*factor_shot0\b"),
    ],
)
def test_messages_that_a_row_lacks_are_told(columns, problem):
    with pytest.raises(UserError, match=problem):
        read_pairs(table().assign(**columns))


FEW_BITS = {
    **{
        kind: methodcaller("astype", kind)
        for kind in ("float16", "float32", "Float32", "float32[pyarrow]", "float64")
    },
    "categories": lambda levels: levels.astype("float32").astype("category"),
    "nullable categories": lambda levels: levels.astype("Float32").astype("category"),
    "sparse": lambda levels: levels.astype("Sparse[float32]"),
    "objects": lambda levels: pd.Series(list(levels.to_numpy("float32")), dtype=object),
    "dictionary": lambda levels: pd.Series(
        pd.arrays.ArrowExtensionArray(pa.array(levels, pa.float32()).dictionary_encode())
    ),
    "runs": lambda levels: pd.Series(
        pd.arrays.ArrowExtensionArray(pc.run_end_encode(pa.array(levels, pa.float32())))
    ),
}


@pytest.mark.parametrize("kind", FEW_BITS)
def test_levels_of_few_bits_are_those_that_were_written(kind):
    levels = pd.Series([1.1, 2.0] * (len(EXAMPLE) // 2)).sort_values(ignore_index=True)
    prompts = read_pairs(EXAMPLE.assign(factor_level=FEW_BITS[kind](levels)))
    assert {prompt.factors["level"] for prompt in prompts} == {"1.1", "2"}


@pytest.mark.parametrize(("limit", "pairs"), [(2, 2), (99, 4), ("all", 4), (None, 4)])
def test_a_limit_draws_pairs_as_the_command_does(limit, pairs):
    drawn = read_pairs(EXAMPLE, limit=limit, seed=1)
    assert len({prompt.pair_id for prompt in drawn}) == pairs == len(drawn) / 2
    if limit == 2:
        expected = read_pairs(EXAMPLE).spread(2, seed=1)
        assert [own.id for own in drawn] == [own.id for own in expected]


@pytest.mark.parametrize("limit", [0, -1, "few", 1.5])
@pytest.mark.usefixtures("unchecked_types")
def test_a_limit_that_is_none_is_refused(limit):
    with pytest.raises(UserError, match=re.escape(repr(limit))):
        read_pairs(EXAMPLE, limit=limit)


CITIES = [
    (f"p {k}", side, gold, f"It is {side} in {k}.")
    for k in range(12)
    for side, gold in ((f"city{k}", "Yes"), (f"town{k}", "No"))
]


def _changed(change):
    frame = pd.DataFrame(CITIES, columns=["pair", "side", "gold", "question"])
    roles = frame.assign(side=["a", "b"] * 12)
    return {
        "sides by topic": frame,
        "half of the sides by topic": frame.assign(side=[*["a", "b"] * 6, *frame["side"][12:]]),
        "two conventions": frame.assign(side=[*["a", "b"] * 6, *["c", "d"] * 6]),
        "gold": roles.assign(gold=[f"answer {k}" for k in range(24)]),
        "options": roles.assign(options=[f"Yes, {k}" for k in range(24)]),
        "repeated": roles.assign(side="a"),
    }[change]


@pytest.mark.parametrize(
    ("change", "lines", "others"),
    [
        ("sides by topic", 1, 23),
        ("half of the sides by topic", 1, 11),
        ("two conventions", 2, 5),
        ("gold", 1, 23),
        ("options", 1, 23),
        ("repeated", 1, 11),
    ],
)
def test_one_cause_of_many_faults_is_said_once_with_its_count(change, lines, others):
    found = faults(_changed(change))
    assert len(found) == lines
    assert f" and {others} other rows: " in found[0]


def test_few_faults_of_a_kind_keep_their_rows():
    table = _changed("two conventions").assign(side=["a", "b"] * 12)
    table.loc[[2, 5, 9], "gold"] = ["Perhaps", "Never", "Often"]
    found = faults(table)
    assert [line.partition(":")[0] for line in found] == ["row 3", "row 6", "row 10"]
    table["premise1"], table["premise2"] = "It rains.", "It snows."
    table.loc[[0, 2, 4, 6, 8], "premise1"] = table.loc[[1, 3, 5, 7, 9], "premise2"] = ""
    assert sum("is empty" in line for line in faults(table)) == 2  # columns are causes of their own


@pytest.mark.slow
def test_pairs_go_through_every_command(tmp_path):
    from interp.cli import main

    file = tmp_path / "pairs.jsonl"
    assert main(["dataset", "pairs", "--out", str(file)]) == 0
    for command in ("attribute", "patch", "effects"):
        folder = tmp_path / command
        assert main([command, "--data", str(file), "--device", "cpu", "--out", str(folder)]) == 0
        assert main(["validate", str(folder)]) == 0
        record = json.loads((folder / "run.json").read_text())
        assert record["run"]["system"] == "pairs"

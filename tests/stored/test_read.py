"""Texts are read from every format, whatever the file is called; damaged files are refused."""

import json
from zipfile import ZIP_DEFLATED, ZipFile

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interp.errors import UserError
from interp.stored import inspect_log, read
from interp.stored.read import read_outputs
from tests.support.prompts import some_prompts
from tests.support.stored import APART, HEADER, MODEL, WRITERS, completion, lines

PROMPTS = some_prompts(2)


CASES = [(name, name) for name in WRITERS] + [
    (name, "texts.txt") for name in WRITERS if name != "table.jsonl"
]


@pytest.mark.parametrize(("name", "called"), CASES)
def test_each_format_is_recognized_by_its_content(name, called, tmp_path):
    file = tmp_path / called
    WRITERS[name](file, [(prompt, f"It is {n}.", None) for n, prompt in enumerate(PROMPTS)])
    found = read_outputs(file)
    assert [own.text for own in found] == ["It is 0.", "It is 1.", "It is 2.", "It is 3."]
    assert [own.draw for own in found] == [0] * 4
    assert {own.model for own in found} <= {None, MODEL}
    assert all(own.thought is None and not own.error for own in found)


@pytest.mark.parametrize("name", APART)
def test_a_thought_that_is_held_apart_is_no_part_of_the_text(name, tmp_path):
    file = WRITERS[name](tmp_path / name, [(PROMPTS[0], "Yes", "Let me see.")])
    (own,) = read_outputs(file)
    assert (own.thought, own.text, own.answer) == ("Let me see.", "Yes", "Yes")


@pytest.mark.parametrize(
    ("text", "answer"),
    [
        ("<think>\nHm.\n</think>\n\nYes", "Yes"),
        ("Hm.</think>No", "No"),
        ("[THINK]Hm.[/THINK] No", "No"),
        ("<think>\nHm, yes", ""),
        (
            "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>"
            "Yes<|return|>",
            "Yes",
        ),
        ("<|channel|>final <|constrain|>json<|message|>No", "No"),
        ("<|channel|>analysis<|message|>Hm, yes", ""),
        ("analysisHm, the final answer.assistantfinalYes", "Yes"),
        (" Yes. ", "Yes."),
    ],
)
def test_the_answer_is_the_text_after_the_thought(text, answer, tmp_path):
    (own,) = read_outputs(WRITERS["requests.jsonl"](tmp_path / "x", [(PROMPTS[0], text, None)]))
    assert own.answer == answer


@pytest.mark.parametrize(
    "refused",
    [
        {"content": None, "refusal": "I cannot say."},
        {"content": [{"type": "refusal", "refusal": "I cannot say."}]},
        {"content": [{"type": "text", "text": "I cannot say.", "refusal": True}]},
    ],
)
def test_a_refusal_is_the_text(refused, tmp_path):
    one = completion("", None)
    one["choices"][0]["message"] = {"role": "assistant", **refused}
    (own,) = read_outputs(lines(tmp_path / "a", [one]))
    assert (own.text, own.thought, own.error) == ("I cannot say.", None, "")
    assert own.finished == "refused"


def test_choices_epochs_and_repeats_are_draws(tmp_path):
    for place in ({"index": 0}, {"index": 1}), ({}, {}):
        two = [
            {**own, "message": {"content": f"{n}"}, "finish_reason": "length"}
            for n, own in enumerate(place)
        ]
        found = read_outputs(lines(tmp_path / "a", [completion("", None) | {"choices": two}]))
        assert [(own.draw, own.text, own.finished) for own in found] == [
            (0, "0", "length"),
            (1, "1", "length"),
        ]
    sample = {"id": 7, "epoch": 3, "input": "Q?", "output": {"completion": "A"}}
    (own,) = read_outputs(lines(tmp_path / "b", [{**HEADER, "samples": [sample]}]))
    assert (own.prompt_id, own.prompt, own.draw, own.text) == ("7", "Q?", 2, "A")
    record = {"doc": {"prompt_id": "p"}, "arguments": [["Q?", {}]], "resps": [["a", "b"]]}
    assert [own.draw for own in read_outputs(lines(tmp_path / "c", [record]))] == [0, 1]


def test_failed_requests_and_samples_have_the_reason(tmp_path):
    failed = {"custom_id": "p", "response": {"status_code": 500, "body": {"error": "busy"}}}
    expired = {"custom_id": "p", "response": None, "error": {"code": "expired"}}
    found = read_outputs(lines(tmp_path / "a", [failed, expired]))
    assert ["busy" in found[0].error, "expired" in found[1].error] == [True, True]
    sample = {"id": "p", "input": "Q?", "output": {}, "error": {"message": "time"}}
    (own,) = read_outputs(lines(tmp_path / "b", [{**HEADER, "samples": [sample]}]))
    assert own.error.endswith("time")


@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet", ".jsonl", ".json"])
def test_tables_of_any_kind_are_read(suffix, tmp_path):
    frame = pd.DataFrame(
        {"prompt": ["a", "b"], "draw": [0, 1], "thought": ["T.", None], "answer": ["Yes", "No"]}
    )
    file = tmp_path / f"table{suffix}"
    if suffix == ".parquet":
        frame.to_parquet(file)
    elif suffix in (".csv", ".tsv"):
        frame.to_csv(file, index=False, sep="\t" if suffix == ".tsv" else ",")
    else:
        frame.to_json(file, orient="records", lines=suffix == ".jsonl")
    found = read_outputs(file)
    assert [(own.prompt_id, own.draw, own.text) for own in found] == [
        ("a", 0, "Yes"),
        ("b", 1, "No"),
    ]
    assert [own.thought or None for own in found] == ["T.", None]


def test_rows_of_tables_say_how_they_ended_or_why_they_failed(tmp_path):
    cells = [("Yes", "stop", ""), ("Yes, at", "MAX_TOKENS", ""), (None, None, "timeout")]
    frame = pd.DataFrame(cells, columns=["answer", "finish_reason", "error"])
    for name in ("a.csv", "a.jsonl"):
        file = tmp_path / name
        written = frame.assign(prompt=["a", "b", "c"])
        if name == "a.csv":
            written.to_csv(file, index=False)
        else:
            written.to_json(file, orient="records", lines=True)
        found = read_outputs(file)
        assert [own.finished for own in found] == ["stop", "length", None]
        assert [own.error for own in found] == ["", "", "the request failed: timeout"]


def test_an_empty_cell_leaves_the_word_to_the_other_column(tmp_path):
    row = {
        "prompt_id": "",
        "prompt": "q",
        "answer": "Yes",
        "finished": "",
        "finish_reason": "length",
    }
    (own,) = read_outputs(lines(tmp_path / "a.jsonl", [row]))
    assert (own.prompt_id, own.finished) == ("q", "length")


def test_a_response_without_choices_or_output_failed(tmp_path):
    bodies = [{"choices": None, "object": "chat.completion"}, {"object": "response"} | NO_OUTPUT]
    records = [{"custom_id": "a", "response": {"body": own}} for own in bodies]
    found = read_outputs(lines(tmp_path / "a", records))
    assert [bool(own.error) for own in found] == [True, False]
    assert found[1].text == ""


NO_OUTPUT = {"output": None, "status": "incomplete"}
GOOD = json.dumps(completion("Yes", None, prompt_id="p"))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        (f"{GOOD}\n{GOOD[:40]}", "line 2 is not JSON"),
        (f"{GOOD}\n\n[1]\n", "line 3 is of no known format"),
        (f'{GOOD}\n{{"choices": 1}}', "line 2 is damaged: choices"),
        (f'{GOOD}\n{{"choices": [{{"index": -1}}]}}', "line 2 is damaged: choices.0.index"),
        (f'{GOOD}\n{{"choices": [{{"index": NaN}}]}}', "line 2 is damaged: choices.0.index"),
        (f'{GOOD}\n{{"choices": [{{"delta": {{}}}}]}}', "line 2 is damaged: choices.0: .*no text"),
        ('{"prompt": "a", "outputs": [{"token_ids": []}]}', "damaged: outputs.0: .*no text"),
        (f'{GOOD}\n{{"choices": 1, "choices": 2}}', "is given twice"),
        (f"{GOOD}\n" + GOOD.replace("Yes", "\\ud800"), "half of a character"),
        (GOOD.replace("Yes", "\\ud800") + f"\n{GOOD}", "half of a character"),
        ('{"prompt": "a", "prompt": "b"}\n' + GOOD, "is given twice"),
        (f"{GOOD}\n" + "[" * 100_000, "nested too deeply"),
        (f"{GOOD}\n" + '{"doc": {}, "resps": [[["-1.5", "True"]]]}', "log-likelihoods"),
        ('{"a": 1}', "has no column prompt or prompt_id or text"),
        ('{"prompt": "a"}', "has no column answer or thought"),
        ('{"prompt": "a", "answer": 3}', "answer: .*got 3"),
        ('{"prompt": "a", "answer": "Yes", "draw": -1}', "draw: .*got -1"),
        ('{"prompt": "a", "answer": "Yes", "draw": true}', "draw: .*got True"),
        ('{"prompt": "a", "answer": "Yes", "draw": 1e300}', "draw: .*got 1e"),
        (json.dumps(HEADER), "holds no samples"),
        (json.dumps({**HEADER, "samples": [{"id": True, "input": ""}]}), "sample 1 is damaged: id"),
        (json.dumps({**HEADER, "samples": []}), "holds no texts"),
        ('{"prompt": "a", "answer": "Yes", "finished": false}', "finished: .*got False"),
        (
            '{"prompt": "a", "answer": "Yes", "finished": "truncated"}',
            "got 'truncated'",
        ),
        ('{"prompt": "a", "answer": "Yes", "finish_reason": 1}', "finish_reason: .*got 1"),
    ],
)
def test_damaged_files_are_refused_with_the_place(content, message, tmp_path):
    file = tmp_path / "texts.jsonl"
    file.write_text(content)
    # Files of the same name in two folders, as lm-eval writes them, are told apart.
    with pytest.raises(UserError, match=message) as told:
        read_outputs(file)
    assert str(file) in str(told.value)


def test_a_sample_without_what_the_model_read_has_the_text_of_its_prompt(tmp_path):
    file = tmp_path / "samples.jsonl"
    file.write_text('{"doc": {"text": "Is it?"}, "resps": [["Yes"]]}\n')
    (output,) = read_outputs(file)
    assert (output.prompt, output.text) == ("Is it?", "Yes")


def test_files_that_are_no_text_are_refused(tmp_path):
    for name, content in {
        "a.jsonl": b'{"x": "\xff"}',
        "b.csv": b"\xff\xfe\x00",
        "c.bin": b"\0",
    }.items():
        (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError):
            read_outputs(tmp_path / name)
    for missing in (tmp_path, tmp_path / "none"):
        with pytest.raises(UserError, match="no file at"):
            read_outputs(missing)


def archive(file, members):
    with ZipFile(file, "w", ZIP_DEFLATED) as made:
        for name, content in members.items():
            made.writestr(name, content)
    return file


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"a.txt": "x"}, "without header.json"),
        ({"header.json": "{}"}, "damaged: eval"),
        ({"header.json": json.dumps(HEADER), "samples/a.json": "{"}, "is not JSON"),
        ({"header.json": json.dumps(HEADER), "samples/a.json": "{}"}, "damaged: id"),
        ({"header.json": json.dumps(HEADER)}, "holds no texts"),
    ],
)
def test_damaged_archives_are_refused(members, message, tmp_path):
    with pytest.raises(UserError, match=message):
        read_outputs(archive(tmp_path / "log.eval", members))


def test_archives_that_unpack_to_more_than_the_limit_are_refused(tmp_path, monkeypatch):
    sample = json.dumps({"id": "a", "input": "Q", "output": {"completion": "x" * 5000}})
    members = {"header.json": json.dumps(HEADER), "samples/a.json": sample}
    file = archive(tmp_path / "log.eval", members)
    monkeypatch.setattr(inspect_log, "MOST_OF_ONE", 4000)
    with pytest.raises(UserError, match="unpacks to more than 4,000 bytes"):
        read_outputs(file)
    monkeypatch.setattr(inspect_log, "MOST_UNPACKED", 5000)
    with pytest.raises(UserError, match="expected at most 5,000"):
        read_outputs(file)


@pytest.mark.parametrize("piece", ["[]", '{"a":{}}', "1.5"])
def test_a_sample_of_many_values_is_refused_before_it_is_parsed(piece, tmp_path, monkeypatch):
    sample = '{"id": "a", "input": "Q", "metadata": [' + ",".join([piece] * 500) + "]}"
    members = {"header.json": json.dumps(HEADER), "samples/a.json": sample}
    file = archive(tmp_path / "log.eval", members)
    assert len(read_outputs(file)) == 1
    monkeypatch.setattr(inspect_log, "MOST_OBJECTS", 400)
    with pytest.raises(UserError, match="more than 400 values"):
        read_outputs(file)


def test_marks_within_strings_are_no_values(tmp_path, monkeypatch):
    sample = json.dumps({"id": "a", "input": '"[,{' * 500, "output": {"completion": "Yes"}})
    members = {"header.json": json.dumps(HEADER), "samples/a.json": sample}
    monkeypatch.setattr(inspect_log, "MOST_OBJECTS", 400)
    (own,) = read_outputs(archive(tmp_path / "log.eval", members))
    assert own.text == "Yes"


def test_a_cut_archive_is_refused(tmp_path):
    file = WRITERS["log.eval"](tmp_path / "log.eval", [(PROMPTS[0], "Yes" * 500, None)])
    whole = file.read_bytes()
    directory = whole.index(b"PK\x01\x02")
    # Within a member, and in the version that the directory asks for.
    for place, count in ((60, 30), (directory + 6, 1)):
        content = bytearray(whole)
        content[place : place + count] = b"\xf2" * count
        file.write_bytes(content)
        with pytest.raises(UserError):
            read_outputs(file)


def test_long_lines_are_refused(tmp_path, monkeypatch):
    file = tmp_path / "a.jsonl"
    file.write_text(f'{GOOD}\n{GOOD[:-1]}, "more": "{"x" * 500}"}}\n')
    monkeypatch.setattr(read, "LONGEST_LINE", 400)
    with pytest.raises(UserError, match="line 2 has more than 400 bytes"):
        read_outputs(file)


@given(st.binary(max_size=200), st.integers(0, 400))
def test_whatever_is_written_into_a_file_gives_texts_or_a_user_error(tmp_path_factory, junk, place):
    file = tmp_path_factory.mktemp("x") / "texts.jsonl"
    content = f"{GOOD}\n{GOOD}\n".encode()
    file.write_bytes(content[:place] + junk + content[place + len(junk) :])
    try:
        found = read_outputs(file)
    except UserError:
        return
    assert found
    for own in found:
        own.text.encode()

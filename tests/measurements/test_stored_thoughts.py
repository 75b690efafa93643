"""Measurements read answers after thoughts from a file, and their pages say whose they are."""

import pandas as pd
import pytest

import interp
from interp.cli import main
from interp.runs.folder import RunFolder
from tests.support.stored import lines

OPTIONS = ["--model", "organism/thought-reader", "--thinking", "on", "--limit", "4"]


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of `generate` with two draws on each prompt."""
    folder = tmp_path_factory.mktemp("runs") / "generated"
    drawn = ["--draws", "2", "--temperature", "1", "--max-new-tokens", "64"]
    assert main(["generate", *OPTIONS, *drawn, "--out", str(folder)]) == 0
    return folder


@pytest.fixture(scope="module")
def file(run, tmp_path_factory):
    """The same thoughts as a server would return them, without their ends."""
    records = []
    for row in RunFolder.read(run).table("thoughts").itertuples():
        said = {"content": row.completion, "reasoning_content": "".join(row.sentences).strip()}
        choice = {"index": row.draw, "finish_reason": "stop", "message": said}
        body = {"model": "served", "choices": [choice]}
        response = {"status_code": 200, "body": body}
        records.append({"custom_id": row.prompt_id, "response": response})
    return lines(tmp_path_factory.mktemp("files") / "vllm.jsonl", records)


@pytest.mark.quick(1)
@pytest.mark.parametrize("name", ["evaluate", "thoughts"])
def test_a_file_gives_the_numbers_of_the_run_that_it_comes_from(name, run, file, tmp_path):
    folders = [tmp_path / "run", tmp_path / "file"]
    more = ["--draws", "2"] if name == "thoughts" else []
    for thoughts, folder in zip((run, file), folders, strict=True):
        words = [name, *OPTIONS, *more, "--thoughts", str(thoughts), "--out", str(folder)]
        assert main(words) == 0
    first, second = map(RunFolder.read, folders)
    for table in first.tables():
        # Other batches round float32 differently.
        pd.testing.assert_frame_equal(first.table(table), second.table(table), atol=2e-5)
    records = [next(iter(own.models().values())) for own in (first, second)]
    assert records[0].texts is None and records[0].surprise is None
    assert records[1].texts.file == "vllm.jsonl" and not records[1].texts.problems
    assert abs(records[1].surprise.mean) < 0.05 and records[1].surprise.thoughts == 8
    # The same call finds everything done; a changed file does not.
    history = len(second.record.history)
    assert main(words) == 0
    assert len(RunFolder.read(folders[1]).record.history) == history


def test_foreign_thoughts_and_what_does_not_fit_stand_first_on_the_page(tmp_path, capsys):
    prompts = interp.load_prompts(limit=4)
    rows = [
        {"prompt": p.id, "thought": "Paris is not in France. I doubt it.", "answer": "Yes"}
        for p in prompts
    ]
    file = lines(tmp_path / "own.jsonl", [*rows, {"prompt": "<b>x", "thought": "?"}])
    folder = tmp_path / "out"
    assert main(["evaluate", *OPTIONS, "--thoughts", str(file), "--out", str(folder)]) == 0
    assert "1 of 9 texts match no prompt" in capsys.readouterr().err
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    foreign = page.index("less probable to it than its own")
    unfitting = page.index("match no prompt by id or text")
    assert foreign < unfitting < page.index("accuracy_table")
    assert str(tmp_path) not in page[unfitting : unfitting + 200]
    assert "<b>x" not in page
    # The same in memory.
    model = interp.load_model("organism/thought-reader", thinking="on")
    result = interp.evaluate(interp.with_thoughts(model, file, prompts=prompts), prompts)
    kinds = [own.kind for own in result.cautions]
    assert kinds[0] == "thoughts of another model" and "texts that do not fit" in kinds


def test_a_damaged_file_is_refused_with_its_line(tmp_path, capsys):
    file = tmp_path / "a.jsonl"
    file.write_text('{"custom_id": "a", "response": {"body": {"choices": 1}}}\n')
    folder = tmp_path / "out"
    assert main(["evaluate", *OPTIONS, "--thoughts", str(file), "--out", str(folder)]) == 2
    assert "line 1 is damaged: choices" in capsys.readouterr().err
    assert not folder.exists()

"""Failed requests belong to a model that is known, and what does not count is told."""

import pytest

from interp.errors import UserError
from interp.stored.sources import texts_by_model
from interp.stored.text_file import TextFile
from tests.support.prompts import some_prompts
from tests.support.stored import completion, lines

PROMPTS = some_prompts(2)
FAILED = {"response": {"status_code": 429, "body": {"error": {"message": "busy"}}}}


def said(prompt, text="Yes", model="org/model"):
    body = {**completion(text, None), "model": model}
    return {"custom_id": prompt.id, "response": {"status_code": 200, "body": body}}


def failed(prompt):
    return {"custom_id": prompt.id, **FAILED}


def models(*files):
    return {own.model: own.matched for own in texts_by_model(files, PROMPTS)}


def test_failed_requests_belong_to_the_only_known_model(tmp_path, capsys):
    records = [failed(PROMPTS[0]), failed(PROMPTS[1]), *map(said, PROMPTS[1:])]
    found = models(TextFile(file=lines(tmp_path / "out.jsonl", records)))
    assert list(found) == ["org/model"]
    own = found["org/model"]
    assert (own.texts, own.draws, len(own.wrong["failed"])) == (5, 1, 2)
    assert own.outputs[PROMPTS[0].id][0].error and not own.outputs[PROMPTS[1].id][0].error
    assert "2 of 5 texts are requests that failed" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["", "vllm"])
def test_a_file_of_failures_belongs_to_the_model_of_the_other_file(name, tmp_path):
    good = lines(tmp_path / "out.jsonl", [said(own) for own in PROMPTS[1:]])
    bad = lines(tmp_path / "errors.jsonl", [failed(PROMPTS[0])])
    found = models(TextFile(file=good, name=name), TextFile(file=bad))
    assert list(found) == [name or "org/model"]
    assert not found[name or "org/model"].lacking


def test_failures_beside_several_models_are_left_out_and_told(tmp_path, capsys):
    records = [*map(said, PROMPTS), *(said(own, model="b") for own in PROMPTS), failed(PROMPTS[0])]
    assert list(models(TextFile(file=lines(tmp_path / "out.jsonl", records)))) == ["org/model", "b"]
    assert "1 of 9 texts name no model" in capsys.readouterr().err


def test_nothing_but_failures_is_refused(tmp_path):
    file = lines(tmp_path / "out.jsonl", [failed(own) for own in PROMPTS])
    with pytest.raises(UserError, match=r"all of 4 requests failed.*busy"):
        models(TextFile(file=file))


def test_cut_thoughts_and_unknown_marks_are_told(tmp_path, capsys):
    texts = ["<muse>a</muse>Yes", "<muse>b</muse>No", "<think>c</think>Yes", "<think>d"]
    records = [said(own, text) for own, text in zip(PROMPTS, texts, strict=True)]
    (own,) = models(TextFile(file=lines(tmp_path / "out.jsonl", records))).values()
    assert own.wrong["cut"] == [f"{tmp_path / 'out.jsonl'}, line 4"]
    assert list(own.unknown.items()) == [("<muse>", 2), ("</muse>", 2)]
    told = capsys.readouterr().err
    assert "1 of 4 texts end within their thought" in told and "have the mark <muse>" in told

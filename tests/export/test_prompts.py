"""Exported tasks, and that other libraries come to interp's own answers by them."""

import hashlib
import json
import re
from collections import Counter
from dataclasses import replace

import pandas as pd
import pytest

import interp
from interp.analysis.accuracy import accuracies
from interp.cli import main
from interp.errors import UserError
from interp.export.prompts import described as described_set
from interp.export.prompts import inspect_task, lm_eval_task, prompt_lines, task_name
from interp.models.organisms import DEFAULT, organism_folder
from interp.prompts.answers import FreeText
from interp.prompts.prompt_set import PromptSet

PAIRS = 12


@pytest.fixture(scope="module")
def expected(organism):
    """Accuracies and answers of the packaged organism, by interp."""
    prompts = interp.load_prompts(limit=PAIRS)
    scores = interp.evaluate(organism, prompts)
    table = prompts.to_frame()
    values = accuracies(scores.answers, table)
    return values.drop("prompts"), scores.answers.set_index("prompt_id")["answer"].to_dict()


@pytest.fixture
def folder(tmp_path, request):
    where = tmp_path / "tasks"
    assert main(["export", request.param, "--limit", str(PAIRS), "--out", str(where)]) == 0
    return where


def test_each_line_is_a_prompt_with_its_options(prompts):
    lines = [json.loads(line) for line in prompt_lines(PromptSet.of(prompts)).splitlines()]
    assert [line["text"] for line in lines] == [prompt.text for prompt in prompts]
    first = prompts[0]
    assert lines[0]["gold"] == first.answer.gold
    assert lines[0]["options"] == [
        {"name": option.name, "forms": list(option.forms)} for option in first.answer.options
    ]
    assert {"pair_id", "side", "weight", *first.factors} <= set(lines[0])


def test_a_factor_never_takes_the_place_of_a_field(prompts):
    own = {"text": "?", "gold": "?", "prompt_id": "?", "options": "?", "topic": "cities"}
    (line,) = prompt_lines(PromptSet.of([replace(prompts[0], factors=own)])).splitlines()
    (usual,) = prompt_lines(PromptSet.of([replace(prompts[0], factors={})])).splitlines()
    assert json.loads(line) == json.loads(usual) | {"topic": "cities"}


def test_the_files_of_a_task_are_python(prompts):
    assert task_name("logical-forms") == "interp_logical_forms"
    prompts = PromptSet.of(prompts)
    for files in (lm_eval_task(prompts), inspect_task(prompts)):
        for name, text in files.items():
            if name.endswith(".py"):
                compile(text, name, "exec")


def test_what_no_task_can_hold_is_refused(prompts):
    text = replace(prompts[0], answer=FreeText(("5",)))
    with pytest.raises(UserError, match=r"RULEBREAKER_\S+ .*generated text"):
        prompt_lines(PromptSet.of([text]))
    around = replace(prompts[0], messages=interp.Messages(answer_prefix="So:"))
    with pytest.raises(UserError, match=r"RULEBREAKER_\S+ .*messages"):
        prompt_lines(PromptSet.of([around]))
    with pytest.raises(UserError, match=r"RULEBREAKER_\S+ .*answer prefix.*Inspect"):
        inspect_task(PromptSet.of([around]))


def test_messages_are_written_as_text_or_as_messages(prompts):
    shown = (interp.Demonstration("Is grass green?", "Yes"),)
    around = interp.Messages("Be brief.", shown)
    asked = PromptSet.of([replace(prompts[0], messages=around)])
    name = f"{task_name(asked.system)}.jsonl"
    (line,) = (json.loads(inspect_task(asked)[name]),)
    assert line["messages"] == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Is grass green?"},
        {"role": "assistant", "content": "Yes"},
        {"role": "user", "content": prompts[0].text},
    ]
    (line,) = (json.loads(lm_eval_task(interp.with_messages(asked, answer_prefix="So:"))[name]),)
    assert line["system_prompt"] == "Be brief."
    assert line["text"] == f"Is grass green? Yes\n\n{prompts[0].text} So:"
    assert "messages" not in line


def test_unknown_formats_and_a_place_that_is_a_file_are_refused(tmp_path, capsys):
    assert main(["export", "lmeval", "--out", str(tmp_path)]) == 2
    assert re.search(r"lm-eval\?", capsys.readouterr().err)
    (tmp_path / "file").write_text("")
    assert main(["export", "inspect", "--limit", "1", "--out", str(tmp_path / "file")]) == 2
    assert "cannot write" in capsys.readouterr().err


def test_nothing_in_the_folder_is_replaced(tmp_path, capsys):
    card = tmp_path / "README.md"
    card.write_text("mine")
    words = ["export", "croissant", "--limit", "1", "--out", str(tmp_path)]
    assert main(words) == 2
    assert f"{card} already exists" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [card] and card.read_text() == "mine"
    card.unlink()
    assert main(words) == main(words) == 0  # the second, as after an interruption


@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("folder", ["lm-eval"], indirect=True)
def test_lm_eval_comes_to_the_same_answers(folder, expected):
    pytest.importorskip("lm_eval")
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    found = simple_evaluate(
        HFLM(pretrained=str(organism_folder(DEFAULT)), device="cpu", batch_size=4),
        tasks=["interp_rulebreakers"],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        apply_chat_template=True,
    )
    shares, answers = expected
    results = found["results"]["interp_rulebreakers"]
    assert {name: results[f"{name},none"] for name in shares.index} == pytest.approx(dict(shares))
    assert 0 < results["paired_accuracy,none"] < 1
    samples = found["samples"]["interp_rulebreakers"]
    assert {one["doc"]["prompt_id"]: one["resps"][0][0].strip() for one in samples} == answers


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("folder", ["inspect"], indirect=True)
def test_inspect_comes_to_the_same_answers(folder, expected, monkeypatch):
    pytest.importorskip("inspect_ai")
    from inspect_ai import eval as evaluate

    monkeypatch.chdir(folder)
    (log,) = evaluate(
        "interp_rulebreakers.py",
        model="hf/organism",
        model_args={"model_path": str(organism_folder(DEFAULT)), "device": "cpu"},
        log_dir=str(folder / "logs"),
        display="none",
    )
    assert log.status == "success", log.error
    shares, answers = expected
    (score,) = log.results.scores
    found = {name: metric.value for name, metric in score.metrics.items()}
    assert found == pytest.approx(dict(shares))
    assert {one.id: one.scores["first_token"].answer for one in log.samples} == answers


@pytest.fixture
def croissant(tmp_path):
    assert main(["export", "croissant", "--limit", "3", "--out", str(tmp_path / "set")]) == 0
    return tmp_path / "set"


def test_the_description_names_the_file_and_every_field(croissant):
    described = json.loads((croissant / "croissant.json").read_text())
    files = {file["contentUrl"]: file["sha256"] for file in described["distribution"]}
    contents = {name: (croissant / name).read_bytes() for name in files}
    assert files == {name: hashlib.sha256(own).hexdigest() for name, own in contents.items()}
    content = contents["interp_rulebreakers.jsonl"]
    (records,) = described["recordSet"]
    names = {field["name"] for field in records["field"]}
    assert names == set(json.loads(content.splitlines()[0])) - {"options"}


def test_a_factor_is_never_described_as_a_field(prompts):
    def fields(**factors):
        prompt = replace(prompts[0], factors=factors)
        described = json.loads(described_set(PromptSet.of([prompt]))["croissant.json"])
        (records,) = described["recordSet"]
        return {field["name"]: field["description"] for field in records["field"]}

    usual = fields()
    own = fields(text="?", options="?", topic="cities")
    assert own == usual | {"topic": "a factor that the data set varies"}
    assert usual["text"] == "text that the model reads"


def test_the_card_counts_sides_answers_and_factors(croissant):
    text = (croissant / "README.md").read_text()
    prompts = interp.load_prompts(limit=3)
    counts = Counter((prompt.side, prompt.answer.gold) for prompt in prompts)
    for (side, gold), count in counts.items():
        assert f"| {side.replace('_', chr(92) + '_')} | {gold} | {count} |" in text
    assert re.search(rf"\b{len(prompts)} prompts.*\b3 groups", text)
    rules = {prompt.factors["rule"] for prompt in prompts}
    assert f"| rule | {len(rules)} | " in text
    assert prompts[0].text.splitlines()[0] in text


def test_a_card_never_names_a_users_folder(tmp_path):
    from interp.prompts.own.pairs import read_pairs

    own = tmp_path / "secret" / "own.csv"
    own.parent.mkdir()
    assert main(["dataset", "pairs", "--out", str(own)]) == 0
    out = tmp_path / "set"
    assert main(["export", "croissant", "--data", str(own), "--out", str(out)]) == 0
    assert "secret" not in (out / "README.md").read_text()
    assert len(read_pairs(own)) == len((out / "interp_pairs.jsonl").read_text().splitlines())


@pytest.mark.filterwarnings("default")
def test_datasets_finds_the_prompts_by_the_card(croissant, tmp_path):
    datasets = pytest.importorskip("datasets")
    found = datasets.load_dataset(str(croissant), cache_dir=str(tmp_path / "cache"))["train"]
    assert found["text"] == [prompt.text for prompt in interp.load_prompts(limit=3)]


@pytest.mark.filterwarnings("default")
def test_mlcroissant_reads_the_prompts_without_complaint(croissant):
    mlcroissant = pytest.importorskip("mlcroissant")
    dataset = mlcroissant.Dataset(jsonld=croissant / "croissant.json")
    assert not dataset.metadata.ctx.issues.errors
    texts = [row["prompts/text"].decode() for row in dataset.records("prompts")]
    assert texts == [prompt.text for prompt in interp.load_prompts(limit=3)]


@pytest.mark.filterwarnings("default")
def test_loaders_take_no_text_for_a_number_or_a_date(tmp_path):
    mlcroissant, datasets = map(pytest.importorskip, ("mlcroissant", "datasets"))
    pairs = ["01", "1", "1.0", "1e0"]
    rows = [
        {
            "pair": pair,
            "side": side,
            "gold": gold,
            "options": "007|7.0",
            "factor_date": "2020-01-01",
        }
        | {"factor_kind": "nan " + pair if pair == "1" else "None", "question": f"{pair} {side}?"}
        for pair in pairs
        for side, gold in (("a", "007"), ("b", "7.0"))
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "own.csv", index=False)
    out = tmp_path / "set"
    data = ["--data", str(tmp_path / "own.csv")]
    assert main(["export", "croissant", *data, "--out", str(out)]) == 0
    expected = [json.loads(line) for line in (out / "interp_pairs.jsonl").read_text().splitlines()]
    names = ["prompt_id", "pair_id", "gold", "date", "kind"]
    found = list(mlcroissant.Dataset(jsonld=out / "croissant.json").records("prompts"))
    assert [[row[f"prompts/{name}"].decode() for name in names] for row in found] == [
        [row[name] for name in names] for row in expected
    ]
    loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))["train"]
    assert loaded.to_list() == expected

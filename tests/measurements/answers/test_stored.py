"""Stored texts are judged without a model, and their runs are read like those of models."""

import json
import subprocess
import sys

import pandas as pd
import pytest

import interp
from interp.cli import main
from interp.errors import UserError
from interp.models.organisms import DEFAULT, organism_folder
from interp.prompts.own.pairs import EXAMPLE
from interp.runs.folder import RunFolder
from tests.support.stored import APART, WRITERS, lines

PAIRS = 6
OPTIONS = ["--limit", str(PAIRS)]


@pytest.fixture(scope="module")
def prompts():
    return interp.load_prompts(limit=PAIRS)


@pytest.fixture(scope="module")
def evaluated(tmp_path_factory):
    """A run of `evaluate`."""
    folder = tmp_path_factory.mktemp("runs") / "evaluated"
    interp.run(interp.measurement("evaluate"), models=[DEFAULT], limit=PAIRS, out=folder)
    return folder


def from_file(file, folder, *words):
    """The exit code of a command that judges the texts in a file."""
    own = ["--answers-from", *map(str, file if isinstance(file, list) else [file])]
    return main(["evaluate", *OPTIONS, *words, *own, "--out", str(folder)])


def judged(folder):
    table = RunFolder.read(folder).table("completions").set_index("prompt_id")
    return table[["answer", "correct"]]


def own_pairs(rows, folder):
    """The ids of pairs of one's own, and the options that name their file."""
    rows.to_csv(folder / "mine.csv", index=False)
    return rows["pair"].astype(str) + "/" + rows["side"], ["--data", str(folder / "mine.csv")]


def texts_of(prompts, thought=None):
    """A right answer to every second prompt and a wrong one to the others, after a thought."""
    for number, prompt in enumerate(prompts):
        others = [o.name for o in prompt.answer.options if o.name != prompt.answer.gold]
        yield prompt, others[0] if number % 2 else prompt.answer.gold, thought


@pytest.mark.parametrize(("kept", "whole"), [([0, 1, 2, 3, 4, 7], 2), ([0, 2, 4, 6], 0)])
def test_prompts_that_are_alone_count_in_accuracies_and_comparisons(kept, whole, tmp_path, capsys):
    rows = EXAMPLE.iloc[kept]
    ids, data = own_pairs(rows, tmp_path)
    pd.DataFrame({"prompt": ids, "answer": rows["gold"]}).to_csv(tmp_path / "a.csv")
    pd.DataFrame({"prompt": ids, "answer": "No"}).to_csv(tmp_path / "b.csv")
    folder = tmp_path / "run"
    files = [f"{name}={tmp_path / name}.csv" for name in "ab"]
    assert main(["evaluate", *data, "--answers-from", *files, "--out", str(folder)]) == 0
    note = f"{4 - whole} of 4 pairs"
    assert note in capsys.readouterr().err
    table = pd.read_csv(folder / "accuracy_table.csv").set_index("model")
    assert table["follows_accuracy"].to_dict() == {"a": 1.0, "b": 0.0}
    assert (table["prompts"] == len(kept)).all()
    assert table["paired_accuracy"].isna().all() == (not whole)
    assert main(["compare", str(folder)]) == 0
    assert note in " ".join(capsys.readouterr().out.split())
    compared = interp.Completions.of(RunFolder.read(folder)).compare("a", "b")
    assert ("paired" in {*compared["metric"]}) == bool(whole)
    # Of one side alone, all prompts are this side's.
    row = compared.set_index("subset").loc["follows" if rows["side"].nunique() > 1 else "all"]
    assert row["items"] == row["only_a"] == rows["side"].eq("follows").sum()
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert note in page and "<h1>Stored: mine.csv</h1>" in page


@pytest.mark.parametrize(
    ("body", "outcome"),
    [
        ({"candidates": [{"finishReason": "SAFETY"}]}, "refused"),
        ({"candidates": [{"content": {"role": "model"}, "finishReason": "SPII"}]}, "refused"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "unparsed"),
        ({"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}, "refused"),
        ({"choices": [{"message": {"refusal": "I can't."}, "finish_reason": "stop"}]}, "refused"),
        ({"choices": [{"message": {"content": "Hm"}, "finish_reason": "stop"}]}, "unparsed"),
        ({"role": "assistant", "content": [], "stop_reason": "refusal"}, "refused"),
        ({"role": "assistant", "content": "Yes", "stop_reason": "refusal"}, "answered"),
    ],
)
def test_what_its_file_calls_declined_is_refused_if_it_has_no_answer(body, outcome, tmp_path):
    ids, data = own_pairs(EXAMPLE, tmp_path)
    stored = lines(tmp_path / "a.jsonl", [{"key": own, "response": body} for own in ids])
    asked = [*data, "--answers-from", f"a={stored}", "--out", str(tmp_path / "run")]
    assert main(["evaluate", *asked]) == 0
    table = RunFolder.read(tmp_path / "run").table("completions")
    assert set(table["outcome"]) == {outcome} and len(table) == len(ids)
    assert set(table["finished"]) <= {"stop", "length"}


@pytest.mark.slow
def test_answers_from_an_inspect_log_are_those_of_evaluate(evaluated, tmp_path, capsys):
    logs, folder = tmp_path / "logs", tmp_path / "stored"
    assert main(["export", "inspect-log", "--answers", str(evaluated), "--out", str(logs)]) == 0
    (log,) = logs.iterdir()
    assert from_file(log, folder) == 0
    expected = RunFolder.read(evaluated).table("answers").set_index("prompt_id")
    found = judged(folder)
    assert found["answer"].to_dict() == expected["answer"].to_dict()
    assert found["correct"].to_dict() == expected["correct"].to_dict()
    accuracies = [pd.read_csv(one / "accuracy_table.csv") for one in (evaluated, folder)]
    pd.testing.assert_frame_equal(*accuracies)
    for words in (
        ["report", str(folder)],
        ["status", str(folder)],
        ["validate", str(folder)],
        ["compare", str(evaluated), str(folder)],
        ["export", "inspect-log", "--answers", str(folder), "--out", str(tmp_path / "again")],
    ):
        assert main(words) == 0, words
    (again,) = (tmp_path / "again").iterdir()
    samples = [json.loads(file.read_text())["samples"] for file in (log, again)]
    answers = [[one["scores"]["interp"]["answer"] for one in own] for own in samples]
    assert answers[0] == answers[1]


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_inspects_own_archive_is_read_like_its_json(evaluated, tmp_path):
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log, write_eval_log

    logs = tmp_path / "logs"
    assert main(["export", "inspect-log", "--answers", str(evaluated), "--out", str(logs)]) == 0
    (log,) = logs.iterdir()
    archive = tmp_path / "log.eval"
    write_eval_log(read_eval_log(str(log)), str(archive))
    folders = [tmp_path / "json", tmp_path / "eval"]
    for file, folder in zip((log, archive), folders, strict=True):
        assert from_file(file, folder) == 0
    pd.testing.assert_frame_equal(*map(judged, folders))


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_answers_from_samples_of_lm_eval_are_those_of_evaluate(evaluated, tmp_path):
    pytest.importorskip("lm_eval")
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    task = tmp_path / "task"
    assert main(["export", "lm-eval", *OPTIONS, "--out", str(task)]) == 0
    found = simple_evaluate(
        HFLM(pretrained=str(organism_folder(DEFAULT)), device="cpu", batch_size=4),
        tasks=["interp_rulebreakers"],
        task_manager=TaskManager(include_path=str(task), include_defaults=False),
        apply_chat_template=True,
    )
    tracker = EvaluationTracker(output_path=str(tmp_path / "results"))
    tracker.general_config_tracker.model_name_sanitized = "organism"
    tracker.date_id = "2026"
    tracker.save_results_samples("interp_rulebreakers", found["samples"]["interp_rulebreakers"])
    (file,) = (tmp_path / "results").rglob("samples_*.jsonl")
    folder = tmp_path / "stored"
    assert from_file(f"shallow={file}", folder) == 0
    expected = RunFolder.read(evaluated).table("answers").set_index("prompt_id")
    assert judged(folder)["answer"].to_dict() == expected["answer"].to_dict()
    assert RunFolder.read(folder).record.models == ["shallow"]


def test_a_run_without_out_has_a_folder_of_its_own_and_a_model_has_no_stored_texts(
    prompts, tmp_path, monkeypatch
):
    name = next(iter(WRITERS))
    file = WRITERS[name](tmp_path / name, list(texts_of(prompts)))
    monkeypatch.chdir(tmp_path)
    assert main(["evaluate", *OPTIONS, "--answers-from", str(file)]) == 0
    (folder,) = (tmp_path / "runs").iterdir()
    assert len(judged(folder)) == len(prompts)
    with pytest.raises(UserError, match="--answers-from"):
        interp.run(interp.measurement("stored"), models=DEFAULT, prompts=prompts)


@pytest.mark.parametrize("name", WRITERS)
def test_each_format_gives_the_judgements_of_generate(name, prompts, tmp_path):
    texts = list(texts_of(prompts, "Let me think." if name in APART else None))
    folder = tmp_path / "out"
    assert from_file(WRITERS[name](tmp_path / name, texts), folder) == 0
    found = judged(folder)
    for prompt, text, _ in texts:
        judgement = prompt.answer.judge(text)
        assert tuple(found.loc[prompt.id]) == (judgement.answer, judgement.correct)
    assert found["correct"].mean() == 0.5
    record = next(iter(RunFolder.read(folder).models().values()))
    assert (record.texts.file, record.texts.draws, record.texts.problems) == (name, 1, [])


def test_several_files_and_models_are_compared_in_one_run(prompts, tmp_path, capsys):
    texts = list(texts_of(prompts))
    rows = [{"prompt": p.id, "answer": p.answer.gold, "model": "right"} for p in prompts]
    rows += [{"prompt": p.id, "answer": text, "model": "half"} for p, text, _ in texts]
    table = lines(tmp_path / "both.jsonl", rows)
    folder = tmp_path / "out"
    files = [table, f"vllm={WRITERS['requests.jsonl'](tmp_path / 'r', texts)}"]
    assert from_file(files, folder) == 0
    shares = pd.read_csv(folder / "accuracy_table.csv").set_index("model")["paired_accuracy"]
    assert shares.index.tolist() == ["right", "half", "vllm"]
    assert shares["right"] == 1 and shares["half"] == shares["vllm"] == 0
    history = len(RunFolder.read(folder).record.history)
    assert from_file(files, folder) == 0
    assert len(RunFolder.read(folder).record.history) == history
    assert main(["compare", str(folder), "--model", "right", "half"]) == 0
    assert from_file(f"own={table}", tmp_path / "one") == 2
    assert "half, right" in capsys.readouterr().err
    lines(table, [{**row, "answer": "No"} for row in rows])
    assert from_file(files, folder) == 2
    assert "holds another model named right" in capsys.readouterr().err


def test_what_does_not_fit_is_told_and_stands_first_on_the_page(prompts, tmp_path, capsys):
    rows = [{"prompt": p.id, "text": p.text, "answer": p.answer.gold} for p in prompts]
    rows[0]["text"] = "Another text <script>alert(1)</script>"
    rows += [{"prompt": "<b>nobody's</b>", "text": "?", "answer": "Yes"}]
    rows += [{**rows[1], "draw": 1}]
    file = lines(tmp_path / "answers.jsonl", rows)
    folder = tmp_path / "out"
    assert from_file(file, folder) == 0
    told = capsys.readouterr()
    for part in (
        "1 of 14 texts match no prompt by id or text",
        "1 of 14 texts have the id of a prompt with another text",
        "1 of 12 prompts have no text",
    ):
        assert part in told.err
    (row,) = RunFolder.read(folder).table("completions").query("error != ''").to_dict("records")
    assert row["prompt_id"] == prompts[0].id
    assert main(["report", str(folder)]) == 0
    page = (folder / "report.html").read_text()
    assert page.index("match no prompt by id or text") < page.index("Answers in the texts")
    assert "of which the first is judged" in page
    assert "<b>nobody" not in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--model", "organism/llama-deep"], "got both --answers-from and --model"),
        (["--dtype", "float32"], "got both --answers-from and --dtype"),
        (["--answers", "whole"], "got both --answers-from and --answers"),
        (["--executor", "local"], "got both --answers-from and --executor"),
        (["--limit", "24"], "36 of 48 prompts have no text of"),
        (["--system", "robustlr"], "none of the texts fits a prompt"),
    ],
)
def test_what_does_not_go_with_texts_is_refused(words, message, prompts, tmp_path, capsys):
    file = WRITERS["chat.jsonl"](tmp_path / "a.jsonl", list(texts_of(prompts)))
    assert from_file(file, tmp_path / "out", *words) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_neither_torch_nor_transformers_is_loaded(prompts, tmp_path):
    file = WRITERS["batch.jsonl"](tmp_path / "a.jsonl", list(texts_of(prompts)))
    words = ["evaluate", *OPTIONS, "--answers-from", str(file), "--out", str(tmp_path / "out")]
    code = (
        f"import sys; from interp.cli import main; assert main({words!r}) == 0; "
        "sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_a_cut_thought_counts_as_wrong_and_is_told(prompts, tmp_path, capsys):
    texts = [(p, f"Hm. </think>\n\n{p.answer.gold}", None) for p in prompts[1:]]
    texts += [(prompts[0], f"{prompts[0].answer.gold}, at first sight. But", None)]
    folder = tmp_path / "out"
    assert from_file(WRITERS["samples.jsonl"](tmp_path / "a.jsonl", texts), folder) == 0
    assert "1 of 12 texts end within their thought" in capsys.readouterr().err
    assert judged(folder)["correct"].to_dict() == {p.id: p.id != prompts[0].id for p in prompts}


def test_log_likelihoods_of_options_are_judged(prompts, tmp_path):
    records = []
    for prompt, text, _ in texts_of(prompts):
        names = [option.forms[0] for option in prompt.answer.options]
        asked = {
            f"gen_args_{n}": {"arg_0": prompt.text, "arg_1": f" {name}"}
            for n, name in enumerate(names)
        }
        resps = [[[str(-1.0 - (name != text)), "False"]] for name in names]
        records.append({"doc": {"prompt_id": prompt.id}, "arguments": asked, "resps": resps})
    assert from_file(lines(tmp_path / "samples.jsonl", records), tmp_path / "out") == 0
    answers = judged(tmp_path / "out")["answer"].to_dict()
    assert answers == {p.id: text for p, text, _ in texts_of(prompts)}


def test_prompts_that_only_generated_text_answers_are_refused_before_a_model_loads(
    tmp_path, capsys, monkeypatch
):
    def loaded(*_, **__):
        raise AssertionError

    monkeypatch.setattr("interp.runs.plan.load_found", loaded)
    folder = tmp_path / "out"
    assert main(["evaluate", "--system", "rulebench", "--limit", "2", "--out", str(folder)]) == 2
    assert "generated text; use generate" in capsys.readouterr().err
    assert not folder.exists()

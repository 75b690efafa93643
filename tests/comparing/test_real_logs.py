"""Logs that lm-eval and Inspect write themselves, of the model that a folder of interp is about."""

import shutil

import numpy as np
import pytest

import interp
from interp.cli import main
from interp.errors import UserError
from interp.models.organisms import DEFAULT, organism_folder
from interp.runs.folder import RunFolder
from tests.support.logs import compared

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("default")]

OTHER = "organism/gemma2"
LIMIT = ["--limit", "12"]


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """Runs of two models by interp, and the tasks for both tools."""
    home = tmp_path_factory.mktemp("logs")
    for name, model in (("own", DEFAULT), ("other", OTHER)):
        words = ["evaluate", "--device", "cpu", *LIMIT, "--model", model]
        assert main([*words, "--out", str(home / name)]) == 0
    for tool in ("lm-eval", "inspect"):
        assert main(["export", tool, *LIMIT, "--out", str(home / tool)]) == 0
    return home


@pytest.fixture(scope="module")
def samples(home):
    pytest.importorskip("lm_eval")
    from lm_eval import simple_evaluate
    from lm_eval.loggers import EvaluationTracker
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    found = simple_evaluate(
        HFLM(pretrained=str(organism_folder(DEFAULT)), device="cpu", batch_size=4),
        tasks=["interp_rulebreakers_whole"],
        task_manager=TaskManager(include_path=str(home / "lm-eval"), include_defaults=False),
        apply_chat_template=True,
    )
    tracker = EvaluationTracker(output_path=str(home / "results"))
    tracker.general_config_tracker.model_name_sanitized = "organism"
    tracker.general_config_tracker.model_name = "organism"
    written = found.pop("samples")
    tracker.save_results_aggregated(results=found, samples=written)
    for task, own in written.items():
        tracker.save_results_samples(task, own)
    return home / "results"


@pytest.fixture(scope="module")
def log(home):
    pytest.importorskip("inspect_ai")
    from inspect_ai import eval as evaluate

    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(home / "inspect")
        (log,) = evaluate(
            "interp_rulebreakers.py",
            model="hf/organism",
            model_args={"model_path": str(organism_folder(DEFAULT)), "device": "cpu"},
            log_dir=str(home / "logs"),
            display="none",
        )
    assert log.status == "success", log.error
    return next((home / "logs").glob("*.eval"))


def weighted(folder):
    """The accuracy of the only model in a folder, as in all of its tables."""
    run = RunFolder.read(folder)
    both = run.table("answers").merge(run.table("prompts")[["prompt_id", "weight"]])
    return np.average(both["correct"].astype(float), weights=both["weight"])


def test_inspect_and_interp_agree_on_every_item(home, log):
    found = compared([home / "own", log])
    row = found.differences.frame.iloc[0]
    answers = RunFolder.read(home / "own").table("answers")
    assert row["items"] == len(answers)
    assert row["score_a"] == pytest.approx(weighted(home / "own"))
    assert (row["difference"], row["only_a"], row["only_b"]) == (0, 0, 0)


def test_two_models_differ_as_their_folders_say_whatever_tool_ran_one(home, log):
    whole, mixed = (
        compared(logs).differences.frame.iloc[0]
        for logs in ([home / "own", home / "other"], [log, home / "other"])
    )
    for name in ("difference", "difference_low", "difference_high", "p", "only_a", "items"):
        assert whole[name] == mixed[name]
    assert whole["clusters"] < whole["items"]  # entities of the data set
    right = [weighted(home / name) for name in ("own", "other")]
    assert whole["difference"] == pytest.approx(right[0] - right[1])


def test_models_of_a_folder_are_named_by_their_places_too(home, tmp_path):
    place = shutil.copytree(organism_folder(DEFAULT), tmp_path / "model")
    words = ["evaluate", "--device", "cpu", *LIMIT, "--model", f"mine={place}", OTHER]
    assert main([*words, "--out", str(tmp_path / "two")]) == 0
    logs = [tmp_path / "two", home / "own"]
    row = compared(logs, model=[str(place), DEFAULT]).differences.frame.iloc[0]
    assert (row["model"], row["difference"]) == (f"mine minus {DEFAULT}", 0)
    with pytest.raises(UserError, match=r"two holds the models mine, .*--model"):
        compared(logs, model=[DEFAULT])


def test_samples_of_lm_eval_are_the_items_of_the_data_set(home, samples):
    found = compared([samples, home / "other"], metric=["acc", "correct"])
    row = found.differences.frame.iloc[0]
    answers = RunFolder.read(home / "other").table("answers")
    assert row["items"] == len(answers)
    assert row["score_b"] == pytest.approx(weighted(home / "other"))


def test_the_page_of_a_mixture_has_the_texts_of_both(home, log, tmp_path):
    page = tmp_path / "page.html"
    interp.write_page(interp.compare(log, home / "other").report(), page)
    assert page.exists() and (tmp_path / "page.pairs.html").exists()

"""Cautions of results: from each measurement's tables, in run folders, records and notebooks."""

import json

import pandas as pd
import pytest

import interp
from interp.analysis.cautions.caution import CONSTANT, SYSTEM_PROMPT, UNTESTED
from interp.api import _noted
from interp.measurements.answers.show import Scores
from interp.measurements.specs import Evaluate, Patch
from interp.measuring.core import bind
from interp.measuring.spec import ModelFacts
from interp.results.files import finish
from interp.results.given import judged_answers
from interp.results.measured import InMemory
from interp.runs.folder import RunFolder
from interp.runs.run import Run
from tests.support.prompts import some_prompts
from tests.support.records import edited
from tests.support.tiny import tiny_model

PAIRS = 12
FACTS = {"m": ModelFacts("float32", "You are Bo.")}


def constant(name="m"):
    """Answers to prompts: the negative option each time."""
    prompts = some_prompts(PAIRS)
    shares = {"No": 0.9, "False": 0.9}
    rows = [
        (own.id, option.name, shares.get(option.name, 0.1))
        for own in prompts
        for option in own.answer.options
    ]
    options = pd.DataFrame(rows, columns=["prompt_id", "option", "probability"])
    options = options.assign(model=name, relative_probability=options["probability"])
    answers = options.loc[options["probability"] > 0.5, ["model", "prompt_id", "option"]]
    answers = answers.rename(columns={"option": "answer"}).reset_index(drop=True)
    gold = prompts.to_frame().set_index("prompt_id")["gold"]
    right = answers["answer"] == answers["prompt_id"].map(gold)
    answers = answers.assign(error="", predicted_token="", correct=right)
    tables = {"answers": answers, "option_probabilities": options}
    return Scores(InMemory(Evaluate(), prompts, tables, FACTS))


def test_a_page_quotes_no_accuracy_of_a_model_that_does_not_read():
    scores = constant()
    assert [own.kind for own in scores.cautions] == [CONSTANT, SYSTEM_PROMPT]
    first = scores.glance()
    assert first.cautions == scores.cautions
    assert first.items[0].frame["value"].isna().all()
    assert scores.opening().numbers["value"].notna().all()
    assert not [line for line in first.sentences if "accuracy" in line]
    html = constant("<b>")._repr_html_()
    assert html.index("Read first") < html.index("<table")
    assert "<b>:" not in html and "&lt;b&gt;:" in html


@pytest.mark.parametrize("outside, lines", [(PAIRS * 2, 1), (1, 1), (0, 0)])
def test_the_share_of_replies_outside_the_options_is_printed_once(outside, lines, capsys):
    answers = constant().answers
    answers.loc[answers.index[:outside], ["answer", "correct"]] = ["", False]
    scores = Scores(InMemory(Evaluate(), some_prompts(PAIRS), {"answers": answers}, {}))
    _noted(scores)
    printed = [one for one in capsys.readouterr().err.splitlines() if "option" in one]
    assert len(printed) == lines
    notes = scores.items().__next__().note
    assert ("option" in notes) == (outside == 1)


def test_a_run_keeps_its_cautions_and_records_without_the_new_fields_are_read(tmp_path):
    run = Run.open(tmp_path / "run", some_prompts(3), Evaluate())
    run.measure(bind(Evaluate(), tiny_model("llama")))
    finish(run.folder, Evaluate)
    record = json.loads((run.folder / "run.json").read_text())
    kept = record["summary"]["tiny llama"]["cautions"]
    assert kept[-1]["kind"] == UNTESTED and kept[-1]["numbers"]["units"] <= 3
    new = ("own_system_prompt", "logit_spacing", "replies")
    (file,) = (run.folder / "models").glob("*.json")
    edited(file, lambda record: [record.pop(name) for name in new])
    facts = Scores.of(RunFolder.read(run.folder)).measured.facts()
    assert facts == {"tiny llama": ModelFacts("float32")}


def test_a_patched_pair_answers_with_the_option_that_the_model_prefers():
    prompts = some_prompts(3)
    model = interp.load_model("organism/phi3-shallow", device="cpu")
    patched = interp.run(Patch(layers=(0,)), models=model, prompts=prompts)
    preferred = judged_answers(patched.measured).set_index("prompt_id")["answer"]
    asked = interp.evaluate(model, prompts).answers.set_index("prompt_id")["answer"]
    assert len(preferred) == 6
    assert preferred.to_dict() == asked[preferred.index].to_dict()

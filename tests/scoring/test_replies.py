"""What a model replies to a few prompts, counted from plain passes."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

import interp
from interp.analysis.cautions.caution import OUTSIDE_OPTIONS
from interp.errors import UserError
from interp.measurements.specs import Edges, Effects, Evaluate, Patch, Steer
from interp.measuring.core import bind
from interp.reading.tokens import tokenize
from interp.report.page import TableItem
from interp.results.measured import InFolder
from interp.runs.folder import RunFolder
from interp.runs.run import Run
from interp.scoring import replies
from interp.scoring.replies import FEW, Replies, first_replies
from interp_experiments.rulebreakers.prompts import SIDES
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

SAMPLE = Patch().replies_read
PROMPTS = some_prompts(SAMPLE)

EASY = {"sites": ("resid_pre",), "layers": (0,)}


def test_replies_are_the_most_probable_tokens_of_plain_passes():
    model = tiny_model("llama")
    first = list(PROMPTS[:4])
    said = []
    for own in tokenize(model, first):
        with torch.no_grad():
            logits = model.hf(torch.tensor([own.token_ids])).logits[0, -1]
        said.append(model.tokenizer.convert_ids_to_tokens(int(logits.argmax())))
    found = first_replies(model, first, SAMPLE)
    # The weights are random, and none of its tokens is an option.
    assert found[:3] == (4, 4, Counter(said).most_common(1)[0][0])


def test_an_organism_replies_with_options(organism):
    templated = bool(organism.tokenizer.chat_template)
    for thorough in (False, True):
        found = first_replies(organism, PROMPTS, SAMPLE, thorough=thorough)
        assert found == Replies(SAMPLE, 0, "", templated, 0, {})


def test_at_most_a_sample_is_read_from_the_first_prompt_to_the_last(organism, monkeypatch):
    read = []

    def noted(model, prompts):
        read.extend(prompts)
        return tokenize(model, prompts)

    monkeypatch.setattr("interp.scoring.replies.tokenize", noted)
    first_replies(organism, PROMPTS, SAMPLE)
    assert len(read) == SAMPLE
    assert (read[0], read[-1]) == (PROMPTS[0], PROMPTS[-1])
    assert {prompt.side for prompt in read} == {*SIDES}


def test_prompts_that_cannot_be_read_do_not_count(monkeypatch):
    def refused(model, prompts):
        raise UserError("it is too long")

    monkeypatch.setattr("interp.scoring.replies.tokenize", refused)
    assert first_replies(tiny_model("llama"), PROMPTS, SAMPLE) is None


@pytest.mark.parametrize(
    ("measure", "options"),
    [
        (interp.patch, EASY),
        (interp.effects, {"donors": 1}),
        (interp.edges, {"methods": ("gradient",)}),
        (interp.steer, {"layers": (0,)}),
        (interp.find_circuits, {}),
    ],
)
def test_a_model_that_replies_with_no_option_is_introduced_so(measure, options):
    result = measure(tiny_model("llama"), PROMPTS[:4], **options)
    found = [own for own in result.cautions if own.kind == OUTSIDE_OPTIONS]
    assert [own.numbers["share"] for own in found] == [1.0]
    assert found[0].voids and found[0].numbers["replies"] == 4
    assert result.cautions[0] == found[0]


def test_a_run_keeps_what_was_replied(tmp_path, organism):
    for name, model in (("tiny", tiny_model("llama")), ("organism", organism)):
        spec = Patch(**EASY)
        run = Run.open(tmp_path / name, spec.arranged(PROMPTS), spec)
        run.measure(bind(spec, model))
        (facts,) = InFolder(RunFolder.read(run.folder)).facts().values()
        assert facts.replies == first_replies(model, spec.arranged(PROMPTS), SAMPLE)


def test_what_shows_replies_by_itself_reads_them_once():
    result = interp.evaluate(tiny_model("llama"), PROMPTS[:4])
    (found,) = [own for own in result.cautions if own.kind == OUTSIDE_OPTIONS]
    assert found.numbers["replies"] == 4
    assert all(spec.compares_options for spec in (Edges, Effects, Patch, Steer))
    assert Evaluate().replies_read == FEW
    assert not interp.measurement("attribute").compares_options


def test_other_ways_of_asking_are_tried_where_replies_give_no_option(organism, monkeypatch):
    plain = replies._answers

    def only_after_a_prefix(model, prompts, reading="first"):
        shown = [
            own.messages.answer_prefix == "Answer:" or len(own.messages.demonstrations) == 4
            for own in prompts
        ]
        rows = plain(model, prompts, reading)
        return [row if one else row | {"answer": ""} for row, one in zip(rows, shown, strict=True)]

    monkeypatch.setattr(replies, "_answers", only_after_a_prefix)
    assert first_replies(organism, PROMPTS, FEW).asked == 0  # it has a chat template
    found = first_replies(organism, PROMPTS, FEW, thorough=True)
    assert (found.templated, found.asked) == (True, FEW)
    # Counted by evaluate, which reads the same prompts in its own way.
    for flag, asked in (
        ("--answer-prefix Answer:", {"answer_prefix": "Answer:"}),
        ("--shots 4", {"shots": 4}),
    ):
        around = interp.with_messages(PROMPTS, **asked)[:FEW]
        given = interp.evaluate(organism, list(around)).answers["answer"] != ""
        assert found.given[flag] == given.sum()
    assert found.given["--answers whole"] == 0
    own = [replace(prompt, text=f"{prompt.text}\nAnswer:") for prompt in PROMPTS]
    found = first_replies(organism, own, FEW, thorough=True)
    assert found.given and "--answer-prefix Answer:" not in found.given


def test_ways_are_tried_by_themselves_of_base_models_alone(monkeypatch):
    asked = []
    plain = replies._answers
    monkeypatch.setattr(
        replies, "_answers", lambda *given: asked.append(len(given[1])) or plain(*given)
    )
    base = make_tiny("llama", byte_level(None))
    found = first_replies(base, PROMPTS, FEW)
    assert (found.templated, found.outside, found.asked) == (False, FEW, FEW)
    assert list(found.given) == ["--answer-prefix Answer:", "--shots 4", "--answers whole"]
    assert sum(asked) == 4 * FEW
    asked.clear()
    # A template that is turned off is one too, so nobody is told that the model has none.
    instruct = make_tiny("llama", byte_level())
    plainly = replace(instruct, chat=replace(instruct.chat, template=False))
    assert not plainly.chat_frame.templated
    for model in (instruct, plainly):
        found = first_replies(model, PROMPTS, FEW)
        assert (found.templated, found.outside, found.given) == (True, FEW, {})
    assert sum(asked) == 2 * FEW


def test_the_ways_are_recorded_with_the_run(tmp_path, monkeypatch):
    tried = Replies(4, 4, "x", templated=True, asked=4, given={"--shots 4": 3})
    monkeypatch.setattr("interp.scoring.replies.first_replies", lambda *_, **__: tried)
    model = tiny_model("llama")
    run = interp.run(Evaluate(), models=model, prompts=PROMPTS[:8], out=tmp_path / "run")
    assert run.measured.facts()[model.name].replies == tuple(tried)
    assert "3 of 4 with --shots 4" in run.cautions[0].text
    assert interp.evaluate(model, PROMPTS[:8]).cautions[0].text == run.cautions[0].text


def test_forced_choices_stand_beside_the_accuracy_of_a_model_without_options():
    scores = interp.evaluate(tiny_model("llama"), PROMPTS)
    forced = scores.derived()["accuracy_by_reading"].set_index("reading")["accuracy"]
    forced = forced["most probable option"]
    (row,) = scores.summary().to_dict("records")
    assert row["paired_accuracy"] == 0 and row["forced_choice_accuracy"] == pytest.approx(forced)
    (shown, *_) = [item.frame for item in scores.glance().items if isinstance(item, TableItem)]
    told = shown.set_index("number")["value"].dropna()
    assert list(told.index) == ["replies right", "forced choices right"]
    assert told.tolist() == pytest.approx([0, forced])


def test_an_accuracy_of_options_stands_alone(organism):
    scores = interp.evaluate(organism, PROMPTS)
    assert "forced_choice_accuracy" not in scores.summary()

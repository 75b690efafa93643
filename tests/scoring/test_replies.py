"""What a model replies to a few prompts, counted from plain passes."""

from collections import Counter

import pytest
import torch

import interp
from interp.analysis.cautions.caution import OUTSIDE_OPTIONS
from interp.errors import UserError
from interp.measurements.specs import Edges, Effects, Patch, Steer
from interp.measuring.core import bind
from interp.reading.tokens import tokenize
from interp.results.measured import InFolder
from interp.runs.folder import RunFolder
from interp.runs.run import Run
from interp.scoring.replies import SAMPLE, Replies, first_replies
from interp_experiments.rulebreakers.prompts import SIDES
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

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
    found = first_replies(model, first)
    # The weights are random, and none of its tokens is an option.
    assert found == Replies(4, 4, Counter(said).most_common(1)[0][0])


def test_an_organism_replies_with_options(organism):
    assert first_replies(organism, PROMPTS) == Replies(SAMPLE, 0, "")


def test_at_most_a_sample_is_read_from_the_first_prompt_to_the_last(organism, monkeypatch):
    read = []

    def noted(model, prompts):
        read.extend(prompts)
        return tokenize(model, prompts)

    monkeypatch.setattr("interp.scoring.replies.tokenize", noted)
    first_replies(organism, PROMPTS)
    assert len(read) == SAMPLE
    assert (read[0], read[-1]) == (PROMPTS[0], PROMPTS[-1])
    assert {prompt.side for prompt in read} == {*SIDES}


def test_prompts_that_cannot_be_read_do_not_count(monkeypatch):
    def refused(model, prompts):
        raise UserError("it is too long")

    monkeypatch.setattr("interp.scoring.replies.tokenize", refused)
    assert first_replies(tiny_model("llama"), PROMPTS) is None


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
        assert facts.replies == first_replies(model, spec.arranged(PROMPTS))


def test_what_shows_replies_by_itself_reads_them_once():
    result = interp.evaluate(tiny_model("llama"), PROMPTS[:4])
    (found,) = [own for own in result.cautions if own.kind == OUTSIDE_OPTIONS]
    assert found.numbers["replies"] == 4
    assert all(spec.compares_options for spec in (Edges, Effects, Patch, Steer))
    assert not interp.measurement("attribute").compares_options

"""What `interp doctor` finds of models, tokenizers and numbers that are not as they should be."""

import copy
import itertools
import re
from dataclasses import replace

import pytest
from tokenizers import processors

import interp
from interp import doctor
from interp.analysis.cautions.caution import OUTSIDE_OPTIONS, SYSTEM_PROMPT, UNTESTED
from interp.doctor import cost, inputs, loaded, machine, numbers, objections, refusals, size
from interp.measurements.circuits import measure
from interp.measurements.specs import Circuits, Edges, Evaluate
from interp.measuring.core import bind, collect
from interp.models.model import Model
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.own.pairs import EXAMPLE
from interp.reading.tokens import tokenize
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import PLAIN_TEMPLATE, byte_level

PROMPTS = list(some_prompts(3))


def by_name(findings):
    return {finding.about: finding for finding in findings}


def read(model):
    return by_name(inputs(model, tokenize(model, PROMPTS)))


def doubling():
    """A tokenizer that writes the beginning of text, as its template does too."""
    tokenizer = copy.deepcopy(byte_level())
    tokenizer.backend_tokenizer.post_processor = processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", tokenizer.bos_token_id)]
    )
    return tokenizer


def test_a_second_beginning_of_text_is_reported_and_not_written():
    model = make_tiny("llama", doubling())
    assert "template" in read(model)["beginning of text"].note
    ids = tokenize(model, PROMPTS[:1])[0].token_ids
    assert ids.count(model.tokenizer.bos_token_id) == 1
    assert read(tiny_model("llama"))["beginning of text"].note == ""


def test_padding_that_ends_texts_is_reported():
    tokenizer = copy.deepcopy(byte_level())
    tokenizer.pad_token = tokenizer.eos_token
    assert "end of text" in read(make_tiny("llama", tokenizer))["padding token"].note
    assert read(tiny_model("llama"))["padding token"].note == ""


def test_tokens_of_answers_and_segments_are_those_that_count():
    found = read(tiny_model("llama"))
    option = PROMPTS[0].answer.options[0]
    token = byte_level().convert_tokens_to_ids(option.forms[0])
    assert f"({token})" in found[f"answer {option.name}"].found
    segments = tokenize(tiny_model("llama"), PROMPTS[:1])[0].segments
    start, end = segments["premise1"]
    assert f"premise1 {end - start}," in found["segments, tokens"].found


def test_first_tokens_that_are_only_a_part_of_an_option_are_named():
    model = tiny_model("llama")
    options = (AnswerOption("Yes", ("Yes", "Yq", "YQ")), AnswerOption("No", ("No",)))
    prompts = [replace(PROMPTS[0], answer=Choice(options, gold="Yes"))]
    found = by_name(inputs(model, tokenize(model, prompts)))
    assert found["answer No"].note == ""
    note = found["answer Yes"].note
    assert "'Y' (of Yq)" in note
    assert "(of Yes)" not in note


def test_sound_models_differ_by_rounding_alone():
    model = tiny_model("llama")
    found = by_name(numbers(model, tokenize(model, PROMPTS)))
    assert not any(finding.note for finding in found.values())
    assert found["logits with and without hooks"].found == "largest difference 0.0e+00"


def test_logits_that_depend_on_the_batch_are_reported(monkeypatch):
    model = tiny_model("llama")
    true = doctor._logits
    read = tokenize(model, PROMPTS)

    def spoiled(model, prompts):
        logits = true(model, prompts)
        return logits if len(prompts) == 1 else logits.roll(1, -1)

    monkeypatch.setattr(doctor, "_logits", spoiled)
    note = by_name(numbers(model, read))["logits of a single prompt and in a batch"].note
    assert re.match(rf"{len(PROMPTS)} .*\b{len(PROMPTS)} predictions", note)


def test_a_model_is_described():
    model = tiny_model("llama")
    found = by_name(loaded(model))
    count = model.hf.num_parameters()
    assert (
        f"LlamaForCausalLM, a causal language model; {count:,} parameters" in found["model"].found
    )
    assert found["context"].found == "512 tokens"
    assert found["architecture"].note == ""
    assert "torch" in by_name(machine())["versions"].found


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1,023 B"), (2048, "2 KiB"), (3 << 20, "3 MiB"), (5 << 30, "5.0 GiB")],
)
def test_sizes_are_written_in_binary_units(count, text):
    assert size(count) == text


STATES = EXAMPLE.assign(options="New York|New Jersey").replace(
    {"gold": {"Yes": "New York", "No": "New Jersey"}}
)


def test_what_a_model_will_refuse_is_what_evaluate_refuses():
    model = tiny_model("llama")
    for table in (EXAMPLE, STATES, EXAMPLE.assign(premise1="It rains. " * 400)):
        prompts = interp.read_pairs(table)
        measured = bind(Evaluate(), model).attempt(list(prompts))
        assert sorted(refusals(model, prompts)) == sorted(measured.errors.values())


def test_a_segment_without_a_token_of_its_own_is_refused_by_a_model():
    pairs = EXAMPLE.assign(premise1="th", premise2="e").assign(question=EXAMPLE["premise2"])
    prompts = interp.read_pairs(pairs, templates=["Is it {premise1}{premise2} {question}"])
    assert len(list(refusals(tiny_model("llama"), prompts))) == 8


def test_objections_come_from_the_answers_the_template_and_all_prompts():
    template = PLAIN_TEMPLATE.replace("{%", "You are Bo, a helper. {%", 1)
    model = make_tiny("llama", byte_level(template))
    found = by_name(objections(model, PROMPTS, some_prompts(3), system="rulebreakers"))
    assert "You are Bo, a helper." in found[SYSTEM_PROMPT].found
    assert UNTESTED in found
    assert OUTSIDE_OPTIONS in found  # random weights


@pytest.mark.parametrize("template", [None, PLAIN_TEMPLATE])
def test_what_helps_is_tried_with_demonstrations_from_all_prompts(template):
    prompts = interp.load_prompts()
    sample = prompts.spread(4)
    model = make_tiny("llama", byte_level(template))
    found = by_name(objections(model, sample, prompts, system="rulebreakers"))[OUTSIDE_OPTIONS]
    tried = {
        flag: int(count) for count, flag in re.findall(r"(\d+) of 4 with (--\S+)", found.found)
    }
    assert list(tried) == ["--answer-prefix", "--shots", "--answers"]
    shown = interp.evaluate(model, interp.with_messages(sample, shots=4)[:4]).answers
    assert tried["--shots"] == (shown["answer"] != "").sum()
    assert ("no chat template" in found.found) == (template is None)


def test_the_time_of_circuits_is_estimated_from_some_of_each_size(monkeypatch, capsys):
    model, now = tiny_model("llama"), 0.0

    def metrics(model, graph, streams, circuits, *, budget):
        nonlocal now
        different = {circuit.numpy().tobytes(): int(circuit.sum()) for circuit in circuits}
        now += sum(10 + edges / 5 for edges in different.values())
        return [0.0] * len(circuits)

    for module in (doctor, measure):
        monkeypatch.setattr(module, "circuit_metrics", metrics)
    ticks = itertools.count()
    monkeypatch.setattr(doctor.time, "perf_counter", lambda: now + next(ticks) / 1000)
    found = by_name(cost(model, PROMPTS, whole=6))["circuits, 1 pair"]
    minutes, seconds = map(int, found.found.split()[-1].split(":"))
    timed, every = map(int, re.findall(r"\d+", found.note))
    assert timed < every / 3
    effects = collect(bind(Edges(methods=("gradient",)), model), PROMPTS[:2])["edges"]
    before = now
    collect(measure.circuits_by(effects, model, Circuits()), PROMPTS[:2])
    assert 2 / 3 < (60 * minutes + seconds) / (now - before) < 3 / 2
    told = capsys.readouterr().err.splitlines()
    parts = ("evaluate", "attribute", "edges", "circuits")
    assert [line for line in told if line.startswith("timing ")] == [
        f"timing {part} ..." for part in parts
    ]


def test_circuits_are_only_timed_where_there_are_edges(monkeypatch):
    alone = by_name(cost(tiny_model("llama"), PROMPTS[:1], whole=6))
    assert alone["edges and circuits"].found == "not estimated"
    monkeypatch.setattr(Model, "is_mapped", False)
    found = by_name(cost(tiny_model("llama"), PROMPTS, whole=6))
    assert list(found) == ["evaluate, 6 prompts", "attribute, 6 prompts", "peak memory"]

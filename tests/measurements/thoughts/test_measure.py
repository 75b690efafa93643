"""What thoughts do to answers, on a model that writes short thoughts and attends to all it reads.

Every number is computed again from whole prompts, one by one, by transformers alone.
"""

from dataclasses import replace
from functools import cache
from statistics import fmean
from unittest.mock import patch

import numpy as np
import pytest
import torch

import interp
from interp.cli import main
from interp.errors import UserError
from interp.measurements.specs import Evaluate, Thoughts
from interp.measurements.thoughts.measure import _answered
from interp.measurements.thoughts.texts import DOT, exchanged
from interp.measuring.core import bind, collect
from interp.measuring.spec import Stage
from interp.models.find import find_model
from interp.models.loading import Loading
from interp.prompts.mixing import donors_of, mixed, with_donors
from interp.reading.tokens import tokenize
from interp.runs.execute import execute
from interp.runs.folder import RunFolder
from interp.runs.plan import RunPlan
from interp.scoring.answer_tokens import AnswerTokenizer
from interp.tables import TIE
from tests.support.prompts import some_prompts
from tests.support.thinking import QWEN3, follow, thinking_model

SCRIPT = {
    "Ċ": ["<think>"],
    "<think>": ["Paris", "London"],
    "Paris": ["."],
    "London": [".", "!"],
    ".": [" So", "</think>"],
    "!": ["</think>"],
    " So": ["Paris", "London"],
    "</think>": ["Yes"],
    "Yes": ["</s>"],
}
SPEC = Thoughts(draws=3, donors=1, max_new_tokens=14, segments=("premise1", "premise2"))


@cache
def attentive_model():
    """A model that mostly follows a script, but whose logits depend on everything that it read."""
    model = thinking_model(QWEN3, thinking="on")
    words = {word for own in SCRIPT.values() for word in own} - model.tokenizer.get_vocab().keys()
    model.tokenizer.add_tokens(sorted(words))
    model.hf.resize_token_embeddings(len(model.tokenizer), mean_resizing=False)
    layers = model.hf.model.layers
    kept = [layer.self_attn.o_proj.weight.detach().clone() for layer in layers]
    follow(model, SCRIPT)
    chance = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for layer, weight in zip(layers, kept, strict=True):
            layer.self_attn.o_proj.weight.copy_(4 * weight)
        head = model.hf.lm_head.weight
        head += 0.1 * torch.randn(head.shape, generator=chance)
    return model


@cache
def prompts():
    own = [p for p in some_prompts(12) if p.answer.options[0].name == "Yes"][:4]
    return tuple(with_donors(own_set(own), count=1, segments=SPEC.segments))


def own_set(own):
    chosen = some_prompts(12)
    ids = {prompt.id for prompt in own}
    return replace(chosen, numbers=[n for n in chosen.numbers if chosen.build(n).id in ids])


@cache
def tables():
    return collect(bind(SPEC, attentive_model()), prompts())


def read_ids(prompt):
    """The tokens of a prompt and its thought, by transformers."""
    tokenizer, message = attentive_model().tokenizer, [{"role": "user", "content": prompt.text}]
    written = tokenizer.apply_chat_template(
        message, tokenize=False, add_generation_prompt=True, enable_thinking=True
    )
    return tokenizer(written + prompt.thought.written, add_special_tokens=False)["input_ids"]


def value(prompt, about=None):
    """The value of a prompt with its thought: one pass over the whole text by transformers."""
    model = attentive_model()
    with torch.inference_mode():
        logits = model.hf(torch.tensor([read_ids(prompt)]), use_cache=False).logits[0, -1].double()
    (tokenized,) = tokenize(model, [replace(prompt, segments={}, roles={})])
    forms = AnswerTokenizer(model)(tokenized).of
    gold, other = sorted(forms, key=lambda name: name != (about or prompt).answer.gold)
    return (logits[[*forms[gold]]].logsumexp(0) - logits[[*forms[other]]].logsumexp(0)).item()


def drawn(prompt):
    """The thoughts that `interp generate` writes on a prompt with the same options."""
    model = attentive_model()
    asked = replace(prompt, donors=())
    spec = {"draws": SPEC.draws, "temperature": 1.0, "max_new_tokens": SPEC.max_new_tokens}
    found = interp.generate(model, [asked], **spec)
    return interp.with_thoughts(model, found.table("thoughts")).thoughts[prompt.id]


@cache
def studied():
    """A prompt all of whose own thoughts ended, with different numbers of sentences."""
    for prompt in prompts():
        thoughts = drawn(prompt)
        if all(t.ended for t in thoughts) and max(len(t.sentences) for t in thoughts) > 1:
            return prompt, thoughts
    raise AssertionError("no prompt with such thoughts; choose another seed of the model")


def rows_of(name, prompt):
    table = tables()[name]
    return table[table["prompt_id"] == prompt.id]


def changed_prompts(prompt):
    for donor in donors_of(prompt, "instance"):
        for segment in donor.segments:
            yield segment, mixed(prompt, donor, kept=[n for n in donor.segments if n != segment])
        yield "all", mixed(prompt, donor)
    for donor in donors_of(prompt, "counterpart"):
        yield "all", mixed(prompt, donor)


def test_effects_are_those_of_whole_prompts():
    prompt, own = studied()
    rows = rows_of("thought_effects", prompt)
    assert len(rows) == 4
    seen = 0
    for row, (segment, other) in zip(rows.itertuples(), changed_prompts(prompt), strict=True):
        assert (row.segment, row.draws_asked) == (segment, SPEC.draws)
        draws = [(t, u) for t, u in zip(own, drawn(other), strict=True) if u.ended]
        assert row.draws == len(draws)
        for name, texts in (
            ("own", [(prompt, t) for t, _ in draws]),
            ("changed", [(other, t) for t, _ in draws]),
            ("own_under_other", [(prompt, u) for _, u in draws]),
            ("changed_under_other", [(other, u) for _, u in draws]),
        ):
            expected = [value(replace(x, thought=t), about=prompt) for x, t in texts]
            np.testing.assert_allclose(getattr(row, name), expected, atol=1e-5)
            seen += len(expected)
    assert seen > 12


def check_early_answers(rows, prompt, thoughts, value):
    """The answers after none, some and all sentences of each thought that ended: how many."""
    rows = rows[rows["prompt_id"] == prompt.id]
    rows, seen = rows.set_index(["draw", "reading", "sentence"])["value"], 0
    for draw, thought in enumerate(thoughts):
        count = len(thought.sentences)
        for read in range(count + 1) if thought.ended else ():
            kind = "empty" if read == 0 else "whole" if read == count else "first"
            text = thought.holding(thought.sentences[:read])
            expected = value(replace(prompt, thought=text))
            assert rows[draw, kind, read] == pytest.approx(expected, abs=1e-5)
            seen += 1
    return seen


def test_early_answers_are_those_of_single_passes():
    prompt, own = studied()
    assert check_early_answers(tables()["thought_answers"], prompt, own, value) > 4
    # The end of thoughts may be given.
    model = attentive_model()
    given = replace(model, chat=replace(model.chat, end_of_thought="</think>"))
    found = collect(bind(SPEC, given), [prompt])["thought_answers"]
    rows = rows_of("thought_answers", prompt)
    assert found["reading"].tolist() == rows["reading"].tolist()
    np.testing.assert_allclose(found["value"], rows["value"], atol=1e-5)


@pytest.mark.parametrize("gold", ["Yes", "No"])
def test_equal_values_of_two_answers_are_a_tie(gold):
    other = {"Yes": "No", "No": "Yes"}[gold]
    row = _answered({"Yes": 1.5, "No": 1.5, "Maybe": 0.0}, gold, other)
    assert row == {"value": 0.0, "answer": TIE, "correct": False}
    assert _answered({"Yes": 2.0, "No": 1.5}, "Yes", "No")["correct"]


def test_what_stands_in_the_place_of_a_thought():
    prompt, own = studied()
    rows = rows_of("thought_answers", prompt)
    everything = next(other for segment, other in changed_prompts(prompt) if segment == "all")
    tokenizer = attentive_model().tokenizer
    for draw, (thought, about_other) in enumerate(zip(own, drawn(everything), strict=True)):
        mine = rows[rows["draw"] == draw].set_index("reading")
        dots = len(tokenizer(thought.text, add_special_tokens=False)["input_ids"])
        filler = thought.holding([" ".join([DOT] * dots)])
        expected = value(replace(prompt, thought=filler))
        assert mine.loc["filler", "value"] == pytest.approx(expected, abs=1e-5)
        if about_other.ended:
            expected = value(replace(prompt, thought=thought.holding(about_other.sentences)))
            assert mine.loc["placebo", "value"] == pytest.approx(expected, abs=1e-5)
            places = [
                place
                for place, (a, b) in enumerate(
                    zip(thought.sentences, about_other.sentences, strict=False)
                )
                if a.strip() != b.strip()
            ]
            found = rows[(rows["draw"] == draw) & (rows["reading"] == "mistake")]
            if draw > 0:  # only the sentences of the first thought are studied
                assert found.empty
                continue
            assert found["sentence"].tolist() == [place + 1 for place in places]
            for place, got in zip(places, found["value"], strict=True):
                said = list(thought.sentences)
                said[place] = about_other.sentences[place].strip() + " "
                text = value(replace(prompt, thought=thought.holding(said)))
                assert got == pytest.approx(text, abs=1e-5)


def test_the_direct_answer_is_that_with_thinking_off():
    model = attentive_model()
    direct = replace(model, chat=replace(model.chat, thinking="off"))
    plain = [replace(prompt, donors=()) for prompt in prompts()]
    options = interp.evaluate(direct, plain).table("option_probabilities")
    best = options.groupby("prompt_id")["relative_probability"].idxmax()
    answers = options.loc[best].set_index("prompt_id")["option"]
    rows = tables()["thought_answers"]
    rows = rows[rows["reading"] == "direct"]
    assert len(rows) >= 1
    assert rows["answer"].tolist() == answers[rows["prompt_id"]].tolist()
    gold = {prompt.id: prompt.answer.gold for prompt in plain}
    assert rows["correct"].tolist() == [
        row.answer == gold[row.prompt_id] for row in rows.itertuples()
    ]


def test_sentences_by_three_definitions():
    prompt, own = studied()
    rows = rows_of("sentence_effects", prompt)
    first = own[0]
    whole = value(replace(prompt, thought=first))
    assert rows["text"].tolist() == [sentence.strip() for sentence in first.sentences]
    for place, row in enumerate(rows.itertuples()):
        said = list(first.sentences)
        without = first.holding([*said[:place], *said[place + 1 :]])
        expected = whole - value(replace(prompt, thought=without))
        assert row.left_out == pytest.approx(expected, abs=1e-5)
        others = [t.sentences[place].strip() for t in own if len(t.sentences) > place]
        different = [other for other in others if other != said[place].strip()]
        if different:
            said[place] = f"{different[0]} "
            expected = whole - value(replace(prompt, thought=first.holding(said)))
            assert row.exchanged == pytest.approx(expected, abs=1e-5)
        else:
            assert np.isnan(row.exchanged)
    # From the first sentence on, thoughts are the other draws, and after the last one, the thought.
    drawn_again = fmean(value(replace(prompt, thought=thought)) for thought in own[1:])
    assert rows["resampled"].sum() == pytest.approx(whole - drawn_again, abs=1e-5)


def test_thoughts_that_the_model_has_are_not_written_again():
    prompt, own = studied()
    model = replace(attentive_model(), thoughts={prompt.id: own[::-1]})
    table = collect(bind(SPEC, model), [prompt])["thought_effects"]
    expected = rows_of("thought_effects", prompt)
    whole = table["draws"] == SPEC.draws
    for got, old in zip(table["own"][whole], expected["own"][whole.to_numpy()], strict=True):
        np.testing.assert_allclose(got, old[::-1], atol=1e-5)
    few = replace(model, thoughts={prompt.id: own[:1]})
    with pytest.raises(UserError, match=rf"\b1 thought\b.*{prompt.id}; .*\b3\b.*--draws"):
        collect(bind(SPEC, few), [prompt])


def test_a_thought_that_never_ends_is_counted_and_an_error_if_all_are_so():
    table = tables()
    failed = table["thought_answers"]["error"].str.startswith("none of 3 thoughts ended")
    reported = set(table["thought_answers"]["prompt_id"])
    assert reported == {prompt.id for prompt in prompts()}
    effects = table["thought_effects"]
    assert not set(effects["prompt_id"]) & set(table["thought_answers"]["prompt_id"][failed])
    assert (effects["draws"] <= effects["draws_asked"]).all()
    short = SPEC.model_copy(update={"max_new_tokens": 1})
    with pytest.raises(UserError, match=r"tiny llama.*\b3\b.*--max-new-tokens"):
        collect(bind(short, attentive_model()), prompts())


def test_an_exchanged_sentence_keeps_the_white_space_of_its_place():
    assert exchanged(["One. ", "Two.\n"], 1, "Three. ") == ["One. ", "Three.\n"]


@pytest.mark.parametrize(
    ("spec", "thinking", "refused"),
    [
        (Thoughts(), "off", r"organism/thought-mixed-50\b[^:]*\(--thinking on\)"),
        (Evaluate(), "on", r"organism/thought-mixed-50\b.*--thoughts"),
    ],
)
def test_a_model_is_refused_before_its_weights_are_loaded(tmp_path, spec, thinking, refused):
    folder = tmp_path / "run"
    found = find_model("organism/thought-mixed-50", Loading(thinking=thinking))
    stage = Stage(spec.name, some_prompts(2), spec)
    plan = RunPlan(folder, {folder: stage}, {found.name: found}, Loading(thinking=thinking))
    with (
        patch.object(RunPlan, "model", side_effect=AssertionError),
        pytest.raises(UserError, match=refused),
    ):
        execute(plan)


@pytest.mark.slow
def test_thinking_is_turned_on_by_itself(tmp_path):
    folder = tmp_path / "run"
    options = ["--model", "organism/thought-reader", "--limit", "1", "--draws", "2"]
    assert main(["thoughts", *options, "--out", str(folder)]) == 0
    (record,) = RunFolder.read(folder).models().values()
    assert record.chat["thinking"] == "on"
    spec = Thoughts(draws=2)
    (model,) = interp.run(spec, models="organism/thought-reader", limit=1).measured.models()
    assert model == "organism/thought-reader"
    marked = Thoughts.with_thinking({"end_of_thought": "Answer:"})
    assert Loading(**marked).chat().thinks
    assert Evaluate.with_thinking({}) == {}


def test_thinking_that_is_turned_off_or_that_a_model_lacks_is_refused(tmp_path, capsys):
    folder, out = tmp_path / "run", ["--out", str(tmp_path / "run")]
    assert main(["thoughts", "--model", "organism/thought-reader", "--thinking", "off", *out]) == 2
    assert "thoughts turns thinking on by itself" in capsys.readouterr().err
    file = tmp_path / "options.yaml"
    file.write_text("thinking: 'off'\n")
    assert main(["thoughts", "--config", str(file)]) == 2
    with pytest.raises(UserError, match="turns thinking on by itself"):
        interp.run(Thoughts(), models="organism/thought-reader", thinking="off", limit=1)
    capsys.readouterr()
    with patch("interp.runs.plan.load_found", side_effect=AssertionError):
        assert main(["thoughts", "--model", "organism/llama-shallow", *out]) == 2
    assert "does not seem to think" in capsys.readouterr().err
    assert not folder.exists()

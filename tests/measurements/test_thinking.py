"""Thoughts that models with a script generate, and everything that reads them."""

import dataclasses
from collections import Counter

import numpy as np
import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.specs import Evaluate, Thoughts
from interp.measuring.core import bind
from interp.prompts.mixing import mixed, with_donors
from interp.prompts.prompt import Donor
from interp.prompts.prompt_set import PromptSet
from interp.reading.tokens import tokenize
from interp.runs.shards import cut
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.prompts import some_prompts
from tests.support.thinking import DEEPSEEK_R1, GPT_OSS, MAGISTRAL, QWEN3, follow, thinking_model

BEGUN = "Ċ"
"""The last token of the generation prompt of Qwen3 and DeepSeek-R1, as the tokenizer spells it."""
SCRIPT = {
    BEGUN: ["<think>"],
    "<think>": ["Paris", "London"],
    "Paris": ["."],
    "London": ["."],
    ".": ["</think>"],
    "</think>": ["Yes"],
    "Yes": ["</s>"],
}


def scripted(template, script, **chat):
    model = thinking_model(template, thinking="on", **chat)
    words = {word for own in script.values() for word in own} - model.tokenizer.get_vocab().keys()
    model.tokenizer.add_tokens(sorted(words))
    model.hf.resize_token_embeddings(len(model.tokenizer), mean_resizing=False)
    follow(model, script)
    return model


@pytest.fixture(scope="module")
def model():
    return scripted(QWEN3, SCRIPT)


@pytest.fixture(scope="module")
def prompts():
    return [prompt for prompt in some_prompts(6) if prompt.answer.options[0].name == "Yes"][:6]


def test_thoughts_are_cut_at_the_mark_and_answers_read_where_the_model_writes_them(model, prompts):
    found = interp.generate(model, prompts, max_new_tokens=12)
    thoughts = found.table("thoughts")
    assert list(thoughts["prompt_id"]) == [prompt.id for prompt in prompts]
    for row in thoughts.itertuples():
        assert row.before == "<think>"
        assert list(row.sentences) in (["Paris."], ["London."])
        assert (row.after, row.finished, row.forced) == ("</think>\n\n", "marker", False)
        assert (row.tokens, row.same_tokens, row.draw) == (4, True, 0)
        assert model.tokenizer.decode(row.token_ids) == f"<think>{row.sentences[0]}</think>"
        assert (row.completion, row.answer, row.outcome) == ("Yes", "Yes", "answered")
    assert (found.completions["completion"] == "Yes").all()
    assert (found.completions["tokens"] == 5).all()
    thinking = interp.with_thoughts(model, thoughts)
    assert (interp.evaluate(thinking, prompts).answers["error"] == "").all()
    thought = thinking.thoughts[prompts[0].id][0]
    (read,) = tokenize(thinking, [dataclasses.replace(prompts[0], thought=thought)])
    text = model.tokenizer.apply_chat_template(
        [{"role": "user", "content": prompts[0].text}], add_generation_prompt=True, tokenize=False
    )
    assert read.chat.text == f"{text}<think>{thought.text}</think>\n\n"


def test_draws_follow_the_models_distribution(model, prompts):
    spec = {"max_new_tokens": 12, "temperature": 1.0}
    thoughts = interp.generate(model, prompts, draws=40, **spec).table("thoughts")
    counts = Counter(sentences[0] for sentences in thoughts["sentences"])
    assert sum(counts.values()) == 240 and set(counts) == {"Paris.", "London."}
    assert abs(counts["Paris."] - 120) < 4 * np.sqrt(60)  # four standard deviations of Binomial
    few = interp.generate(model, prompts[2:4], draws=3, **spec).table("thoughts")
    same = thoughts.merge(few, on=["prompt_id", "draw"])
    assert len(same) == 6  # neither batch nor number of draws changes a draw
    assert [*map(list, same["sentences_x"])] == [*map(list, same["sentences_y"])]


def test_a_thought_without_an_end_is_a_class_of_its_own(prompts):
    model = scripted(QWEN3, {**SCRIPT, ".": ["Paris"]})
    found = interp.generate(model, prompts, max_new_tokens=12)
    thoughts = found.table("thoughts")
    assert set(thoughts["finished"]) == {"length"} and not thoughts["forced"].any()
    assert set(thoughts["outcome"]) == {"unparsed"} and set(thoughts["after"]) == {""}
    shown = found.derived()["thought_table"]
    assert shown[["thoughts", "ended", "too_long"]].to_numpy().tolist() == [[6, 0, 6]]
    with pytest.raises(UserError, match=r"tiny llama.*RULEBREAKER_\S+ .*--force-end\b"):
        interp.evaluate(interp.with_thoughts(model, thoughts), prompts)
    ended = scripted(QWEN3, {**SCRIPT, ".": ["</s>"]})
    eos = interp.generate(ended, prompts, max_new_tokens=12).table("thoughts")
    assert set(eos["finished"]) == {"eos"}


def test_an_end_can_be_forced_and_is_recorded(prompts):
    endless = {"[/INST]": ["[THINK]"], "[THINK]": ["Paris"], "Paris": ["."], ".": ["Paris"]}
    model = scripted(MAGISTRAL, {**endless, "[/THINK]": ["No"], "No": ["</s>"]})
    found = interp.generate(model, prompts, max_new_tokens=12, force_end=True)
    thoughts = found.table("thoughts")
    assert thoughts["forced"].all() and set(thoughts["finished"]) == {"length"}
    assert set(thoughts["after"]) == {"[/THINK]"} and set(thoughts["tokens"]) == {12}
    # The answer that is generated there is the one that is read there.
    scores = interp.evaluate(interp.with_thoughts(model, thoughts), prompts)
    assert set(scores.answers["answer"]) == set(thoughts["answer"]) == {"No"}
    assert found.derived()["thought_table"]["forced"].tolist() == [len(prompts)]


def test_the_template_may_open_the_thought_or_answers_have_a_channel(prompts):
    opened = {key: own for key, own in SCRIPT.items() if key != BEGUN} | {BEGUN: ["Paris"]}
    thoughts = interp.generate(scripted(DEEPSEEK_R1, opened), prompts).table("thoughts")
    assert set(thoughts["before"]) == {""} and set(thoughts["after"]) == {"</think>"}
    marks = thinking_model(GPT_OSS, thinking="on").thought_marks
    thought, answer = marks.cut(
        "<|channel|>analysis<|message|>Paris is in France.<|end|><|start|>assistant<|channel|>final"
        "<|message|>Yes"
    )
    assert (thought.text, answer) == ("Paris is in France.", "Yes")
    assert thought.before == "<|channel|>analysis<|message|>"


def test_options_that_contradict_thinking_or_need_it_are_refused(model, prompts):
    off = thinking_model(QWEN3)
    for own, options, message in (
        (model, {"draws": 2}, r"\b2 draws.*\b0\b.*\b0\.7\b"),
        (model, {"stop": ("x",)}, r"--stop.*'x'.*--stop"),
        (off, {"draws": 2, "temperature": 1.0}, r"tiny llama.*thinking on\b"),
        (off, {"force_end": True}, r"tiny llama.*thinking on\b"),
    ):
        with pytest.raises(UserError, match=message):
            interp.generate(own, prompts, **options)
    with pytest.raises(UserError, match=r"tiny llama.*--thinking on\b"):
        interp.with_thoughts(off, interp.generate(off, prompts).completions)
    with pytest.raises(UserError, match=r"tiny llama.*--thinking on\b"):
        bind(Thoughts(), off)


def test_other_thoughts_are_other_shards(model, prompts, tmp_path):
    marks = model.thought_marks
    ids = {
        cut(
            bind(Evaluate(), dataclasses.replace(model, thoughts={prompts[0].id: (thought,)})),
            PromptSet.of(prompts),
            tmp_path,
        )[0].id
        for thought in (marks.thought("Paris."), marks.thought("London."))
    }
    assert len(ids) == 2


def thinking(model, prompts, *draws):
    """The model with thoughts of these sentences on each prompt."""
    marks = model.thought_marks
    own = tuple(marks.thought(draw) for draw in draws)
    return dataclasses.replace(model, thoughts={prompt.id: own for prompt in prompts})


@pytest.fixture(scope="module")
def random_model():
    """A model whose layers read everything before, unlike one with a script."""
    return thinking_model(QWEN3, thinking="on")


PARTS = ["thought1", "thought2"]
SAID = "Paris is in France. So it follows."
OTHER = "London is in England. Then it may not follow! No."


@pytest.mark.parametrize("method", ["input_gradient", "attention", "frozen_norms"])
def test_attributions_name_the_sentences_and_add_up(random_model, prompts, method):
    model = thinking(random_model, prompts, SAID)
    found = interp.attribute(model, prompts, methods=(method,), keep_tokens=True)
    scores = found.segment_scores
    own = scores.groupby("prompt_id")["segment"].agg(set)
    assert all({*PARTS, "premise1", "premise2"} <= segments for segments in own)
    assert scores.groupby("prompt_id")["share"].sum().to_numpy() == pytest.approx(1, abs=1e-6)
    whole = found.derived()["thought_scores"].set_index("segment")["share"]
    assert whole.sum() == pytest.approx(1, abs=1e-6)
    parts = found.segments().set_index("segment")["share"]
    assert whole["thought"] == pytest.approx(parts[PARTS].sum(), abs=1e-9)
    shown = found.heat_map().html
    assert "follows" in shown and "hought" in shown


def test_deleting_a_sentence_is_reading_the_thought_without_it(random_model, prompts):
    """The deletion score of the first sentence, against a text that never had it."""
    model = thinking(random_model, prompts, SAID)
    options = {"methods": ("leave_one_out:deletion",), "target": "margin"}
    scores = interp.attribute(model, prompts[:2], **options).segment_scores
    for prompt in prompts[:2]:
        intact = dataclasses.replace(prompt, thought=model.thoughts[prompt.id][0])
        (read,) = tokenize(model, [intact])
        start, end = read.segments["thought1"]
        shorter = read.token_ids[:start] + read.token_ids[end:]
        yes, no = prompt.answer.contrast
        whole, left = (answer_gap(model, intact, yes, no, ids) for ids in (read.token_ids, shorter))
        own = scores[(scores["prompt_id"] == prompt.id) & (scores["segment"] == "thought1")]
        assert own["score"].item() == pytest.approx(np.sign(whole) * (whole - left), abs=1e-5)


def test_effects_hold_a_single_thought_and_exchange_sentences_of_several(random_model, prompts):
    donor = Donor("Rome", "instance", {"premise1": "Anne is in Rome."})
    given = [dataclasses.replace(prompt, donors=(donor,)) for prompt in prompts[:2]]
    held = interp.effects(thinking(random_model, given, SAID), given, donors=1)
    assert set(held.table("segment_effects")["segment"]) == {"premise1"}
    model = thinking(random_model, given, SAID, OTHER)
    rows = interp.effects(model, given, donors=1).table("segment_effects")
    alone = rows[rows["other_segment"].isna()]
    assert [*alone["segment"].unique()] == ["premise1", *PARTS]
    for prompt in given:
        own = alone[alone["prompt_id"] == prompt.id].set_index("segment")
        answer, other = own.iloc[0][["answer", "other_answer"]]
        intact = dataclasses.replace(prompt, thought=model.thoughts[prompt.id][0])
        expected = {
            "premise1": mixed(intact, donor),
            "thought1": with_sentences(intact, ["London is in England. ", "So it follows."]),
            "thought2": with_sentences(intact, ["Paris is in France. ", "Then it may not follow!"]),
        }
        for segment, changed in expected.items():
            gap = answer_gap(model, intact, answer, other) - answer_gap(
                model, changed, answer, other
            )
            assert own.loc[segment, "leave_one_out"] == pytest.approx(gap, abs=1e-5)
        assert own["shapley"].sum() == pytest.approx(
            own["value"].iloc[0] - own["value_without"].iloc[0], abs=1e-9
        )
    narrowed = with_donors(given, count=1, segments=())
    chosen = interp.effects(model, narrowed, donors=1, segments=("thought2",))
    assert set(chosen.table("segment_effects")["segment"]) == {"thought2"}
    with pytest.raises(UserError, match=r"tiny llama.*RULEBREAKER_\S+ .*--draws 2\b"):
        one = thinking(random_model, given, SAID)
        interp.effects(one, given, donors=1, segments=("thought1",))


def with_sentences(prompt, sentences):
    return dataclasses.replace(prompt, thought=prompt.thought.holding(sentences))


def test_patches_reach_the_sentences_and_the_mark_that_ends_the_thought(random_model, prompts):
    model = thinking(random_model, prompts, SAID)
    model.thoughts[prompts[0].id] = (model.thought_marks.thought(OTHER),)
    found = interp.patch(model, prompts[:2], sites=("resid_pre", "resid_post"), layers=(1,))
    (pair,) = found.table("pairs").to_dict("records")
    assert pair["error"] == "" and pair["base_tokens"] != pair["source_tokens"]
    effects = found.table("patches").set_index(["site", "role"])["normalized"]
    # After the last layer only the last token counts; before it, all that the last token reads.
    late = effects["resid_post"]
    assert late["last"] == pytest.approx(1, abs=1e-5)
    assert late.drop("last").dropna().abs().max() < 1e-5
    early = effects["resid_pre"]
    assert early[[*PARTS, "end_of_thought", "last"]].abs().min() > 1e-4


def test_activations_and_edges_read_the_thought(random_model, prompts):
    model = thinking(random_model, prompts, SAID)
    at = {"roles": ("thought1", "end_of_thought"), "sites": ("resid_post",), "layers": (0,)}
    rows = interp.activations(model, prompts[:1], **at).table("activation_vectors")
    vectors = rows.set_index("group")["vector"]
    prompt = dataclasses.replace(prompts[0], thought=model.thoughts[prompts[0].id][0])
    (read,) = tokenize(model, [prompt])
    with torch.no_grad():
        output = model.hf(torch.tensor([read.token_ids]), output_hidden_states=True)
    for name, span in (("thought1", read.segments), ("end_of_thought", read.roles)):
        expected = output.hidden_states[1][0, span[name][1] - 1].numpy()
        assert vectors[name] == pytest.approx(expected, abs=1e-5)
    edges = interp.edges(model, prompts[:2]).table("pairs")
    assert set(edges["error"]) == {""} and (edges["base_tokens"] == len(read)).any()


def answer_gap(model, prompt, answer, other, token_ids=None):
    """The logit difference of two answers after these tokens or the prompt, from one plain pass."""
    (read,) = tokenize(model, [prompt])
    of = AnswerTokenizer(model)(read).of
    with torch.no_grad():
        logits = model.hf(torch.tensor([token_ids or read.token_ids])).logits[0, -1].double()
    return float(logits[list(of[answer])].logsumexp(0) - logits[list(of[other])].logsumexp(0))

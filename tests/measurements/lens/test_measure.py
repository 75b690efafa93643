"""Readings by hand: scores from plain passes, ranks, and the words among which is read."""

import dataclasses
import math

import numpy as np
import pandas as pd
import pytest
import torch

import interp
from interp.errors import UserError
from interp.lenses.corpus import sentences
from interp.lenses.final import FinalNorm, unembedding_rows
from interp.lenses.rows import EMBEDDING, own_rows, read_streams
from interp.lenses.store import fitted
from interp.measurements.lens.measure import first_token
from interp.measurements.specs import Lens
from interp.measuring.core import bind, collect
from interp.prompts.answers import AnswerOption, Choice, FreeText
from interp.prompts.prompt import Prompt, compose
from interp.reading.tokens import pad, tokenize
from tests.support.other_kinds import classifier
from tests.support.tiny import tiny_model

WORDS = ("A", "B", "C")


def prompt(city, *, place="is in", **factors):
    text, segments = compose([("city", city), (None, f" {place} ")])
    name, about = f"{city} {place}", {"city": city, **factors}
    return Prompt(name, text, segments, FreeText(("-",)), name, "one", about)


PROMPTS = [prompt("Oslo"), prompt("Rome"), prompt("Lima", place="lies somewhere in")]


def read(model, prompts=PROMPTS, *, batch_tokens=None, **options):
    """The rows of lens_readings."""
    spec = Lens(**options)
    measurement = bind(spec, model, batch_tokens=batch_tokens)
    return collect(measurement, spec.arranged(prompts))["lens_readings"]


def scores_of(readings, prompt, method, column="scores"):
    """The scores of a prompt's readings: (layer, word)."""
    own = readings[(readings["prompt_id"] == prompt.id) & (readings["method"] == method)]
    return np.stack(own.sort_values("layer")[column])


@pytest.mark.parametrize("kind", ["llama", "gpt2", "gemma2"])
def test_scores_are_rows_times_streams_by_hand(kind):
    model = tiny_model(kind)
    readings = read(model, words=WORDS, roles=("city",), methods=("jacobian", "own", "logit"))
    assert len(readings) == 3 * 3 * 3
    layers, tokens = [EMBEDDING, 0, 1], [first_token(model, word) for word in WORDS]
    rows = fitted(model, tokens, layers, sentences())
    norm, unembedding = FinalNorm(model), unembedding_rows(model, tokens)
    for one in PROMPTS:
        (tokenized,) = tokenize(model, [one])
        batch, place = pad(model, [tokenized]), tokenized.segments["city"][1] - 1
        with torch.no_grad(), model.measuring():
            found = read_streams(model, batch, layers)
        streams = torch.stack([found[layer][0, place] for layer in layers])
        scale = norm.scale(streams[-1])
        own = own_rows(model, batch, tokens, layers, [(0, place)])[:, :, 0]
        expected = {
            "jacobian": (torch.einsum("lwd,ld->lw", rows, streams) / scale),
            "own": torch.einsum("lwd,ld->lw", own, streams) / scale,
            "logit": streams @ unembedding.T / norm.scale(streams)[:, None],
        }
        alone = torch.einsum("lwd,d->lw", rows, streams[0]) / scale
        for method, numbers in expected.items():
            assert np.allclose(scores_of(readings, one, method), numbers, atol=1e-4)
        control = scores_of(readings, one, "jacobian", "from_embedding")
        assert np.allclose(control, alone, atol=1e-4)


def test_the_last_layers_scores_are_the_models_logits_whatever_the_batch():
    model = tiny_model("llama")
    readings = read(model, words=WORDS, methods=("logit", "jacobian"))
    tokens = [first_token(model, word) for word in WORDS]
    for one in PROMPTS:
        batch = pad(model, tokenize(model, [one]))
        with torch.no_grad(), model.measuring():
            logits = model.hf(input_ids=batch.token_ids).logits[0, -1, tokens]
        for method in ("logit", "jacobian"):
            assert np.allclose(scores_of(readings, one, method)[-1], logits, atol=1e-4)
    options = {"words": WORDS, "roles": ("city", "last"), "methods": ("jacobian", "own")}
    together, alone = (read(model, batch_tokens=n, **options) for n in (None, 1))
    for column in ("scores", "from_embedding"):
        assert np.allclose(np.stack(together[column]), np.stack(alone[column]), atol=1e-4)


def test_words_of_all_prompts_are_fitted_at_once(monkeypatch):
    model, fits = tiny_model("llama"), []

    def counted(model, token_ids, *rest, **options):
        fits.append(list(token_ids))
        return fitted(model, token_ids, *rest, **options)

    monkeypatch.setattr("interp.lenses.store.fitted", counted)
    pairs = [("Yes", "No"), ("True", "False"), ("A", "B")]
    chosen = [with_options(*own) for own in zip(PROMPTS, pairs, strict=True)]
    spec = Lens(methods=("jacobian",), layers=(0,))
    together = collect(bind(spec, model, batch_tokens=1), chosen)["lens_readings"]
    (words,) = fits
    assert len(set(words)) == len(words) == 6
    alone = bind(spec, model, batch_tokens=1)(chosen)["lens_readings"]
    assert sorted(fits[1:]) == sorted([words[:2], words[2:4], words[4:]])
    scores = np.stack([row["scores"] for row in alone])
    assert np.allclose(np.stack(together["scores"]), scores, atol=1e-6)


def with_options(prompt, words):
    answer = Choice(tuple(AnswerOption(word, (word,)) for word in words), words[0])
    return dataclasses.replace(prompt, answer=answer)


@pytest.fixture
def facts(tmp_path):
    file = tmp_path / "facts.csv"
    answers = {"Oslo": "Norway", "Rome": "Italy", "Lima": "Peru", "Bonn": "Germany"}
    rows = [{"fact": city, "text": f"{city} is in", "answer": a} for city, a in answers.items()]
    pd.DataFrame(rows).to_csv(file, index=False)
    return str(file)


def test_the_right_word_is_the_answer_of_the_fact(facts):
    readings = read(tiny_model("llama"), facts=facts, methods=("logit",), layers=(1,))
    assert set(readings["layer"]) == {EMBEDDING, 1}
    by_prompt = readings.drop_duplicates("prompt_id").set_index("prompt_id")
    assert by_prompt["right"].to_dict() == {
        "Oslo is in": "Norway",
        "Rome is in": "Italy",
        "Lima lies somewhere in": "Peru",
    }
    assert by_prompt["fact"].tolist() == ["Oslo", "Rome", "Lima"]
    for row in readings.itertuples():
        assert list(row.words) == ["Norway", "Italy", "Peru", "Germany"]
        right = row.scores[list(row.words).index(row.right)]
        others = [s for w, s in zip(row.words, row.scores, strict=True) if w != row.right]
        assert row.rank == 1 + sum(other >= right for other in others)
        expected = right - math.log(sum(map(math.exp, others)))
        assert row.log_odds == pytest.approx(expected, abs=1e-4)


def test_words_that_share_their_first_token_are_left_out(facts):
    table = pd.read_csv(facts)
    table.loc[len(table)] = ["Nancy", "Nancy is in", "Norse lands"]
    table.to_csv(facts, index=False)
    model = tiny_model("llama")
    assert first_token(model, "Norway") == first_token(model, "Norse lands")
    readings = read(model, facts=facts, methods=("logit",))
    assert set(readings["left_out"]) == {2}
    of_oslo = readings[readings["prompt_id"] == "Oslo is in"]
    assert of_oslo[["right", "rank", "log_odds"]].isna().all(axis=None)
    assert readings.loc[readings["prompt_id"] == "Rome is in", "rank"].notna().all()


def test_options_are_the_words_by_default_and_facts_of_a_system_are_found_by_their_subject(
    prompts, organism
):
    readings = read(organism, prompts[:4], methods=("logit",))
    at = {"roles": ("premise2_entity_b",), "methods": ("logit",)}
    about = read(organism, prompts[:4], facts="rulebreakers", **at)
    for one in prompts[:4]:
        own = readings[readings["prompt_id"] == one.id]
        assert set(own["right"]) == {one.answer.gold}
        assert {*own["words"].iloc[0]} == {option.name for option in one.answer.options}
        if one.side == "rulebreaker":
            right = about.loc[about["prompt_id"] == one.id, "right"]
            assert set(right.dropna()) <= {one.factors["entity_a"]}
    last = readings[readings["layer"] == readings["layer"].max()]
    answers = interp.evaluate(organism, prompts[:4]).table("answers")
    assert isinstance(prompts[0].answer, Choice)
    assert (last["rank"] == 1).tolist() == answers["correct"].tolist()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"layers": (7,)}, "no layer 7"),
        ({"roles": ("nobody",)}, "unknown segment or role"),
        ({"words": ("Yes",)}, "two words or more"),
        ({"words": ("Yes", "No"), "facts": "rulebreakers"}, "either facts or"),
        ({"facts": "no_such_file.csv"}, "no_such_file.csv"),
        ({"corpus": "no_such_file.txt"}, "no file no_such_file.txt"),
    ],
)
def test_bad_options_are_refused(options, reason):
    with pytest.raises(UserError, match=reason):
        read(tiny_model("llama"), **options)


def test_prompts_about_no_fact_and_other_kinds_of_models_are_refused(facts):
    with pytest.raises(UserError, match="is about no fact"):
        read(tiny_model("llama"), [prompt("Paris")], facts=facts)
    with pytest.raises(UserError, match="is about 2 facts"):
        read(tiny_model("llama"), [prompt("Oslo", twin="Rome")], facts=facts)
    with pytest.raises(UserError, match="sequence classifier"):
        read(classifier("bert"), words=WORDS)


def test_the_identity_tells_what_facts_and_corpus_hold(facts, tmp_path):
    corpus = tmp_path / "texts.txt"
    spec = Lens(facts=facts, corpus=corpus)
    seen = []
    for text, answer in (("One text.", "Norway"), ("Another.", "Norway"), ("Another.", "Sweden")):
        corpus.write_text(text)
        table = pd.read_csv(facts)
        table.loc[0, "answer"] = answer
        table.to_csv(facts, index=False)
        seen.append(str(spec.identity()))
    assert len(set(seen)) == 3

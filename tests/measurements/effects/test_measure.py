"""Effects of segments, against plain passes, captum and the patched premise."""

import dataclasses

import captum.attr
import numpy as np
import pytest
import torch

import interp
from interp.errors import UserError
from interp.measurements.specs import Effects
from interp.measuring import core
from interp.measuring.core import bind, collect
from interp.patching.cells import PatchingPair, cells_of
from interp.patching.exact import Grid
from interp.prompts.mixing import donors_of, mixed, with_donors
from interp.prompts.own.pairs import EXAMPLE, read_pairs
from interp.prompts.prompt import Donor, Prompt, compose
from interp.reading.budget import token_budget
from interp.reading.tokens import tokenize
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.answers import yes_no
from tests.support.broken import broken_by
from tests.support.prompts import some_prompts
from tests.support.systems import numbers, three_options
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level

SEGMENTS = ["premise1", "premise2", "conclusion"]
KEY = ["prompt_id", "donor_kind", "segment"]


def effects(model, prompts, **options):
    """The effects of single segments and of pairs of segments, and the values of coalitions."""
    result = interp.run(Effects(**options), models=model, prompts=prompts)
    rows = result.tables["segment_effects"]
    single = rows["other_segment"].isna()
    return rows[single], rows[~single], result.tables["coalition_values"]


def values_by_hand(model, prompt, donor):
    """ln(c+/c-) of every coalition by one plain pass each, the positive option first."""
    answers = AnswerTokenizer(model)(tokenize(model, [prompt])[0])
    positive, negative = (list(answers.of[name]) for name in prompt.answer.contrast)
    values = []
    for coalition in range(8):
        kept = [name for bit, name in enumerate(SEGMENTS) if coalition >> bit & 1]
        (tokenized,) = tokenize(model, [mixed(prompt, donor, kept=kept)])
        with torch.no_grad():
            p = model.hf(torch.tensor([tokenized.token_ids])).logits[0, -1].double().softmax(-1)
        values.append(float(torch.log(p[positive].sum() / p[negative].sum())))
    return np.array(values)


def test_a_prompt_costs_as_much_as_all_its_mixtures(monkeypatch):
    few, many = (with_donors(some_prompts(2), count=count)[0] for count in (1, 4))
    assert [len(prompt.donors) for prompt in (few, many)] == [2, 5]  # with the counterpart
    costs = []
    monkeypatch.setattr(core, "begin_step", lambda count, *, cost: costs.append(cost))
    # A small budget puts each prompt into a batch of its own.
    measurement = bind(Effects(), tiny_model("llama"), batch_tokens=1)
    measurement([few, dataclasses.replace(many, id="many")])
    assert costs == pytest.approx([4 / 7, 10 / 7])


@pytest.mark.parametrize("kind", ["llama", "gemma2", "gpt2"])
def test_effects_are_captums_over_the_same_coalitions(kind):
    model = tiny_model(kind)
    prompts = with_donors(some_prompts(2), count=2)
    alone, together, kept = effects(model, some_prompts(2), donors=2)
    assert len(alone) == 2 * 3 * len(prompts) and len(kept) == 2 * 8 * len(prompts)
    alone = alone.set_index(KEY).sort_index()
    together = together.set_index([*KEY, "other_segment"]).sort_index()
    for prompt in prompts:
        for which in ("instance", "counterpart"):
            games = [values_by_hand(model, prompt, d) for d in donors_of(prompt, which)]
            sign = 1 if games[0][-1] > 0 else -1
            own = kept[(kept["prompt_id"] == prompt.id) & (kept["donor_kind"] == which)]
            assert own["coalition"].tolist() == list(range(8))
            assert {tuple(names) for names in own["segments"]} == {tuple(SEGMENTS)}
            expected = sign * np.array(games).T
            np.testing.assert_allclose(np.stack(list(own["values"])), expected, atol=2e-5)
            shapley, left = [], []
            for game in games:

                def value(masks, game=game):
                    return torch.tensor([game[int(m @ torch.tensor([1.0, 2, 4]))] for m in masks])

                whole = torch.ones(1, 3)
                shapley.append(captum.attr.ShapleyValues(value).attribute(whole)[0].numpy())
                left.append(captum.attr.FeatureAblation(value).attribute(whole)[0].numpy())
            rows = alone.loc[(prompt.id, which)].loc[SEGMENTS]
            np.testing.assert_allclose(rows["shapley"], sign * np.mean(shapley, 0), atol=2e-5)
            np.testing.assert_allclose(rows["leave_one_out"], sign * np.mean(left, 0), atol=2e-5)
            assert rows["value"].unique() == pytest.approx(sign * games[0][-1], abs=2e-5)
            empty = sign * np.mean([game[0] for game in games])
            assert rows["value_without"].unique() == pytest.approx(empty, abs=2e-5)
            own, other = (rows[name].unique().item() for name in ("answer", "other_answer"))
            assert (own, other) == prompt.answer.contrast[::sign]
            if which == "instance":
                spread = np.std(shapley, 0, ddof=1)
                np.testing.assert_allclose(rows["shapley_sd"], spread, atol=2e-5)
            else:
                assert rows["shapley_sd"].isna().all()
            g = np.mean(games, 0)
            pair = ((g[3] - g[1] - g[2] + g[0]) + (g[7] - g[5] - g[6] + g[4])) / 2
            found = together.loc[(prompt.id, which, "premise1", "premise2"), "interaction"]
            assert found == pytest.approx(sign * pair, abs=2e-5)


def test_leave_one_out_by_donor_is_the_premise_patched_before_the_first_layer():
    model = make_tiny("llama", byte_level(), dtype=torch.float64)
    found = 0
    for prompt in with_donors(some_prompts(8), count=8):
        (base,) = tokenize(model, [prompt])
        for donor in donors_of(prompt, "instance"):
            for name in ("premise1", "premise2"):
                kept = set(SEGMENTS) - {name}
                (source,) = tokenize(model, [mixed(prompt, donor, kept=kept)])
                if found >= 6 or len(source) != len(base):
                    continue
                answers = AnswerTokenizer(model)(base).contrast(*prompt.answer.contrast)
                try:
                    pair = PatchingPair.aligned(base, source, answers, policy="all")
                except UserError:  # a longer name is made up for by a shorter one
                    continue
                found += 1
                cells = list(
                    cells_of(
                        model, base, ["resid_pre"], granularity="segment", layers=[0], heads=None
                    )
                )
                with model.measuring():
                    grid = Grid(model, budget=token_budget(model, None))
                    metrics = grid.patch(pair, cells)
                patched = dict(zip((cell.group.role for cell in cells), metrics.cells, strict=True))
                only = Donor(donor.name, "instance", donor.segments)
                game = values_by_hand(model, prompt, only)
                left = game[7] - game[7 ^ 1 << SEGMENTS.index(name)]
                assert metrics.base - patched[name] == pytest.approx(left, abs=1e-5)
                assert abs(left) > 1e-3
    assert found == 6


def test_a_segment_that_no_donor_changes_does_nothing():
    alone, together, _ = effects(tiny_model("llama"), some_prompts(6), donors=1)
    same = alone[alone["note"].str.contains("the same in all donors")]
    # Both sides of a pair under modus tollens have the same premise 2.
    assert set(same["donor_kind"]) == {"counterpart"}
    assert {"premise2"} <= set(same["segment"])
    assert (same[["shapley", "leave_one_out"]] == 0).all(axis=None)
    assert (alone.loc[alone["donor_kind"] == "instance", "shapley"] != 0).all()
    assert not together["note"].str.contains("the same").any()


def test_batches_budgets_and_shards_do_not_matter():
    model, prompts = tiny_model("llama"), some_prompts(2)
    reference, *_ = effects(model, prompts, donors=2)
    small = interp.run(Effects(donors=2), models=model, prompts=prompts, batch_tokens=100)
    rows = small.tables["segment_effects"]
    rows = rows[rows["other_segment"].isna()]
    for column in ("shapley", "leave_one_out", "value"):
        np.testing.assert_allclose(rows[column], reference[column], atol=2e-5)
    part, *_ = effects(model, list(with_donors(prompts, count=2))[:2])
    np.testing.assert_allclose(part["shapley"], reference["shapley"][: len(part)], atol=2e-5)


def test_some_segments_alone_are_exchanged_and_fewer_donors_than_asked_for_are_noted():
    alone, together, _ = effects(
        tiny_model("llama"), some_prompts(1), donors=200, segments=("premise1", "premise2")
    )
    assert set(alone["segment"]) == {"premise1", "premise2"}
    for _, rows in alone.groupby(["prompt_id", "donor_kind"]):
        total = rows["value"].iloc[0] - rows["value_without"].iloc[0]
        assert rows["shapley"].sum() == pytest.approx(total, abs=1e-9)
    assert len(together) == len(alone) // 2
    rows = alone[alone["donor_kind"] == "instance"]
    (count,) = rows["donors"].unique()
    assert set(rows["note"]) == {f"{count} of 200 donors"}
    assert all(len(names) == count for names in rows["donor_names"])
    # Prompts of one's own hold their donors.
    text, segments = compose([("one", "Ann runs."), (None, " "), ("two", "Bob sits.")])
    donors = tuple(Donor(name, "instance", {"one": f"{name} runs."}) for name in ("Eve", "Kim"))
    prompt = Prompt("1", text, segments, yes_no(), "p", "side", {}, donors=donors)
    alone, together, _ = effects(tiny_model("llama"), [prompt])
    assert alone["segment"].tolist() == ["one"] and together.empty
    assert list(alone["donor_names"].item()) == ["Eve", "Kim"]


def test_what_cannot_be_measured_is_refused():
    model = tiny_model("llama")
    with pytest.raises(UserError, match=r"three-options.*donors"):
        effects(model, three_options.prompts(seed=0, data=None))
    with pytest.raises(UserError, match=r"'premise3'.*premise1, premise2\b"):
        effects(model, some_prompts(1), segments=("premise3",))
    with pytest.raises(UserError, match=r"RULEBREAKER_\S+ .*donors"):
        effects(model, list(some_prompts(1)))
    (prompt, *_) = numbers.prompts(seed=0, data=None)
    named = next(iter(prompt.segments))
    donor = Donor("x", "instance", {named: "Anne has 1."})
    free = Prompt(
        "1", prompt.text, prompt.segments, prompt.answer, "p", "side", {}, donors=(donor,)
    )
    with pytest.raises(UserError, match=r"prompt 1\b.*generated text"):
        effects(model, [free])


def test_values_that_are_no_numbers_are_an_error():
    first, second = with_donors(some_prompts(1), count=1)
    model, broken = broken_by(first, second)
    tables = collect(bind(Effects(donors=1), model), [broken, second])
    rows, failed = tables["segment_effects"], tables["segment_effects"]["prompt_id"] == "broken"
    assert set(rows.loc[failed, "error"]) == {"non-finite"}
    assert rows.loc[failed, "shapley"].isna().all()
    assert set(tables["coalition_values"]["prompt_id"]) == {second.id}


def test_the_margin_that_methods_attribute_is_the_one_whose_effects_are_measured():
    """Options of several forms: all of them count."""
    pairs = read_pairs(EXAMPLE.assign(options="Yes//yes//True|No//no//False"))
    prompts, model = with_donors(pairs, count=3), tiny_model("llama")
    methods = ("leave_one_out:donor", "shapley")
    scores = interp.attribute(model, prompts, methods=methods, target="margin").segment_scores
    alone, *_ = effects(model, prompts, donors=3)
    alone = alone[alone["donor_kind"] == "instance"].set_index(["prompt_id", "segment"])
    for method, column in zip(methods, ("leave_one_out", "shapley"), strict=True):
        own = scores[scores["method"] == method].set_index(["prompt_id", "segment"])["score"]
        own = own.reindex(alone.index)
        assert own.abs().max() > 0.1
        np.testing.assert_allclose(own, alone[column], atol=1e-5)

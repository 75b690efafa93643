"""Steering: which words and tokens are changed, and effects against changes by hand."""

import dataclasses

import pandas as pd
import pytest
import torch

import interp
from interp.errors import UserError
from interp.lenses.rows import logit_rows
from interp.lenses.store import fitted
from interp.measurements.specs import Steer
from interp.measurements.steering.directions import joined_tokens
from interp.measurements.steering.measure import band_of
from interp.measuring.core import bind, collect
from interp.patching.pairs import in_pairs
from interp.prompts.mixing import donors_of, mixed, with_donors
from interp.reading.tokens import tokenize, tokens_of
from interp.scoring.answer_tokens import AnswerTokenizer
from tests.support.hooks import hooked
from tests.support.other_kinds import classifier
from tests.support.pairs import plain_metric
from tests.support.prompts import some_prompts

TOLERANCE = 1e-5
ROLE = "premise1_entity_b"
KEYS = ["prompt_id", "direction", "change", "dose", "role", "layer"]


@pytest.fixture(scope="module")
def prompts():
    return some_prompts(2)


def steered(model, prompts, **options):
    options = {"directions": ("logit",), "draws": 1, **options}
    return interp.steer(model, prompts, **options)


def metric_of(model, prompt, change=lambda output: None, layer=0):
    """The metric of a prompt, gold minus other, with a change of a layer's output."""
    (tokenized,) = tokenize(model, [prompt])
    options = [option.name for option in prompt.answer.options]
    other = next(name for name in options if name != prompt.answer.gold)
    answers = AnswerTokenizer(model)(tokenized).contrast(prompt.answer.gold, other)
    layers = model.hf.get_submodule(model.architecture.layers)
    with hooked(layers[layer], "out", change):
        return plain_metric(model, tokenized.token_ids, answers)


def put(change, at):
    """A change that passes the streams of some tokens through a function."""

    def changed(streams):
        streams = streams.clone()
        streams[0, at] = change(streams[0, at])
        return streams

    return changed


@pytest.mark.parametrize("change", ["swap", "project", "add"])
@pytest.mark.parametrize("tokens", ["last", "all"])
def test_effects_of_words_equal_changes_by_hand(model, prompts, change, tokens):
    result = steered(model, prompts, changes=(change,), roles=(ROLE,), tokens=tokens, layers=(1,))
    rows = result.to_frame()
    rows = rows[rows["source"] == "direction"].set_index("prompt_id")
    for prompt in prompts:
        (tokenized,) = tokenize(model, [prompt])
        at = tokens_of(tokenized, ROLE)[-1 if tokens == "last" else 0 :]
        assert rows.loc[prompt.id, "tokens"] == len(at)
        gold = prompt.answer.gold
        other = next(o.name for o in prompt.answer.options if o.name != gold)
        forms = {o.name: o.forms for o in prompt.answer.options}
        units = []
        for name in (gold, other):
            ids = list(
                dict.fromkeys(
                    model.tokenizer.encode(form, add_special_tokens=False)[0]
                    for form in forms[name]
                )
            )
            row = logit_rows(model, ids, [1])[0].double().mean(0)
            units.append(row / row.norm())
        across = (units[1] - units[0]) / (units[1] - units[0]).norm()

        def by_hand(streams, units=units, across=across):
            wide = streams.double()
            if change == "swap":
                new = wide - 2 * (wide @ across)[:, None] * across
            elif change == "add":
                new = wide + wide.norm(dim=1)[:, None] * across
            else:
                both = torch.stack(units)
                new = wide - torch.linalg.lstsq(both.T, wide.T).solution.T @ both
            return new.float()

        plain = metric_of(model, prompt) - metric_of(model, prompt, put(by_hand, at), layer=1)
        assert rows.loc[prompt.id, "effect"] == pytest.approx(plain, abs=TOLERANCE)


def test_the_difference_between_sides_is_that_of_donors(model):
    prompts = with_donors(in_pairs(some_prompts(2)), count=3)
    result = steered(
        model,
        some_prompts(2),
        directions=("difference",),
        changes=("add",),
        roles=(ROLE,),
        layers=(0,),
        donors=3,
    )
    rows = result.to_frame()
    rows = rows[rows["source"] == "direction"].set_index("prompt_id")
    pairs = list(zip(prompts[::2], prompts[1::2], strict=True))
    assert {one.id for pair in pairs for one in pair if one.factors["rule"] == "mt"} == set(
        rows.index
    )  # under ds, the city comes first, where both sides are the same
    for one, other in [(a, b) for pair in pairs for a, b in (pair, pair[::-1])]:
        if one.id not in rows.index:
            continue
        means = []
        for prompt in (one, other):
            streams = []
            for donor in donors_of(prompt, "instance"):
                (tokenized,) = tokenize(model, [mixed(prompt, donor)])
                kept = {}
                at = tokens_of(tokenized, ROLE)
                metric_of(
                    model,
                    mixed(prompt, donor),
                    put(lambda streams, kept=kept: kept.setdefault("own", streams), at),
                )
                streams.append(kept["own"].mean(0))
            assert len(streams) == 3
            means.append(torch.stack(streams).mean(0))
        across = means[1] - means[0]
        across = across / across.norm()
        (tokenized,) = tokenize(model, [one])
        hook = put(
            lambda s, across=across: s + s.norm(dim=1)[:, None] * across, tokens_of(tokenized, ROLE)
        )
        plain = metric_of(model, one) - metric_of(model, one, hook)
        assert rows.loc[one.id, "effect"] == pytest.approx(plain, abs=TOLERANCE)


def test_words_are_those_of_both_prompts_and_of_a_donor(model, prompts):
    result = steered(model, prompts, words="entity_a", roles=(ROLE,), layers=(0,))
    table = result.table("steered").set_index("prompt_id")
    by_side = {(p.pair_id, p.side): p for p in prompts}
    sides = list(prompts.sides)
    for prompt in prompts:
        other = by_side[prompt.pair_id, sides[sides[0] == prompt.side]]
        own = table.loc[prompt.id]
        assert (own["own_word"], own["other_word"]) == (
            prompt.factors["entity_a"],
            other.factors["entity_a"],
        )
        assert own["third_word"] not in (own["own_word"], own["other_word"], None)
    assert set(result.to_frame()["source"]) == {"direction", "placebo", "third"}


def test_rows_are_complete_and_placebos_differ_by_draw(model, prompts):
    options = {"draws": 3, "side": "rulebreaker"}
    result = steered(
        model,
        prompts,
        changes=("project", "add"),
        roles=(ROLE, "last"),
        doses=(0.5, 2.0),
        **options,
    )
    rows = result.to_frame()
    plain, placebos = (rows[rows["source"] == name] for name in ("direction", "placebo"))
    assert len(plain) == 2 * 2 * 2 * 2 * 2  # prompts, changes, roles, doses, layers
    assert len(placebos) == 3 * len(plain)
    assert not plain.duplicated(KEYS).any()
    spread = placebos.groupby(KEYS)["effect"].nunique()
    assert (spread[spread.index.get_level_values("role") == "last"] == 3).all()
    assert set(result.table("steered")["prompt_id"]) == {
        p.id for p in prompts if p.side == "rulebreaker"
    }
    options |= {"changes": ("add",), "roles": ("last",), "layers": (1,)}
    frames = [
        steered(model, prompts, **options, batch_tokens=tokens).to_frame() for tokens in (None, 64)
    ]
    pd.testing.assert_frame_equal(*frames, atol=TOLERANCE)


def test_a_band_changes_its_layers_together(model, prompts):
    band = steered(model, prompts, band=True, layers=(0, 1), roles=(ROLE,)).to_frame()
    assert band["layer"].isna().all()
    alone = steered(model, prompts, band=True, layers=(1,), roles=(ROLE,)).to_frame()
    single = steered(model, prompts, layers=(1,), roles=(ROLE,)).to_frame()
    assert alone["effect"].tolist() == pytest.approx(single["effect"].tolist(), abs=TOLERANCE)
    assert band["effect"].tolist() != pytest.approx(alone["effect"].tolist(), abs=TOLERANCE)


@pytest.mark.parametrize(
    ("layers", "band"), [(1, [0]), (2, [1]), (3, [1, 2]), (30, list(range(11, 28)))]
)
def test_the_default_band(layers, band):
    assert list(band_of(layers)) == band


def test_joined_roles_are_changed_together_as_far_as_there_are_any(model, prompts):
    names = ("premise1_entity_b", "premise2_entity_b", "conclusion_entity_b")
    for tokenized in tokenize(model, list(prompts)):
        both = joined_tokens(tokenized, role="+".join(names), last=False)
        assert both == sorted(at for name in names for at in tokens_of(tokenized, name))
        assert len(both) >= 2


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"directions": ("difference",)}, "single direction"),
        ({"doses": (0.0,)}, "dose is 0"),
        ({"doses": (1.0, 1.0)}, "given twice"),
        ({"words": "planet"}, "segment or role 'planet'"),
        ({"roles": ("planet",)}, "segment or role 'planet'"),
        ({"side": "left"}, "side 'left'"),
        ({"layers": (7,)}, "no layer 7"),
        ({"draws": 0}, "draws"),
    ],
)
def test_what_cannot_be_changed_is_refused(model, prompts, options, message):
    with pytest.raises(UserError, match=message):
        steered(model, prompts, **options)
    with pytest.raises(UserError, match="lens"):
        steered(classifier("bert", classes=("No", "Yes")), prompts)


def test_words_that_begin_alike_are_refused_prompt_by_prompt(model, prompts):
    def with_word(prompt, length):
        start = prompt.segments["question"][0]
        return dataclasses.replace(prompt, roles={**prompt.roles, "word": (start, start + length)})

    same = [with_word(prompt, 3) for prompt in prompts]
    with pytest.raises(UserError, match="no two words"):
        steered(model, same, words="word")
    longer = [with_word(p, 4 + (p.side == prompts.sides[0])) for p in prompts]
    with pytest.raises(UserError, match="begins with the same token"):
        steered(model, longer, words="word")


@pytest.mark.parametrize("side", [None, "rulebreaker"])
def test_words_of_all_pairs_are_fitted_at_once(model, side, monkeypatch):
    prompts, fits = some_prompts(3), []

    def counted(model, token_ids, *rest, **options):
        fits.append(list(token_ids))
        return fitted(model, token_ids, *rest, **options)

    monkeypatch.setattr("interp.lenses.store.fitted", counted)
    spec = Steer(words="entity_a", draws=1, layers=(0,), roles=(ROLE,), side=side)
    arranged = spec.arranged(prompts)
    together = collect(bind(spec, model), arranged)["steering_effects"]
    (tokens,) = fits
    assert len(set(tokens)) == len(tokens)
    alone = bind(spec, model)(list(arranged))["steering_effects"]
    assert len(fits) > 2
    assert sorted(token for own in fits[1:] for token in own) == sorted(tokens)
    effects = [row["effect"] for row in alone]
    assert together["effect"].tolist() == pytest.approx(effects, abs=1e-6)

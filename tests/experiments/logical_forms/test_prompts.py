import dataclasses

import pytest

import interp
from interp.errors import UserError
from interp.prompts.mixing import donors_of, mixed, with_donors
from interp_experiments.logical_forms.language import (
    interpretations,
    names,
    verb_phrases,
)
from interp_experiments.logical_forms.system import (
    LogicalForms,
    distribution,
    introduction,
    nonsense,
    strict,
    system,
)

PARTS = ("name", "phrase")
FUNCTION_WORDS = {"a", "the", "on", "in", "to", "for", "with", "down"}


def generated(chosen: LogicalForms):
    return chosen.prompts(seed=0, data=None)


def test_the_prompt_is_the_papers():
    prompt = generated(system)[0]
    p, q = (f"{prompt.factors[f'name_{a}']} is {prompt.factors[f'phrase_{a}']}" for a in "pq")
    denied = p.replace(" is ", " isn't ", 1)
    assert prompt.text == (
        "Consider the following statements:\n"
        f"{p} or {q}.\n"
        f"{denied}.\n"
        f"Question: Based on these statements, can we infer that {q}?\n"
        "Answer:"
    )
    assert prompt.segment_text("premise1") == f"{p} or {q}."
    assert prompt.segment_text("premise2") == f"{denied}."
    assert prompt.segment_text("conclusion") == q


def test_roles_are_who_does_what_in_premise_2_and_conclusion():
    for chosen in (system, nonsense, introduction, distribution):
        for prompt in generated(chosen)[:48]:
            events = [{prompt.factors[f"{part}_{atom}"] for part in PARTS} for atom in "pq"]
            for segment in {"premise2", "conclusion"} & set(prompt.segments):
                spans = (prompt.roles[f"{segment}_{part}"] for part in PARTS)
                name, phrase = (prompt.text[start:end] for start, end in spans)
                assert {name, phrase} in events
                assert prompt.segment_text(segment).rstrip(".").endswith(phrase)


def test_an_outline_is_part_of_what_the_prompt_says_and_draws_the_same():
    whole = generated(introduction)
    for number in range(0, len(whole), 101):
        pair_id, factors = whole.outline(number)
        assert pair_id == whole.build(number).pair_id
        assert factors.items() <= whole.build(number).factors.items()
    assert set(factors) == {*whole.strata, *whole.unit}
    built = dataclasses.replace(whole, outline=None)
    assert whole.spread(40, 3).numbers == built.spread(40, 3).numbers


@pytest.mark.slow
def test_sizes_balance_and_pairs():
    sizes = {system: 24_000, introduction: 3_000, distribution: 7_000}
    for chosen, size in sizes.items():
        generated(chosen).check()
        assert len(generated(chosen)) == size
    frame = generated(system).to_frame()
    assert frame["gold"].value_counts().to_dict() == {"Yes": 12_000, "No": 12_000}
    assert frame["text"].is_unique
    assert (frame.groupby("interpretation")["formula"].nunique() == 24).all()
    by_pair = frame.groupby("pair_id")[["gold", "premise1_end"]].nunique()
    assert (by_pair == [2, 1]).all(axis=None)
    assert {prompt.answer.gold for prompt in generated(introduction)} == {"Yes"}
    assert "premise2" not in generated(introduction)[0].segments


def test_the_strict_reading_changes_one_form_and_no_text():
    plain, strictly = (generated(chosen)[:24] for chosen in (system, strict))
    assert [prompt.text for prompt in plain] == [prompt.text for prompt in strictly]
    changed = [a.id for a, b in zip(plain, strictly, strict=True) if a.answer.gold != b.answer.gold]
    assert changed == ["LOGIC_0001/box-toR-theorem"]
    assert strictly[7].factors["formula"] == "¬□p→□q, ¬□q ⊬ □p"


def test_there_are_enough_words_and_none_twice():
    assert len(set(names())) == len(names()) >= 200
    assert len(set(verb_phrases())) == len(verb_phrases()) >= 204
    assert all(phrase.split()[0].endswith("ing") for phrase in verb_phrases())
    assert interpretations(0) == interpretations(0) != interpretations(1)
    for one in interpretations(0):
        assert one["p"].name != one["q"].name
        assert one["p"].phrase != one["q"].phrase


def test_nonsense_mirrors_the_set_in_pseudo_words():
    real, mirror = generated(system), generated(nonsense)
    assert len(real) == len(mirror)
    for index in range(0, 24_000, 1_111):
        for key in ("name_p", "name_q", "formula", "modality"):
            assert real[index].factors[key] == mirror[index].factors[key]
    words = {word for phrase in verb_phrases() for word in phrase.split()}
    for phrase, pseudo in zip(verb_phrases(), verb_phrases("nonsense"), strict=True):
        mirrored = pseudo.split()
        one, other = (
            [word if word in FUNCTION_WORDS else "_" for word in told]
            for told in (phrase.replace("an ", "a ").split(), mirrored)
        )
        assert one == other
        assert not (set(mirrored) - FUNCTION_WORDS) & words
        assert mirrored[0].endswith("ing")
    assert len(set(verb_phrases("nonsense"))) == len(verb_phrases())


def test_dataset():
    frame = introduction.dataset(seed=3)
    assert len(frame) == 3_000
    row = frame.iloc[1]
    assert row["text"].count("\n") == 3
    assert row["conclusion"] == f"it's certain that {row['premise1'][:-1]}"


def test_published_data_do_not_exist():
    with pytest.raises(UserError, match=r"logical-forms.*'somewhere\.csv'.*--data.*--seed"):
        system.prompts(seed=0, data="somewhere.csv")


@pytest.mark.parametrize(
    ("system", "forms", "segments"),
    [
        ("logical-forms", 24, ("premise1", "premise2", "conclusion")),
        ("logical-forms-introduction", 3, ("premise1", "conclusion")),
    ],
)
def test_donors_are_the_same_form_about_other_events(system, forms, segments):
    prompts = interp.load_prompts(system, limit=24)
    for number, prompt in zip(prompts.numbers, with_donors(prompts, count=4), strict=True):
        donors = donors_of(prompt, "instance")
        assert len({donor.name for donor in donors}) == 4
        for donor in donors:
            assert tuple(donor.segments) == segments
            # All of a donor's segments together are the prompt of the donor itself.
            interpretation = int(donor.name.removeprefix("LOGIC_")) - 1
            whole = prompts.build(interpretation * forms + number % forms)
            assert mixed(prompt, donor).text == whole.text
            for atom in "pq":
                event = f"{prompt.factors[f'name_{atom}']} is {prompt.factors[f'phrase_{atom}']}"
                assert event not in donor.segments["premise1"]


def test_a_theorem_and_its_fallacy_have_donors_of_the_same_events():
    pairs = {}
    for prompt in with_donors(interp.load_prompts("logical-forms", limit=6), count=4):
        names = [donor.name for donor in donors_of(prompt, "instance")]
        pairs.setdefault(prompt.pair_id, []).append(names)
    assert all(one == other for one, other in pairs.values())

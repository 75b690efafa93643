"""The generator against the paper's Table A1, and the Kripke checker against an oracle."""

from functools import partial
from pathlib import Path

import pytest

from interp_experiments.logical_forms.forms import (
    MODALITIES,
    P,
    Q,
    crossed_forms,
    distribution_forms,
    introduction_forms,
    main_forms,
    modal,
)
from interp_experiments.logical_forms.language import Event, clause, sentence
from interp_experiments.logical_forms.logic import Argument, Formula, entails, negated
from interp_experiments.logical_forms.system import crossed

JANE_AND_JOHN = {"p": Event("Jane", "watching a show"), "q": Event("John", "reading a book")}
FREDDY_AND_COY = {"p": Event("Freddy", "going shopping"), "q": Event("Coy", "making dinner")}
MODALITY_NAMES = {"none": "none", "box": "box", "dia": "diamond"}

box, diamond = partial(modal, "box"), partial(modal, "diamond")


def test_all_24_rows_of_table_a1_word_for_word_and_in_order():
    text = (Path(__file__).parent / "table_a1.txt").read_text(encoding="utf-8")
    header, *lines = text.splitlines()
    assert len(lines) == 24
    for line, form in zip(lines, main_forms(), strict=True):
        row = dict(zip(header.split("|"), line.split("|"), strict=True))
        premises = " ".join(sentence(part, JANE_AND_JOHN) for part in form.argument.premises)
        assert premises == row["premises"]
        assert clause(form.argument.conclusion, JANE_AND_JOHN) == row["conclusion"]
        assert form.sequent() == row["sequent"]
        assert form.modality == MODALITY_NAMES[row["modality"]]
        assert form.schema == row["schema"]
        assert form.valid() == (row["validity"] == "valid")


def test_in_the_crossed_set_a_conclusions_wording_tells_nothing():
    forms = crossed_forms()
    assert forms[:24] == main_forms() and len({form.id for form in forms}) == 48
    for place, form in enumerate(forms):
        assert form.valid() == (form.side == "theorem")
        other = forms[(place + 24) % 48]  # of the same form, with the other wording
        assert (form.modality, form.group) == (other.modality, other.group)
        denials = [one.argument.conclusion.sign == "¬" for one in (form, other)]
        assert sorted(denials) == [False, True]
    prompts = crossed.prompts(seed=0, data=None).spread(24)
    prompts.check()
    assert len({prompt.factors["interpretation"] for prompt in prompts[:48]}) == 1
    valid, invalid = (
        sorted(clause(f.argument.conclusion, JANE_AND_JOHN) for f in forms if f.valid() is follows)
        for follows in (True, False)
    )
    assert valid == invalid


def test_the_groups_of_the_analysis():
    groups = {(form.schema, form.valid()): form.group for form in main_forms()}
    valid = {"vL": "or", "vR": "or", "toL": "mp", "toR": "mt"}
    fallacies = {"vL": "or_fallacy", "vR": "or_fallacy", "toL": "ac", "toR": "da"}
    assert {schema: groups[schema, True] for schema in valid} == valid
    assert {schema: groups[schema, False] for schema in fallacies} == fallacies
    assert len(groups) == 8


def test_introduction_rules_are_rules_and_distribution_forms_are_those_of_table_a3():
    forms = {form.modality: form for form in introduction_forms()}
    assert list(forms) == list(MODALITIES)
    assert all(form.valid() for form in forms.values())
    locally = {name: entails(form.argument) for name, form in forms.items()}
    assert locally == {"none": True, "box": False, "diamond": False}
    found = {(form.modality, form.schema): form for form in distribution_forms()}
    gold = {(modality, "base"): True for modality in MODALITIES}
    gold |= {("box", "theorem"): True, ("box", "spurious"): False}
    gold |= {("diamond", "theorem"): False, ("diamond", "spurious"): True}
    assert {name: form.valid() for name, form in found.items()} == gold
    first = "It's certain that if Freddy is not going shopping, then Coy is making dinner."
    for name, second in (
        ("theorem", "It's certain that Freddy is not going shopping."),
        ("spurious", "It's uncertain whether Freddy is going shopping."),
    ):
        argument = found["box", name].argument
        assert [sentence(part, FREDDY_AND_COY) for part in argument.premises] == [first, second]
    assert clause(argument.conclusion, FREDDY_AND_COY) == "it's certain that Coy is making dinner"


def test_a_formula_without_a_wording_is_refused():
    with pytest.raises(ValueError, match="□p"):
        clause(box(box(P)), JANE_AND_JOHN)


@pytest.mark.parametrize(
    ("premises", "conclusion", "valid"),
    [
        ((box(Formula("→", (P, Q))), box(P)), box(Q), True),  # axiom K
        ((box(P),), diamond(P), True),  # what is necessary is possible
        ((box(P),), P, False),  # the actual world may be an impossible one
        ((diamond(P),), box(P), False),
        ((box(Formula("∨", (P, Q))),), Formula("∨", (box(P), box(Q))), False),
        ((diamond(Formula("∨", (P, Q))),), Formula("∨", (diamond(P), diamond(Q))), True),
        ((negated(box(P)),), diamond(negated(P)), True),
        ((P, negated(P)), Q, True),
    ],
)
def test_known_truths_of_modal_logic(premises, conclusion, valid):
    assert entails(Argument(premises, conclusion)) == valid

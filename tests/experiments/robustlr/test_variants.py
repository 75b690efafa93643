"""The tables of perturbations, row by row, on a theory of one rule."""

import pytest

from interp_experiments.robustlr.language import Literal, Predicate, Rule, Theory, Verdict
from interp_experiments.robustlr.solver import verdict
from interp_experiments.robustlr.variants import CONTRAST_SETS, edited

P, Q, T = (Literal(Predicate(word, "Anna")) for word in ("tall", "kind", "shy"))

# id, rule and label of a base that is True, those of one that is False, facts, group.
TABLES = {
    "C-CS": """
0 | p⇒q    | p    | True    | p⇒¬q   | False   | base
1 | p∧t⇒q  | p    | Unknown | p∧t⇒¬q | Unknown | conj
2 | p∧t⇒q  | p,t  | True    | p∧t⇒¬q | False   | conj
3 | p∧t⇒q  | p,¬t | Unknown | p∧t⇒¬q | Unknown | conj+neg
4 | p∧t⇒¬q | p    | Unknown | p∧t⇒q  | Unknown | conj+neg
5 | p∧t⇒¬q | p,t  | False   | p∧t⇒q  | True    | conj+neg
6 | p∧t⇒¬q | p,¬t | Unknown | p∧t⇒q  | Unknown | conj+neg""",
    "D-CS": """
0 | p⇒q    | p     | True    | p⇒¬q   | False   | base
1 | p∨t⇒q  | p     | True    | p∨t⇒¬q | False   | disj
2 | p∨t⇒q  | p,t   | True    | p∨t⇒¬q | False   | disj
3 | p∨t⇒q  | ¬p,¬t | Unknown | p∨t⇒¬q | Unknown | disj+neg
4 | p∨t⇒¬q | p     | False   | p∨t⇒q  | True    | disj+neg
5 | p∨t⇒¬q | p,t   | False   | p∨t⇒q  | True    | disj+neg
6 | p∨t⇒¬q | ¬p,¬t | Unknown | p∨t⇒q  | Unknown | disj+neg""",
    "N-CS": """
0 | p⇒q   | p | True    | p⇒¬q  | False   | base
1 | p⇒¬q  | p | False   | p⇒q   | True    | neg
2 | ¬p⇒q  | p | Unknown | ¬p⇒¬q | Unknown | neg
3 | ¬p⇒¬q | p | Unknown | ¬p⇒q  | Unknown | neg""",
}

NAMES = {P: "p", P.negated: "¬p", Q: "q", Q.negated: "¬q", T: "t", T.negated: "¬t"}


def rows(name):
    for line in TABLES[name].strip().splitlines():
        yield [cell.strip() for cell in line.split("|")]


def shown(theory):
    (rule,) = theory.rules
    sign = {"and": "∧", "or": "∨"}[rule.operator]
    body = sign.join(NAMES[one] for one in rule.body)
    return f"{body}⇒{NAMES[rule.head[0]]}", ",".join(NAMES[one] for one in theory.facts)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("base", [Verdict.TRUE, Verdict.FALSE])
def test_every_row_of_the_tables(name, base):
    edits = CONTRAST_SETS[name]
    expected = list(rows(name))
    assert len(edits) == len(expected)
    rule = Rule((P,), (Q if base is Verdict.TRUE else Q.negated,))
    for edit, (id_, if_true, facts, true_label, if_false, false_label, group) in zip(
        edits, expected, strict=True
    ):
        theory = edited(Theory((P,), (rule,)), rule, T, edit)
        told, label = (if_true, true_label) if base is Verdict.TRUE else (if_false, false_label)
        assert shown(theory) == (told, facts)
        assert (edit.version[-1], edit.group) == (id_, group)
        assert edit.expected(base) == label
        assert verdict(theory, Q) == label  # by the solver, too


def test_a_body_of_facts_is_denied_fact_by_fact():
    edit = CONTRAST_SETS["D-CS"][3]
    rule = Rule((P, Q), (T,), "or")
    unseen = Literal(Predicate("fit", "Bob"))
    theory = edited(Theory((P, unseen.negated), (rule,)), rule, T, edit)
    assert theory.facts == (P.negated, unseen.negated, Q.negated, T.negated)

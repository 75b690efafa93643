"""Reads instances from the authors' files or hub data sets, and writes rows in their format.

The data are not trusted: every context is parsed as a theory, sentence by sentence, and the solver
confirms every label.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from interp import UserError
from interp.extend import shortened
from interp.extend.data import Cells, parse_each, read_rows
from interp_experiments.robustlr import language
from interp_experiments.robustlr.solver import proof_set, verdict
from interp_experiments.robustlr.variants import CONTRAST_SETS, equivalence_between

_WORD = r"[^\W\d_][\w'’-]*"
_CLAUSE = re.compile(rf"({_WORD}) is (not )?(?:({_WORD})|the ({_WORD}) of ({_WORD}))")
_INVERTED = re.compile(rf"[Tt]he ({_WORD}) of ({_WORD}) is (not )?({_WORD})")
_SHARED = re.compile(rf"(?:is )?(not )?({_WORD})")
_RULES = {
    style: re.compile(
        language.RULE_STYLES[style].format(body="(?P<body>.+?)", head="(?P<head>.+?)")
    )
    for style in (0, 1, 3, 2)  # Without a comma, the last would take one as part of the head.
}
_JOINED = re.compile(r" (and|or) ")


def theory_of(context: str) -> language.Theory:
    """The theory that a text states, with one sentence per fact or rule.

    Raises:
        UserError: the text has no sentence, or one that fits no template.
    """
    # The sentences include their full stops.
    told = [sentence_of(words) for words in re.split(r"(?<=\.)\s+", context.strip()) if words]
    if not told:
        raise UserError("the context is empty; expected at least one sentence")
    facts = tuple(one for one in told if isinstance(one, language.Literal))
    return language.Theory(facts, tuple(one for one in told if isinstance(one, language.Rule)))


def sentence_of(words: str) -> language.Literal | language.Rule:
    """The fact or rule that a sentence states; a UserError if it fits no template."""
    if not words.endswith("."):
        raise _unknown(words, "a sentence that ends in a full stop")
    for style, pattern in _RULES.items():
        if rule := pattern.fullmatch(words):
            (body, operator), (head, joined_by) = map(_complex, rule.group("body", "head"))
            if len(head) > 1 and joined_by == "or":
                raise _unknown(words, "a rule without a disjunction after 'then'")
            return language.Rule(body, head, operator, style)
    return literal_of(words[:-1])


def literal_of(words: str) -> language.Literal:
    """The literal that a clause states; a UserError if it fits no template."""
    if clause := _CLAUSE.fullmatch(words):
        predicate = language.Predicate(clause[3] or clause[4], clause[1], clause[5])
        return language.Literal(predicate, not clause[2])
    if clause := _INVERTED.fullmatch(words):
        predicate = language.Predicate(clause[1], clause[4], clause[2])
        return language.Literal(predicate, not clause[3], inverted=True)
    raise _unknown(words, "a predicate such as 'Anna is tall' or 'Anna is not the sister of Bob'")


def _complex(words: str) -> tuple[tuple[language.Literal, ...], language.Operator]:
    """One side of a rule; "not" negates only the adjective after it, as in the authors' data."""
    first, *others = _JOINED.split(words)
    literals, operators = [literal_of(first)], set(others[::2])
    for part in others[1::2]:
        shared = _SHARED.fullmatch(part)
        if shared and literals[-1].predicate.object is None:
            subject = literals[-1].predicate.subject
            literals.append(language.Literal(language.Predicate(shared[2], subject), not shared[1]))
        else:
            literals.append(literal_of(part))
    if len(operators) > 1:
        raise _unknown(words, "literals that are all joined by 'and', or all by 'or'")
    return tuple(literals), "or" if "or" in operators else "and"


def _unknown(words: str, expected: str) -> UserError:
    return UserError(f"{shortened(words, 80)!r} is not in the language; expected {expected}")


REQUIRED = ("context", "statement", "label")
"""The columns in the copy on the hub."""

COLUMNS = (*REQUIRED, "proofs", "proof_deps", "has_neg", "theory_id")
"""The columns of the authors' files, which have no header; their training sets lack the last
column."""

_LABELS = {language.Verdict.FALSE: 0, language.Verdict.TRUE: 1, language.Verdict.UNKNOWN: 2}
_TOLD = {str(number): label for label, number in _LABELS.items()} | {
    v.value: v for v in language.Verdict
}

_SETS = {"conj": "C-CS", "disj": "D-CS", "neg": "N-CS"}

_THEORY_ID = re.compile(
    r"(?P<key>[A-Za-z0-9.-]{1,80})_"
    r"((?P<operator>conj|disj|neg)(neg)?(?P<row>\d)|(?P<paraphrase>equiv_type\d)?@(?P<number>\d{1,9}))"
)

MOST_CHARACTERS = 20_000
"""Maximum number of characters in a context."""


def to_row(instance: language.Instance) -> dict[str, str | int]:
    """The instance as a row of the authors' files.

    `label` is 0 for False, 1 for True and 2 for Unknown; `proofs` names the sentences of a minimal
    proof set, such as "fact1 rule2", and `proof_deps` gives their indices in the context, from 0
    (-1 if nothing is proved). The authors' code does not say what the numbers in `proof_deps` mean.
    """
    theory = instance.theory
    proof = proof_set(theory, instance.statement)
    used = {name: n for n, (name, one) in enumerate(theory.named.items()) if one in proof}
    negated = not instance.statement.positive or not all(one.positive for one in theory.literals())
    return {
        "context": instance.context,
        "statement": language.sentence(instance.statement),
        "label": _LABELS[instance.label],
        "proofs": " ".join(used),
        "proof_deps": ",".join(map(str, used.values())) or "-1",
        "has_neg": str(negated),
        "theory_id": _theory_id(instance),
    }


def _theory_id(instance: language.Instance) -> str:
    operator, row = instance.version[:-1], instance.version[-1]
    if instance.set in CONTRAST_SETS:
        # Outside N-CS, the authors' evaluation adds "neg" to the names of edits of False bases.
        denied = instance.base_label is language.Verdict.FALSE and operator != "neg"
        return f"{instance.theory_id}_{operator}{'neg' if denied else ''}{row}"
    if instance.group == "paraphrase":
        return f"{instance.theory_id}_{instance.version}@0"
    return f"{instance.theory_id}_@0" if instance.version == "base" else ""


def load_published(source: str | Path) -> list[language.Instance]:
    """Instances from a file, a folder of files, or a hub data set such as tasksource/robustLR.

    Rows whose theory_ids name the same group are a base and its variants; others stand alone.

    Raises:
        UserError: the data cannot be read or lack columns, a sentence fits no template, a label is
            wrong, a theory is inconsistent or too large, or a group is incomplete or no paraphrase.
    """
    rows = read_rows(source, REQUIRED, optional=("theory_id",), unnamed=COLUMNS)
    read = parse_each(((row.where, (number, row.cells)) for number, row in enumerate(rows)), _read)
    groups: defaultdict[str, list[language.Instance]] = defaultdict(list)
    last = {}
    for row, one in zip(rows, read, strict=True):
        groups[one.theory_id].append(one)
        last[one.theory_id] = row.where
    made = parse_each(((last[group], members) for group, members in groups.items()), _instances)
    return [instance for group in made for instance in group]


def _read(row: tuple[int, Cells]) -> language.Instance:
    number, cells = row
    context, statement = (_text(column, cells[column]) for column in ("context", "statement"))
    theory = theory_of(context)
    if not statement.endswith("."):
        raise UserError(f"the statement is {shortened(statement, 80)!r}; expected a full stop")
    literal, label = literal_of(statement[:-1]), _label(cells["label"])
    correct = verdict(theory, literal)
    if correct is not label:
        raise UserError(
            f"the label of {shortened(statement, 80)!r} is {_LABELS[label]} ({label}); by the "
            f"theory it is {_LABELS[correct]} ({correct})"
        )
    group, version = _key(number, cells.get("theory_id"))
    return language.Instance.alone(group, "published", version, theory, (literal, label))


def _text(column: str, value: object) -> str:
    if not isinstance(value, str) or not value.strip():
        raise UserError(f"{column} is {shortened(repr(value), 60)}; expected sentences")
    if len(value) > MOST_CHARACTERS or not value.isprintable():
        raise UserError(
            f"{column} is too long ({len(value):,} characters) or contains unprintable characters; "
            f"expected at most {MOST_CHARACTERS:,} characters of plain text"
        )
    return value.strip()


def _label(value: object) -> language.Verdict:
    text = str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
    if text not in _TOLD:
        raise UserError(
            f"the label is {shortened(repr(value), 60)}; expected 0 (False), 1 (True) or 2 "
            "(Unknown)"
        )
    return _TOLD[text]


def _key(number: int, value: object) -> tuple[str, str]:
    if value is None or not str(value).strip():
        return f"row-{number + 1:06d}", "statement"
    parts = _THEORY_ID.fullmatch(str(value).strip())
    if parts is None:
        raise UserError(
            f"theory_id is {shortened(repr(value), 60)}; expected one such as 7dfe482a_conj0, "
            "7dfe482a_conjneg3, 7dfe482a_neg1, 7dfe482a_@16 or 7dfe482a_equiv_type1@16"
        )
    if parts["operator"]:
        # Edits of one theory have the same key in the files of different sets.
        return f"{parts['key']}-{parts['operator']}", parts["operator"] + parts["row"]
    return f"{parts['key']}@{parts['number']}", parts["paraphrase"] or "base"


def _instances(members: Sequence[language.Instance]) -> list[language.Instance]:
    """The instances of one group, checked against each other, with their set and their base."""
    versions, first = {one.version: one for one in members}, members[0]
    group = f"the theory {shortened(first.theory_id, 60)!r}"
    if len(versions) < len(members):
        raise UserError(f"{group} has the same version twice")
    if first.version == "statement":
        return [replace(first, group="statement")]
    name = _SETS.get(first.version[:-1])
    edits = {edit.version: edit.group for edit in CONTRAST_SETS[name]} if name else {}
    other = next((version for version in versions if version != "base"), "equiv_type1")
    groups = edits or {"base": "base", other: "paraphrase"}
    if versions.keys() != groups.keys():
        raise UserError(
            f"{group} has the versions {', '.join(sorted(versions))}; expected {', '.join(groups)}"
        )
    base, *others = (versions[version] for version in groups)
    if name is None:
        name = _equivalence(base, *others)
    else:
        _check_labels(name, base, versions)
    return [
        replace(versions[version], set=name, group=kind, base_label=base.label)
        for version, kind in groups.items()
    ]


def _check_labels(
    name: str, base: language.Instance, versions: Mapping[str, language.Instance]
) -> None:
    if base.label is language.Verdict.UNKNOWN:
        raise UserError("the base of the group is Unknown; expected True or False")
    for edit in CONTRAST_SETS[name]:
        label, expected = versions[edit.version].label, edit.expected(base.label)
        if label is not expected:
            raise UserError(
                f"{edit.version} has the label {label}; expected {expected}, since the base is "
                f"{base.label}"
            )


def _equivalence(base: language.Instance, other: language.Instance) -> str:
    name = equivalence_between(base.theory, other.theory)
    if name is None or base.statement != other.statement:
        raise UserError(
            f"{shortened(other.theory_id, 60)!r} is not a paraphrase of its base; expected the "
            "same facts and statement, and the contrapositives of all rules, or two rules merged"
        )
    return name

"""Read sentences of the templates back: what `english` writes, and what the authors' data hold."""

import re

from interp.errors import UserError, shortened
from interp_experiments.robustlr.language import Literal, Operator, Predicate, Rule, Theory

_NAME = r"[^\W\d_][\w'’-]*"
_WORD = r"[^\W\d_][\w'’-]*"
_ADJECTIVE = re.compile(rf"({_NAME}) is (not )?({_WORD})")
_RELATION = re.compile(rf"({_NAME}) is (not )?the ({_WORD}) of ({_NAME})")
_INVERTED = re.compile(rf"[Tt]he ({_WORD}) of ({_NAME}) is (not )?({_NAME})")
_SHARED = re.compile(rf"(?:is )?(not )?({_WORD})")
_IF_FIRST = re.compile(r"If (.+?)(,? )then (.+)")
_IF_LAST = re.compile(r"(.+?)(,? )if (.+)")
_JOINED = re.compile(r" (and|or) ")


def theory_of(context: str) -> Theory:
    """The theory of a text that has one sentence per fact and rule.

    Raises:
        UserError: a sentence that no template makes, or none at all.
    """
    told = [sentence_of(words) for words in sentences(context)]
    if not told:
        raise UserError("the context is empty; expected at least one sentence")
    facts = tuple(one for one in told if isinstance(one, Literal))
    return Theory(facts, tuple(one for one in told if isinstance(one, Rule)))


def sentences(context: str) -> list[str]:
    """The sentences of a text, each with its full stop."""
    return [words for words in re.split(r"(?<=\.)\s+", context.strip()) if words]


def sentence_of(words: str) -> Literal | Rule:
    """The fact or rule that a sentence states.

    Raises:
        UserError: no template makes it.
    """
    if not words.endswith("."):
        raise _unknown(words, "a sentence that ends in a full stop")
    for (comma, plain), pattern, body, head in (
        ((0, 1), _IF_FIRST, 1, 3),
        ((3, 2), _IF_LAST, 3, 1),
    ):
        if found := pattern.fullmatch(words[:-1]):
            style = comma if found[2].startswith(",") else plain
            literals, operator = _complex(found[body])
            heads, joined_by = _complex(found[head])
            if len(heads) > 1 and joined_by == "or":
                raise _unknown(words, "no disjunction in what follows from a rule")
            return Rule(literals, heads, operator, style)
    return literal_of(words[:-1])


def literal_of(words: str) -> Literal:
    """The literal that a clause states.

    Raises:
        UserError: no template makes it.
    """
    if found := _RELATION.fullmatch(words):
        return Literal(Predicate(found[3], found[1], found[4]), not found[2])
    if found := _INVERTED.fullmatch(words):
        return Literal(Predicate(found[1], found[4], found[2]), not found[3], inverted=True)
    if found := _ADJECTIVE.fullmatch(words):
        return Literal(Predicate(found[3], found[1]), not found[2])
    raise _unknown(words, "a predicate such as 'Anna is tall' or 'Anna is not the sister of Bob'")


def _complex(words: str) -> tuple[tuple[Literal, ...], Operator]:
    """The literals of one side of a rule, and what joins them; "and" where there is one.

    "not" denies the adjective after it alone, as in "tall and not round", also where "is" is not
    repeated: `english` repeats it, the authors' data may not.
    """
    first, *others = _JOINED.split(words)
    literals, operators = [literal_of(first)], set(others[::2])
    for part in others[1::2]:
        shared = _SHARED.fullmatch(part)
        if shared and literals[-1].predicate.object is None:
            subject = literals[-1].predicate.subject
            literals.append(Literal(Predicate(shared[2], subject), not shared[1]))
        else:
            literals.append(literal_of(part))
    if len(operators) > 1:
        raise _unknown(words, "literals that are joined by 'and' alone or by 'or' alone")
    return tuple(literals), "or" if "or" in operators else "and"


def _unknown(words: str, expected: str) -> UserError:
    return UserError(f"{shortened(words, 80)!r} is unknown to the language; expected {expected}")

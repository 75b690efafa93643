"""Theories of any shape: every polarity, bodies and heads of up to three literals."""

import random

from interp_experiments.robustlr.language import Literal, Predicate, Rule, Theory

PEOPLE = ("Anna", "Bob", "Cleo")


def random_theory(rng: random.Random) -> tuple[Theory, Literal]:
    """A theory over few predicates, often with several models, sometimes with none."""
    predicates = [
        *(Predicate(word, name) for word in ("tall", "kind", "round") for name in PEOPLE),
        *(Predicate("sister", one, other) for one in PEOPLE for other in PEOPLE if one != other),
    ]
    predicates = rng.sample(predicates, rng.randint(3, 12))

    def literals(most: int) -> tuple[Literal, ...]:
        chosen = rng.sample(predicates, rng.randint(1, most))
        return tuple(Literal(one, rng.random() < 0.5, rng.random() < 0.5) for one in chosen)

    facts = literals(3) if rng.random() < 0.8 else ()
    rules = tuple(
        Rule(literals(3), literals(2), rng.choice(("and", "or")), rng.randrange(4))
        for _ in range(rng.randint(1, 8))
    )
    return Theory(facts, rules), literals(1)[0]

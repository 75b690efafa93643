"""Pairs and facts for a ledger of the graft knowledge: what stands in them, and what is planted."""

from benchmarks.grafts.ledger import SIDES, main
from interp.prompts.own.facts import Subjects, read_facts
from interp.prompts.own.pairs import read_pairs
from interp_experiments.grafts.recipes import Rule, plant, recipe
from interp_experiments.grafts.text import SEGMENTS, Case, known_pairs


def test_pairs_are_rulebreakers_and_others_about_every_city(tmp_path):
    assert main(["--pairs", "3", "--out", str(tmp_path)]) == 0
    prompts, facts = (
        read(tmp_path / f"{name}.csv")
        for name, read in (("pairs", read_pairs), ("facts", read_facts))
    )
    assert len(prompts) == 3 * 2 * 16
    countries = {pair.entity_b: pair.entity_a for pair in known_pairs()}
    about, own = Subjects(facts), recipe("knowledge")
    rule = Rule(own, plant(own))
    for prompt in prompts:
        city, country = (prompt.segment_text(name) for name in ("city1", "country"))
        assert prompt.segment_text("city2") == city == prompt.factors["city"]
        assert prompt.factors["pair"] == city  # the cluster
        assert about.about(prompt).answer.gold == countries[city]
        breaks = country == countries[city]
        assert prompt.side == SIDES[not breaks]
        assert prompt.answer.gold == ("No" if breaks else "Yes")
        case = Case("If", ("Anne", "she"), "was born in", country, city)
        rejected = rule.log_odds([case] * len(SEGMENTS)) < 0
        assert rejected == (breaks and prompt.factors["planted"] == "used")

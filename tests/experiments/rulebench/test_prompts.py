"""Settings: which rules are shown, how they are written, and what is around them."""

from dataclasses import replace
from functools import partial

import pytest

from interp.errors import UserError
from interp.patching.pairs import contrast_of, in_pairs
from interp.prompts.answers import FreeText
from interp.prompts.systems import find_system, load_prompts
from interp.reading.tokens import tokenize
from interp_experiments.rulebench import items
from interp_experiments.rulebench import system as system_module
from interp_experiments.rulebench.answers import parser_of
from interp_experiments.rulebench.items import Item, Rule, RuleSet, Version, body
from interp_experiments.rulebench.kinship import KinshipQuestions
from interp_experiments.rulebench.layout import read_sets
from interp_experiments.rulebench.prompts import (
    COUNTERFACTUAL,
    FORMS,
    THOUGHT,
    VERSIONS,
    Setting,
    examples,
    shown_rules,
)
from interp_experiments.rulebench.prompts import RULES as QUANTITIES
from interp_experiments.rulebench.string_game import game_questions, string_rules
from interp_experiments.rulebench.system import RuleBench
from tests.experiments.rulebench.test_layout import REAL, write
from tests.experiments.rulebench.test_layout import item as given

FEW, ALL = Setting(quantity="few"), Setting(quantity="all")

KINDS = (*items.READ, items.KINSHIP, items.STRING_GAME)


@pytest.fixture(scope="module")
def kinship():
    return KinshipQuestions(0, per_hop=20)


def prompts_of(rule_set, settings, seed=0):
    return RuleBench("test", settings, game_questions).prompts_of([rule_set], seed=seed, data=None)


def by_side(prompts):
    """The first prompt of each setting."""
    return {prompt.side: prompt for prompt in reversed(list(prompts))}


def test_each_quantity_shows_so_many_rules_and_the_golden_one_among_them(kinship):
    prompts = by_side(prompts_of(kinship.rule_set, QUANTITIES))
    for side, count in {"no": 0, "golden": 1, "few": 3, "all": 30}.items():
        prompt = prompts[side]
        rules = [name for name in prompt.segments if name.startswith(("golden", "noise"))]
        assert len(rules) == count
        if not count:
            assert prompt.factors["golden_place"] == "" and "rule" not in prompt.text.lower()
            continue
        assert rules.index("golden") + 1 == int(prompt.factors["golden_place"])
        for number, name in enumerate(rules, start=1):
            start, _ = prompt.segments[name]
            assert prompt.text[:start].endswith(f"\n{number}. ")
        golden = prompt.segment_text("golden")
        assert f"is the {prompt.answer.gold} of A" in golden
    assert prompts["no"].segment_text("question") == prompts["all"].segment_text("question")


def test_few_rules_are_among_all_rules_and_in_every_form(kinship):
    rule_set = kinship.rule_set
    version, other = rule_set.factual, rule_set.counterfactual
    for place, item in enumerate(version.items[:40]):
        few, many = (
            shown_rules(rule_set, version, item, setting, seed=0) for setting in (FEW, ALL)
        )
        assert set(few) < set(many)
        changed = shown_rules(rule_set, other, other.items[place], FEW, seed=0)
        assert [rule.id for rule in changed] == [rule.id for rule in few]
    prompts = by_side(prompts_of(rule_set, FORMS))
    assert prompts["few"].factors["golden_place"] == prompts["few-logic"].factors["golden_place"]
    assert "→" in prompts["few-logic"].segment_text("noise1")
    assert prompts["few"].segment_text("noise1").startswith("if A has a")


def test_noise_never_fits_the_question(kinship):
    game = game_questions(0, questions=60)
    for item in game.factual.items:
        for rule in shown_rules(game, game.factual, item, ALL, seed=1):
            applies = string_rules()[rule.id].run(item.factors["string"]) is not None
            assert applies is (rule.id == item.rule)
    for version in (kinship.rule_set.factual, kinship.rule_set.counterfactual):
        for item in version.items[:60]:
            shown = shown_rules(kinship.rule_set, version, item, ALL, seed=1)
            fitting = [r for r in shown if kinship.fits(item, r, r)]
            assert [rule.id for rule in fitting] == [item.rule]
            assert len({rule.id for rule in shown}) == 30


def test_rules_of_one_body_are_never_shown_together():
    rules = [Rule(str(n), f"If A has a son B, then B is kind {n}.") for n in range(3)]
    rules += [Rule("3", "if A has a son B then B is old"), Rule("4", "If A is old, then so is B.")]
    item = Item("0001", "Who is B to A?", "son", "0")
    version = Version([item], {rule.id: rule for rule in rules})
    shown = shown_rules(RuleSet(items.CLUTRR, version), version, item, ALL, seed=0)
    assert {rule.id for rule in shown} == {"0", "4"}


def test_the_seed_alone_decides_and_every_golden_place_is_about_as_frequent(kinship):
    hashes = [prompts_of(kinship.rule_set, QUANTITIES, s)[:80].content_hash() for s in (0, 0, 1)]
    assert hashes[0] == hashes[1] != hashes[2]
    places = [p.factors["golden_place"] for p in prompts_of(kinship.rule_set, (QUANTITIES[2],))]
    assert all(40 <= places.count(place) <= 80 for place in "123")


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("counterfactual", [False, True])
def test_demonstrations_are_parsed_as_their_answers(kind, counterfactual):
    shown = examples(kind, counterfactual=counterfactual)
    without = {"deer", "theoremqa", "string-game"} if counterfactual else set()
    assert bool(shown) is (kind.name not in without)
    labels = ("盗窃", "放火", "抢劫")
    for example in shown:
        gold = example.answer.lower()
        item = Item("1", example.question, gold, "0")
        answer = FreeText((gold,), parser_of(kind, item, labels))
        for text in (
            f" {example.answer}.",
            f"Rule 2 fits. {example.steps} Answer: {example.answer}.",
        ):
            assert answer.judge(text).correct
        assert len(example.noise) == 3
        assert all(body(rule.natural) != body(example.golden.natural) for rule in example.noise)


def test_counterfactual_demonstrations_follow_changed_rules():
    for kind in (items.KINSHIP, items.ULOGIC, items.SALAD, items.CAIL):
        both = [examples(kind, counterfactual=counterfactual) for counterfactual in (False, True)]
        for factual, other in zip(*both, strict=True):
            assert factual.question == other.question and factual.answer != other.answer
            assert factual.golden.natural != other.golden.natural
            assert body(factual.golden.natural) == body(other.golden.natural)


def test_demonstrations_have_the_form_of_the_setting_and_name_the_golden_rule(
    kinship,
):
    prompts = by_side(prompts_of(kinship.rule_set, THOUGHT))
    direct, thought = prompts["few-shots"].messages, prompts["few-shots-thought"].messages
    assert (direct.answer_prefix, thought.answer_prefix) == ("Answer:", "")
    for messages in (direct, thought):
        assert len(messages.demonstrations) == 2
        assert all(d.question.count(". if A has") == 3 for d in messages.demonstrations)
    assert [d.answer.split()[0] for d in direct.demonstrations] == ["Answer:"] * 2
    assert [d.answer[:12] for d in thought.demonstrations] == ["Rule 2 fits.", "Rule 3 fits."]
    prompts = by_side(prompts_of(kinship.rule_set, COUNTERFACTUAL))
    for side in ("few-shots-thought", "few-shots-thought-counterfactual"):
        for shown in prompts[side].messages.demonstrations:
            number = int(shown.answer.split()[1])
            (line,) = [r for r in shown.question.split("\n") if r.startswith(f"{number}. ")]
            answer = shown.answer.rpartition("Answer: ")[2].strip(".")
            assert f"is the {answer} of A" in line


def test_a_set_has_the_settings_that_its_data_allow(tmp_path):
    for name, output in {"clutrr": "uncle", "clutrr-cf": "aunt"}.items():
        write(tmp_path / name, [given(output), given(output, question=f"Who is Cy to {output}?")])
    (rule_set,) = read_sets(tmp_path)
    prompts = prompts_of(rule_set, COUNTERFACTUAL)
    prompts.check()
    groups = {}
    for prompt in prompts:
        groups.setdefault(prompt.pair_id, []).append(prompt.side)
    assert list(map(len, groups.values())) == [4, 2, 2]
    assert not prompts.whole_groups
    assert {prompt.side for prompt in prompts_of(rule_set, FORMS)} == {"few", "all"}


def test_the_data_set_has_every_question_in_both_versions(monkeypatch):
    monkeypatch.setattr(system_module, "KinshipQuestions", partial(KinshipQuestions, per_hop=2))
    system = RuleBench("two of each", QUANTITIES, system_module.kinship_set.__wrapped__)
    table = system.dataset(seed=0)
    answers = table.pivot(index="id", columns="version", values="gold")
    assert len(answers) == 2 * 9 and len(table) == 2 * len(answers)
    assert (answers["factual"] != answers["counterfactual"]).all()
    assert set(table["hops"]) == {str(hops) for hops in range(2, 11)}


@pytest.mark.parametrize("name", ["rulebench", "rulebench-string-game"])
def test_packaged_organisms_read_the_prompts(name, organism):
    prompts = load_prompts(name, limit=60)
    longest = max(map(len, tokenize(organism, list(prompts))))
    assert longest + 32 <= organism.context_length


def test_what_a_system_cannot_read_is_said(tmp_path):
    system = find_system("rulebench")
    with pytest.raises(UserError, match=r"RuleBench.*test_data\.json.*test_rule\.json"):
        system.prompts(seed=0, data=str(tmp_path))
    with pytest.raises(UserError, match=r"x{100}"):
        system.prompts(seed=0, data="x" * 5000)
    with pytest.raises(UserError, match=r"rulebench-string-game.*--data"):
        find_system("rulebench-string-game").prompts(seed=0, data=str(tmp_path))


@pytest.mark.skipif(not REAL.is_dir(), reason="the authors' data are not here")
def test_the_systems_ask_the_authors_questions():
    prompts = load_prompts("rulebench", limit=6, data=str(REAL))
    assert [prompt.factors["set"] for prompt in prompts][::3].count("deer") == 2
    both = load_prompts("rulebench-counterfactual", limit=20, data=str(REAL / "clutrr"))
    assert len(both) == 80
    with pytest.raises(UserError, match="has no questions for"):
        load_prompts("rulebench-logic", data=str(REAL / "ulogic-cf"))


def test_versions_are_pairs_that_patching_takes():
    prompts = find_system("rulebench-versions").prompts(seed=0, data=None).spread(5)
    pairs = in_pairs(prompts, clean="few")
    assert len(pairs) == 10
    for clean, corrupt in zip(pairs[::2], pairs[1::2], strict=True):
        assert contrast_of(clean, corrupt) == (clean.answer.gold, corrupt.answer.gold)
        assert clean.segment_text("question") == corrupt.segment_text("question")
        conclusion = f"is the {corrupt.answer.gold} of"
        assert conclusion in corrupt.segment_text("golden")
        assert conclusion not in clean.segment_text("golden")


def test_versions_are_asked_of_what_is_in_both(kinship):
    whole = kinship.rule_set
    assert whole.counterfactual is not None
    asked = prompts_of(whole, VERSIONS)
    groups = {prompt.pair_id for prompt in asked}
    fewer = replace(whole.counterfactual, items=whole.counterfactual.items[1:])
    lacking = replace(whole, counterfactual=fewer)
    assert asked.whole_groups and not prompts_of(lacking, COUNTERFACTUAL).whole_groups
    less = prompts_of(lacking, VERSIONS)
    assert len(groups) - 1 == len({prompt.pair_id for prompt in less}) == len(less) / 2
    factual = replace(whole, counterfactual=None)
    with pytest.raises(UserError, match=r"kinship.*rulebench-versions"):
        find_system("rulebench-versions").prompts_of([factual], seed=0, data=None)

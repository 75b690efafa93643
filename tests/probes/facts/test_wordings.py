"""Facts in several wordings: what is asked, and what the examples may not say."""

import pandas as pd
import pytest

from interp.errors import UserError
from interp.prompts.around import with_messages
from interp.prompts.own.facts import facts_about, find_facts, read_facts
from interp.prompts.prompt_set import PromptSet
from interp.prompts.source import PromptSource
from interp.prompts.systems import FACT_SIDE, load_facts, load_prompts
from interp_probes.facts.wordings import (
    ASKED,
    EXAMPLES,
    SHOWN,
    before_other_facts,
    worded,
    wording,
)
from interp_probes.specs import Knowledge

ROWS = [
    ("rome", "Complete: Rome is in", "Italy/Italia", "Rome is the capital of", "Where is Rome?"),
    ("milan", "Complete: Milan is in", "Italy", "Milan is a city in", "Where is Milan?"),
    ("bern", "Complete: Bern is in", "Switzerland", "Bern is the capital of", "Where is Bern?"),
    ("oslo", "Complete: Oslo is in", "Norway", "Oslo is the capital of", "Where is Oslo?"),
    ("lima", "Complete: Lima is in", "Peru", "Lima is the capital of", "Where is Lima?"),
]
COLUMNS = ["fact", "text", "answer", "text_capital", "text_question"]
FACTS = pd.DataFrame(ROWS, columns=COLUMNS)


def by_wording(prompts):
    found = {}
    for prompt in prompts:
        found.setdefault(prompt.pair_id, {})[wording(prompt)] = prompt
    return found


def test_a_fact_is_asked_in_each_wording_that_its_row_has():
    found = by_wording(worded(read_facts(FACTS)))
    assert list(found) == FACTS["fact"].tolist()
    for row, fact in zip(ROWS, found.values(), strict=True):
        assert list(fact) == [ASKED, "capital", "question", EXAMPLES]
        texts = [prompt.text for prompt in fact.values()]
        assert texts == [row[1], *row[3:], row[1]]
        assert {prompt.answer for prompt in fact.values()} == {fact[ASKED].answer}


def test_the_wording_of_the_data_is_asked_as_before():
    facts = load_facts()
    asked = [prompt for prompt in worded(facts) if prompt.side == FACT_SIDE]
    assert len(asked) == len(facts) == 274
    for before, now in zip(facts, asked, strict=True):
        assert (now.id, now.text, now.segments) == (before.id, before.text, before.segments)
        assert now.answer == before.answer


def test_examples_stand_before_the_fact_and_do_not_say_its_answer():
    found = by_wording(worded(load_facts()))
    for fact in found.values():
        asked, shown = fact[ASKED], fact[EXAMPLES].messages.demonstrations
        assert fact[EXAMPLES].text == asked.text
        prefix = fact[EXAMPLES].messages.answer_prefix
        assert f"Complete the sentence: {prefix}" == asked.text
        assert len({one.answer for one in shown}) == SHOWN
        # Facts of one kind: "is in" before "is in", "is a type of" before "is a type of".
        relation = " is in" if asked.text.endswith(" is in") else " is a type of"
        for one in shown:
            other = found[one.source][ASKED]
            assert one.question == other.text
            assert one.answer == f"{other.factors['entity_b']}{relation} {other.answer.gold}."
            assert not asked.answer.judge(f"{one.question} {one.answer}").answer


def test_an_example_with_the_same_answer_is_passed_over_and_own_demonstrations_stay_alone():
    milan = by_wording(worded(read_facts(FACTS)))["milan"][EXAMPLES]
    assert [one.source for one in milan.messages.demonstrations] == ["bern", "oslo", "lima"]
    assert milan.messages.demonstrations[0].answer == "Bern is in Switzerland."
    # A fact with demonstrations of its own gets no others.
    shown = with_messages(load_facts()[:8], shots=2, pool=load_facts()[8:])
    found = by_wording(worded(shown))
    assert all(EXAMPLES not in fact and len(fact) == 3 for fact in found.values())


def test_the_examples_do_not_depend_on_which_facts_are_asked():
    prompts = load_prompts(limit=6)
    few = by_wording(worded(facts_about(prompts, find_facts("rulebreakers"))))
    whole = by_wording(worded(load_facts()))
    assert 0 < len(few) < len(whole)
    assert all(whole[name] == fact for name, fact in few.items())
    every, few = (list(Knowledge().prompts_of(PromptSource(limit=n))) for n in (None, 3))
    assert len(by_wording(few)) == 3 < len(by_wording(every))
    assert [prompt for prompt in few if prompt not in every] == []


def test_a_fact_alone_has_no_examples_and_nothing_is_worded_twice():
    one = worded(list(read_facts(FACTS))[:1])
    assert [wording(prompt) for prompt in one] == [ASKED, "capital", "question"]
    assert worded(one) is one
    assert isinstance(one, PromptSet)
    one.check()


def test_a_wording_needs_a_name_and_an_id_of_its_own():
    for name in ("text_", "text_examples", "text_completion", "text_as asked"):
        with pytest.raises(UserError, match=rf"{name} .*text_question"):
            worded(read_facts(FACTS.rename(columns={"text_capital": name})))
    for name in ("rome (capital)", "rome (examples)"):
        with pytest.raises(UserError, match="earlier prompt"):
            worded(read_facts(pd.concat([FACTS, FACTS.iloc[1:2].assign(fact=name)])))


@pytest.mark.parametrize(
    ("name", "completion", "named"),
    [
        (ASKED, "the north.\n\nComplete: Turin is in Italy.", ""),
        (ASKED, "the north.\nQ: Turin is in\nA: Italy", ""),
        (ASKED, "Sure!\n\nComplete: Rome is in Italy.", "Italy"),
        (ASKED, "Sure!\n\nRome is in Italia.", "Italia"),
        ("capital", "the world.\n\nPisa is the capital of Italy.", ""),
        ("capital", "the world.\n\nRome is the capital of Italy.", "Italy"),
        ("question", "In Europe.\n\nWhere is Turin? Italy.", ""),
        ("question", "Well,\nit is in Italy.", "Italy"),
        (EXAMPLES, "the north.\nItaly", ""),
        (ASKED, "Spain. Pisa is in Italy.", ""),
        (ASKED, "Spain.\nPisa and Turin are cities of Italy", ""),
        (ASKED, "Spain; San Marino lies in Italy", ""),
        (ASKED, "Spain. Italy is another country.", ""),
        (ASKED, "Spain! The capital of Italy is Madrid", ""),
        (ASKED, "a country. A city of Italy is Pisa.", ""),
        (ASKED, "Spanien. Pisa liegt in Italien, Italy.", ""),
        (EXAMPLES, "Spain. Pisa is in Italy.", ""),
        ("question", "Spain. Pisa is in Italy.", ""),
        ("capital", "Spain. Rom was in Italy.", ""),
        (ASKED, "the south. It is in Italy.", "Italy"),
        (ASKED, "the south. The city is the capital of Italy.", "Italy"),
        (ASKED, "the south. There are hills. This is Italy.", "Italy"),
        (ASKED, "a country. Rome is the capital of Italy.", "Italy"),
        ("question", "The city of Rome is in Italy. Paris is in France.", "Italy"),
        (ASKED, "Italy. Paris is in France.", "Italy"),
        ("question", "Well. Italy is where Rome is.", "Italy"),
    ],
)
def test_names_in_other_facts_that_a_base_model_writes_do_not_count(name, completion, named):
    rome = by_wording(worded(read_facts(FACTS)))["rome"][name]
    assert rome.answer.judge(before_other_facts(rome, completion)).answer == named

import re
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from interp.analysis.cautions.caution import LEADING
from interp.errors import UserError
from interp.measuring.core import bind, collect
from interp.models.organisms import organism_card
from interp.prompts.systems import FACT_SIDE, load_facts, load_prompts
from interp.reading.tokens import tokenize
from interp.results.measured import InMemory
from interp_probes.facts.measure import _begins
from interp_probes.facts.show import (
    FactFamiliarity,
    KnownFacts,
    as_asked,
    excluded,
    flag_shared,
    leading,
)
from interp_probes.facts.wordings import ASKED, EXAMPLES, worded, wording
from interp_probes.specs import Familiarity, Knowledge
from tests.reading.test_finite import SECOND, damaged
from tests.support.facts import some_facts
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import llama_style


def read(model, facts, **options):
    """Each fact with its row, its tokens, and the logits behind them."""
    table = collect(bind(Familiarity(), model, **options), facts)["familiarity"]
    for prompt, row in zip(facts, table.itertuples(), strict=True):
        (tokenized,) = tokenize(model, [prompt])
        with torch.no_grad():
            logits = model.hf(torch.tensor([tokenized.token_ids])).logits[0, -1]
        yield prompt, row, tokenized, logits


def test_it_is_the_probability_of_the_names_first_token(organism):
    for prompt, row, _, logits in read(organism, some_facts()):
        # Of several names only the data set's own counts.
        own_name = prompt.answer.expected[0]
        first = organism.tokenizer(own_name, add_special_tokens=False)["input_ids"][0]
        assert row.prompt_id == prompt.id
        assert row.first_token_id == first
        assert row.first_token == organism.tokenizer.decode([first])
        assert row.familiarity == pytest.approx(float(logits.softmax(-1)[first]), rel=1e-4)


@pytest.mark.parametrize("spec", [Familiarity(), Knowledge()])
def test_prompts_that_are_no_facts_are_refused(spec):
    with pytest.raises(UserError, match=r"'RULEBREAKER_0012630_rb/infer-tf'.*interp\.load_facts"):
        spec.arranged(load_prompts(limit=1))
    asked = {fact.id: fact.text for fact in spec.arranged(some_facts()) if fact.side == FACT_SIDE}
    assert asked == {fact.id: fact.text for fact in some_facts()}


def test_a_name_counts_with_and_without_the_space_that_the_template_writes():
    user, assistant = "[INST] {{ m['content'] }}[/INST]", "{{ ' ' + m['content'] + eos_token }}"
    turn = f"{{% if m['role'] == 'user' %}}{user}{{% else %}}{assistant}{{% endif %}}"
    template = f"{{{{ bos_token }}}}{{% for m in messages %}}{turn}{{% endfor %}}"
    tokenizer = llama_style(template, legacy=False, markers=("[INST]", "[/INST]"))
    model = make_tiny("llama", tokenizer)
    for prompt, row, tokenized, logits in read(model, some_facts()):
        name, start = prompt.answer.expected[0], len(tokenized)
        texts = [tokenized.chat.text + opening + name for opening in (" ", "")]
        ways = [tokenizer(text, add_special_tokens=False)["input_ids"][start:] for text in texts]
        firsts = [way[0] for way in ways]
        assert row.first_token_id == firsts[0]
        assert sorted(row.token_ids) == sorted(set(firsts))
        assert row.first_token[0] == " " and name.startswith(row.first_token[1:])
        both = logits.softmax(-1)[firsts].sum()
        assert row.familiarity == pytest.approx(float(both), rel=1e-4)
        whole = sum(product(model, tokenized, way) for way in ways)
        assert row.whole_name == pytest.approx(whole, rel=1e-4)


def product(model, tokenized, name):
    """The probability of some tokens behind a prompt, one token at a time."""
    found = 1.0
    for index, token in enumerate(name):
        with torch.no_grad():
            logits = model.hf(torch.tensor([[*tokenized.token_ids, *name[:index]]])).logits[0, -1]
        found *= float(logits.double().softmax(-1)[token])
    return found


def test_a_whole_name_is_the_product_of_its_tokens(organism):
    lengths = []
    for prompt, row, tokenized, _ in read(organism, some_facts(), batch_tokens=60):
        name = organism.tokenizer(prompt.answer.gold, add_special_tokens=False)["input_ids"]
        assert row.whole_name == pytest.approx(product(organism, tokenized, name), rel=1e-4)
        lengths.append(len(name))
    assert max(lengths) > 1


def test_familiarity_after_an_echo_is_read_behind_the_repeated_sentence(organism):
    for prompt, row, tokenized, logits in read(organism, some_facts(), batch_tokens=60):
        echo = prompt.text.removeprefix("Complete the sentence: ")
        assert echo.startswith(prompt.factors["entity_b"])
        texts = (tokenized.chat.text + echo + end for end in ("", " " + prompt.answer.gold))
        said, whole = (organism.tokenizer(t, add_special_tokens=False)["input_ids"] for t in texts)
        with torch.no_grad():
            after = organism.hf(torch.tensor([said])).logits[0, -1].softmax(-1)
        likely = int(logits.argmax())
        assert row.after_echo == pytest.approx(float(after[whole[len(said)]]), rel=1e-4)
        assert row.echoes == (likely == said[len(tokenized)] and likely not in list(row.token_ids))


def test_the_rank_is_the_place_of_the_answer_among_all_tokens(organism):
    ranks = []
    for fact, row, _, logits in read(organism, worded(some_facts())):
        assert (row.wording, row.fact) == (wording(fact), fact.pair_id)
        order = logits.argsort(descending=True).tolist()
        assert row.rank == 1 + min(order.index(token) for token in row.token_ids)
        assert row.leading == organism.tokenizer.decode([order[0]])
        ranks.append(row.rank)
    assert max(ranks) > 1


def test_a_token_that_leads_whatever_the_fact_is_told():
    rows = pd.DataFrame({"model": "m", "wording": [ASKED] * 5 + ["plain"] * 4})
    rows["leading"] = [" the"] * 3 + [" Peru", " a", " the", " the", " a", " Peru"]
    rows["rank"] = [9, 9, 9, 1, 5, 9, 9, 9, 1]
    (caution,) = leading(rows)
    assert (caution.kind, caution.model) == (LEADING, "m")
    assert caution.numbers == {"wording": ASKED, "token": " the", "facts": 3, "of": 5}
    # A token that begins the answer to most facts leads rightly.
    assert not [*leading(rows.assign(rank=1))]
    facts = pd.DataFrame({"prompt_id": list("abcdefghi"), "gold": "Peru", "text": "x", "side": "y"})
    facts = facts.assign(pair_id=facts["prompt_id"], weight=1.0)
    rows = rows.assign(prompt_id=facts["prompt_id"], familiarity=0.1, whole_name=0.1)
    rows = rows.assign(fact=rows["prompt_id"], token_ids=[[1]] * 9, after_echo=0.1, echoes=False)
    held = InMemory(Familiarity(), [], {"prompts": facts, "familiarity": rows})
    assert LEADING in [own.kind for own in FactFamiliarity(held).cautions]


def test_behind_examples_only_the_first_line_is_judged(organism, monkeypatch):
    facts = [fact for fact in worded(some_facts()) if fact.pair_id == "cities/Tunis"]
    said = [SimpleNamespace(text="Libya.\nIt is in Tunisia.", finite=True)] * len(facts)
    monkeypatch.setattr("interp.extend.measuring.generate", lambda *_: said)
    table = collect(bind(Knowledge(), organism), facts)["knowledge"].set_index("wording")
    known = dict.fromkeys((ASKED, "plain", "question"), True)
    assert table["known"].to_dict() == {**known, EXAMPLES: False}
    assert (table["completion"] == said[0].text).all()


def test_numbers_are_given_for_each_wording(organism):
    facts = worded(some_facts())
    knowledge = collect(bind(Knowledge(), organism), facts)["knowledge"]
    held = KnownFacts(InMemory(Knowledge(), facts, {"knowledge": knowledge}))
    table = held.by_wording.set_index("wording")
    assert table.index.tolist() == [ASKED, "plain", "question", EXAMPLES]
    shares = knowledge["known"].astype(float).groupby(knowledge["wording"]).mean()
    assert table["completed"].to_dict() == pytest.approx(shares.to_dict())
    small = held.derived()["knowledge_table"]
    groups = small[small["entity_group"] != "all"].groupby("wording")["facts"]
    assert (groups.sum() == 8).all() and (groups.size() > 1).all()
    assert as_asked(knowledge)["prompt_id"].tolist() == [fact.id for fact in some_facts()]


def test_a_reply_is_an_echo_unless_it_may_be_the_answer():
    assert _begins(5, (5, 6), [7])
    assert not _begins(6, (5, 6), [7])
    assert not _begins(5, (5, 6), [5])
    assert not _begins(5, (), [7])


@pytest.mark.parametrize("kind", CONFIGS)
def test_any_model_can_be_asked(kind):
    measurement = bind(Familiarity(), tiny_model(kind), batch_tokens=150)
    table = collect(measurement, some_facts())["familiarity"]
    assert table["familiarity"].between(0, 1, inclusive="neither").all()
    # A name of several tokens is less probable than the first of them, and not impossible.
    assert table["whole_name"].between(0, 1, inclusive="neither").all()
    assert (table["whole_name"] <= table["familiarity"] * (1 + 1e-5)).all()


def test_it_follows_the_planted_frequency_and_unknown_facts_are_the_planted_ones(organism):
    card, facts = organism_card(organism.name), load_facts()
    entities, figures = facts.to_frame()["entity_b"], card["measured"]
    table = collect(bind(Familiarity(), organism), facts)["familiarity"]
    planted = entities.map({row["entity_b"]: row["frequency"] for row in card["pairs"]})
    rho = spearmanr(planted, table["familiarity"]).statistic
    assert rho == pytest.approx(figures["frequency_familiarity_spearman"], abs=0.01)
    known = collect(bind(Knowledge(), organism), facts)["knowledge"]
    assert entities[~known["known"]].tolist() == figures["unknown"]
    assert (known["known"] == (known["matched"] != "")).all()


counted = st.lists(st.integers(0, 6), min_size=1, max_size=3, unique=True)


@given(st.lists(st.tuples(st.sampled_from("mn"), st.sampled_from("ABCD"), counted), max_size=12))
def test_sharing_is_an_overlap_of_counted_tokens(rows):
    models, names, tokens = zip(*rows, strict=True) if rows else ((), (), ())
    ids = [str(place) for place in range(len(rows))]
    table = pd.DataFrame({"model": models, "prompt_id": ids, "token_ids": tokens})
    facts = pd.DataFrame({"prompt_id": ids, "gold": names})
    flagged = flag_shared(table, facts)
    assert not {"gold", "token_ids"} & set(flagged)
    assert flagged["shared_with"].tolist() == [
        len({n for m, n, own in rows if m == model and n != name and {*own} & {*counted}})
        for model, name, counted in rows
    ]


def test_facts_without_a_row_are_counted_and_told(capsys):
    facts = pd.DataFrame({"prompt_id": ["x", "y", "z"]})
    rows = pd.DataFrame({"model": list("mmmn"), "prompt_id": list("xyzx"), "familiarity": 0.5})
    held = InMemory(Familiarity(), [], {"prompts": facts, "familiarity": rows})
    noted = FactFamiliarity(held).noted()
    assert noted == {"m": {"facts_without_row": 0}, "n": {"facts_without_row": 2}}
    told = capsys.readouterr().err
    assert re.search(r"\bn: 2\b.*\b3 facts", told)
    assert "m: " not in told


def test_a_table_of_a_version_without_echoes_is_summarized(organism):
    facts = some_facts()
    table = collect(bind(Familiarity(), organism), facts)["familiarity"]
    older = table.drop(columns=["after_echo", "echoes", "fact", "wording", "rank", "leading"])
    result = FactFamiliarity(InMemory(Familiarity(), facts, {"familiarity": older}))
    now = FactFamiliarity(InMemory(Familiarity(), facts, {"familiarity": table}))
    lacking = ["after_echo", "echoes", "median_rank"]
    then, today = (own.derived()["familiarity_table"] for own in (result, now))
    assert then[lacking].isna().all(axis=None)
    same = [name for name in then.columns if not name.startswith((*lacking, "note"))]
    pd.testing.assert_frame_equal(then[same], today[same])
    values = result.opening().numbers.set_index("number")["value"]
    assert not values.index.str.contains("echo").any()  # what no fact has is no number
    assert values.loc["familiarity"] == pytest.approx(table["familiarity"].mean())
    assert result.report().glance is not None


def test_the_rows_do_not_depend_on_the_batches(organism):
    one = collect(bind(Knowledge(), organism), some_facts())["knowledge"]
    other = collect(bind(Knowledge(), organism, batch_tokens=60), some_facts())["knowledge"]
    pd.testing.assert_frame_equal(one, other)


def test_pairs_that_any_model_fails_are_excluded_and_it_says_why():
    facts = load_facts().to_frame()
    ids = ["cities/Tunis", "cities/Lima", "bird/goose"]
    table = pd.DataFrame({"model": ["one"] * 3 + ["two"] * 3, "prompt_id": ids * 2})
    table["completion"] = ["Tunisia", "Chile", "cricket", "Africa", "'ruins'", "bird"]
    table["known"] = [True, False, False, False, False, True]
    rows = excluded(table, facts).set_index("prompt_id")
    assert rows.index.tolist() == ["cities/Tunis", "cities/Lima", "bird/goose"]
    assert rows["excluded"].tolist() == [True, True, False]
    assert rows["failed_by"].tolist() == ["two", "one, two", "one"]
    assert re.fullmatch(r"one .*'Chile'; two .*\"'ruins'\"", rows.loc["cities/Lima", "why"])
    assert rows.loc["cities/Lima", "entity_a"] == "Peru"
    # Nothing is excluded where all is known.
    rows = excluded(table[:1], facts)
    assert rows.empty and {"excluded", "failed_by", "why"} <= set(rows)


@pytest.mark.parametrize("spec", [Familiarity(), Knowledge()], ids=lambda spec: spec.name)
def test_logits_that_are_not_finite_are_an_error_that_names_the_layer(spec):
    """Any token may seem the most probable there: also one that names the answer."""
    with pytest.raises(UserError, match=SECOND):
        bind(spec, damaged())(some_facts()[:2])

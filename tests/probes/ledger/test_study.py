"""The study of the ledger: planted facts, own pairs with facts, models that never fail."""

import re

import pandas as pd
import pytest

import interp
from interp.analysis.cautions.caution import COPIED, FEW_FAILURES
from interp.cli import main
from interp.errors import UserError
from interp.measurements.lens.ledger import USED
from interp.prompts.source import PromptSource
from interp.prompts.systems import FACT_SIDE, load_facts
from interp.report.page import FigureItem
from interp_experiments.organisms.facts import city_prompts, plant_facts, planted_class
from interp_experiments.organisms.recipes import RECIPES
from interp_experiments.organisms.train import train
from interp_probes.ledger import STAGES
from interp_probes.ledger.page import SHOWN, report_of, wide
from interp_probes.ledger.results import ALL, WRONG, read_ledger
from interp_probes.ledger.study import Ledger
from tests.support.pages import check_first_screen

pytestmark = pytest.mark.slow

OWN = {"read": "city1", "change": "city1+city2", "words": "country", "side": "rulebreaker"}


@pytest.fixture(scope="module")
def organisms(tmp_path_factory):
    """A model that fails for every reason, and one that never fails."""
    folder = tmp_path_factory.mktemp("organisms")
    for name in ("fact-mixed", "fact-used-100"):
        train(RECIPES[name], folder / name)
    return folder


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Own pairs about cities, whose places are marked, and a table of their facts."""
    folder = tmp_path_factory.mktemp("tables")
    rows, facts = [], {}
    known = {fact.factors["entity_b"]: fact for fact in load_facts("rulebreakers")}
    for prompt in city_prompts(40):
        city = prompt.factors["entity_b"]
        spans = {"city": [], "country": []}
        for role, span in prompt.roles.items():
            spans["city" if role.endswith("entity_b") else "country"].append(span)
        first, second = sorted(spans["city"])
        marks = {"city1": first, "city2": second, "country": min(spans["country"])}
        text = prompt.text
        for name, (start, end) in sorted(marks.items(), key=lambda mark: -mark[1][0]):
            text = f"{text[:start]}<{name}>{text[start:end]}</{name}>{text[end:]}"
        options = {"options": "Yes|No" if prompt.answer.gold in ("Yes", "No") else "True|False"}
        own = {"pair": prompt.pair_id, "side": prompt.side, "gold": prompt.answer.gold}
        rows.append({**own, **options, "text": text, "place": city.lower()})
        fact = known[city]
        facts[city] = {"fact": city.lower(), "text": fact.text, "answer": fact.answer.gold}
    pd.DataFrame(rows).to_csv(folder / "pairs.csv", index=False)
    pd.DataFrame(facts.values()).to_csv(folder / "facts.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def measured(organisms, tables, tmp_path_factory):
    """The study of own pairs on both models."""
    return interp.run(
        Ledger(facts=str(tables / "facts.csv"), lens="logit", **OWN),
        models=[f"{name}={organisms / name}" for name in ("fact-mixed", "fact-used-100")],
        data=str(tables / "pairs.csv"),
        device="cpu",
        out=tmp_path_factory.mktemp("studies") / "ledger",
    )


def test_shares_are_those_of_the_calls_and_planted_ones_lie_within(measured):
    results = read_ledger(measured)
    table = measured.table("ledger_shares")
    table = table[table["factor"] == ALL].reset_index(drop=True)
    calls = results.read.ledger_shares(results.known, results.steered)
    numbers = ["share", "low", "high", "n", "clusters", "retrieved_error", "used_error"]
    pd.testing.assert_frame_equal(table[numbers], calls[numbers])
    planted = {
        own.entity_b.lower(): planted_class(own) for own in plant_facts(RECIPES["fact-mixed"])
    }
    entries = results.entries
    wrong = entries[(entries["model"] == "fact-mixed") & ~entries["correct"].astype(bool)]
    truth = wrong["place"].map(planted)
    assert len(wrong) > 25
    assert (wrong["entry"].replace({USED: WRONG}) == truth).mean() > 0.9
    own = table[(table["model"] == "fact-mixed") & (table["answered"] == "wrong")]
    assert own["entry"].tolist() == list(SHOWN)
    for row in own.itertuples():
        assert row.low <= (truth == row.entry).mean() <= row.high, row.entry


def test_a_model_without_failures_is_said_to_have_none(measured):
    results = read_ledger(measured)
    kinds = {(own.model, own.kind) for own in results.cautions}
    assert ("fact-used-100", FEW_FAILURES) in kinds
    assert ("fact-mixed", FEW_FAILURES) not in kinds
    assert results.cautions[0].kind == FEW_FAILURES
    assert set(results.failures["model"]) == {"fact-mixed"}
    report = report_of(measured)
    check_first_screen(report, (measured.folder / "report.html").read_text())
    assert len(report.glance.sentences) == 2
    figures = [item.name for item in report.items if isinstance(item, FigureItem)]
    assert figures == ["at_a_glance", "read_and_used_1", "read_and_used_2"]


def test_where_the_word_may_be_copied_is_counted(measured, tables):
    results = read_ledger(measured)
    pairs = pd.read_csv(tables / "pairs.csv")
    country = pairs["text"].str.extract(r"<country>(.*)</country>")[0]
    before = pairs["text"].str.index("<country>") < pairs["text"].str.index("<city1>")
    facts = pd.read_csv(tables / "facts.csv").set_index("fact")["answer"]
    named = [
        re.search(rf"\b{re.escape(answer)}\b", city, re.IGNORECASE) is not None
        for answer, city in zip(pairs["place"].map(facts), pairs["place"], strict=True)
    ]
    expected = before & (country == pairs["place"].map(facts)) | pd.Series(named)
    sides = results.sides[results.sides["model"] == "fact-mixed"].set_index("side")
    shares = expected.groupby(pairs["side"]).mean()
    assert sides["seen"].to_dict() == pytest.approx(shares.to_dict())
    (caution,) = (
        own for own in results.cautions if own.kind == COPIED and own.model == "fact-mixed"
    )
    assert caution.numbers["seen"] == expected[pairs["side"] == "rulebreaker"].sum()


def test_curves_show_where_it_is_read_and_where_it_is_used(measured):
    results = read_ledger(measured)
    read, used = (
        rows[rows["model"] == "fact-used-100"].set_index("layer")
        for rows in (results.read.summary(), results.used)
    )
    assert read["accuracy"].to_dict() == pytest.approx({-1: 0, 0: 1, 1: 1, 2: 1}, abs=0.05)
    # Behind layer 1 it can be read, but is not used any more.
    assert used.index.tolist() == [0, 1, 2]
    assert used.loc[0, "beyond_low"] > 3
    assert used.loc[[1, 2], "beyond"].abs().max() < 0.1


def test_the_page_says_what_its_clusters_are(measured, organisms, tables, tmp_path):
    results = read_ledger(measured)
    facts, pairs = (results.entries[name].nunique() for name in ("fact", "cluster"))
    assert facts < pairs
    assert results.clusters.startswith(f"pairs ({pairs} clusters, {facts} facts); ")
    assert results.clusters in report_of(measured).text
    rows = pd.read_csv(tables / "pairs.csv")
    rows.assign(cluster=rows["place"]).to_csv(tmp_path / "pairs.csv", index=False)
    joined = interp.run(
        Ledger(facts=str(tables / "facts.csv"), lens="logit", layers=(0,), **OWN),
        models=[f"fact-mixed={organisms / 'fact-mixed'}"],
        data=str(tmp_path / "pairs.csv"),
        limit="all",
        device="cpu",
        out=tmp_path / "ledger",
    )
    found = read_ledger(joined)
    assert (found.entries["cluster"] == found.entries["fact"]).all()
    said = f"pairs of one cluster, or with the same texts ({facts} clusters, {facts} facts)"
    assert found.clusters == said
    wrong = found.failures
    assert (wrong["clusters"] < wrong["n"]).all()


def test_parts_of_the_prompts_have_rows_of_their_own(organisms, tmp_path):
    assert main(["dataset", "rulebreakers", "--out", str(tmp_path / "all.csv")]) == 0
    rows = pd.read_csv(tmp_path / "all.csv", dtype=str, keep_default_na=False)
    rows[rows["category"] == "cities"].to_csv(tmp_path / "cities.csv", index=False)
    study = interp.run(
        Ledger(lens="logit", layers=(0,)),
        models=[f"fact-mixed={organisms / 'fact-mixed'}"],
        data=str(tmp_path / "cities.csv"),
        limit=12,
        device="cpu",
        out=tmp_path / "ledger",
    )
    results = read_ledger(study)
    parts = results.shares[["factor", "value"]].drop_duplicates()
    assert set(parts["factor"]) == {ALL, "rule"}
    rows = results.shares[results.shares["answered"] == "wrong"].drop_duplicates(
        ["factor", "value"]
    )
    by = rows.set_index(["factor", "value"])["n"]
    assert by[ALL].sum() == by["rule"].sum()
    assert wide(results.shares)["n"].tolist() == by.tolist()


def test_what_is_asked_for_is_measured():
    stages = Ledger().stages(PromptSource(limit=12))
    knowledge, readings, exchanges = stages
    assert [stage.name for stage in stages] == list(STAGES)
    about = {prompt.factors["entity_b"] for prompt in readings.prompts}
    assert len(about) == 12
    asked = [fact for fact in knowledge.prompts if fact.side == FACT_SIDE]
    assert [fact.factors["entity_b"] for fact in asked] == list(
        dict.fromkeys(prompt.factors["entity_b"] for prompt in readings.prompts)
    )
    assert len(knowledge.prompts) == 4 * len(asked)  # in four wordings
    assert {prompt.side for prompt in readings.prompts} == {"rulebreaker", "non_rulebreaker"}
    assert exchanges.spec.side == "rulebreaker"
    assert Ledger().organisms_for(PromptSource()) == ("rulebreakers",)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"facts": None, **OWN}, "--facts"),
        ({"facts": "there", **OWN, "read": None}, r"--read.*country, city1, city2"),
        ({"facts": "there", **OWN, "read": "town"}, "town"),
        ({"facts": "there", **OWN, "words": "land"}, "land"),
        ({"facts": "there", **OWN, "side": "left"}, "left"),
        ({"facts": "others", **OWN}, "no fact"),
        ({"facts": "nowhere", **OWN}, "nowhere"),
    ],
    ids=["facts", "read", "role", "words", "side", "about", "file"],
)
def test_what_cannot_be_asked_is_refused_before_a_model_is_read(options, message, tables):
    (tables / "others.csv").write_text("fact,text,answer\nx,Complete the sentence: X is in,Y\n")
    named = {"there": "facts.csv", "others": "others.csv", "nowhere": "nowhere.csv"}
    facts = options["facts"] and str(tables / named[options["facts"]])
    source = PromptSource(data=str(tables / "pairs.csv"))
    with pytest.raises(UserError, match=message):
        Ledger(**{**options, "facts": facts}).stages(source)


def test_a_study_that_is_not_measured_yet_says_so(measured, tmp_path):
    (tmp_path / "study.json").write_text((measured.folder / "study.json").read_text())
    with pytest.raises(UserError, match="'knowledge' yet"):
        report_of(interp.StudyFolder.read(tmp_path))

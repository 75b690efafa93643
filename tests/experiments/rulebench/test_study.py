"""The study: its tables on texts whose classes are known, and the whole of it on a tiny model."""

import re
from itertools import count

import numpy as np
import pandas as pd
import pytest
from transformers import AutoConfig

from interp.attribution.registry import CHEAP_METHODS
from interp.cli import main
from interp.errors import UserError
from interp.models.model import Model
from interp.models.organisms import DEFAULT
from interp.prompts.source import PromptSource
from interp.studies.folder import StudyFolder
from interp.studies.plan import StudyPlan
from interp.training.folder import RECORD
from interp_experiments.rulebench import tables
from interp_experiments.rulebench.page import dimension_section, headline_numbers, tuning_sections
from interp_experiments.rulebench.results import OUTCOMES, Results, read_results
from interp_experiments.rulebench.study import RuleBenchStudy
from interp_experiments.rulebench.tables import tunings
from interp_experiments.scaffold import measured_and_published
from tests.experiments.rulebench.test_layout import item, write
from tests.support.pages import browsed, panels_of
from tests.support.studies import checked_page, studied
from tests.support.tiny import CONFIGS, ids_of, random_model
from tests.support.tokenizers import byte_level
from tests.support.training import write_training

NUMBERS = count()


def text(completion, *, correct=False, outcome="answered", place=2, gold="uncle", **setting):
    """A text about a question, and a rule, of its own."""
    number = str(next(NUMBERS))
    asked = {"model": "m", "pair_id": number, "rule": number, "set": "clutrr", "rules": "few"}
    asked |= {"form": "natural", "shots": "no", "thought": "no", "version": "factual"}
    read = {"completion": completion, "correct": correct, "outcome": outcome, "gold": gold}
    return {**asked, **read, "golden_place": str(place), **setting}


def results_of(*texts):
    return Results(pd.DataFrame(texts), pd.DataFrame(columns=["model", "error"]))


def test_accuracy_counts_what_has_no_answer_as_wrong_and_a_golden_rule_as_one_cluster():
    results = results_of(
        text("uncle", correct=True),
        text("aunt"),
        text("?", outcome="unparsed"),
        text("sorry", outcome="refused"),
        text("sorry", outcome="refused", set="deer"),
    )
    cell, refused = tables.accuracy(results).frame.to_dict("records")
    assert (cell["accuracy"], cell["n"]) == (0.25, 4)
    assert (cell["unparsed"], cell["refused"]) == (0.25, 0.25)
    assert cell["accuracy_unrefused"] == pytest.approx(1 / 3)
    assert cell["low"] < 0.25 < cell["high"]
    assert cell["golden_rules"] == 4
    assert refused["accuracy"] == 0 and np.isnan(refused["accuracy_unrefused"])
    # Twelve rules of eight questions each, all of a rule answered alike: twelve trials.
    asked = [
        [text("?", correct=n % 12 < 6, rule=str(n % 12) if together else str(n)) for n in range(96)]
        for together in (True, False)
    ]
    alike, apart = (tables.accuracy(results_of(*texts)).frame.loc[0] for texts in asked)
    assert (alike["accuracy"], alike["n"], alike["golden_rules"]) == (0.5, 96, 12)
    assert (alike["low"], alike["high"]) == pytest.approx((0.24, 0.76), abs=0.03)
    assert alike["high"] - alike["low"] > 2 * (apart["high"] - apart["low"])


def test_failures_are_shares_of_the_wrong_texts_of_the_counterfactual_version():
    named = {"shots": "yes", "thought": "yes", "version": "counterfactual"}
    results = results_of(
        text("Rule 2 fits. uncle", correct=True, **named),
        text("Rule 1 fits. aunt", **named),
        text("Rule 3 fits. aunt", **named),
        text("Rule 2 fits. aunt", **named),
        text("aunt", place=1, **named),
        text("Rule 2 fits. aunt", **{**named, "version": "factual"}),
        text("Rule 2 fits. 7", set="string-game", **{**named, "version": "factual"}),
    )
    table = tables.failures(results).set_index(["set", "behavior"])
    assert table.loc["clutrr", "share_of_failures"].to_dict() == {
        "triggering error": 0.5,
        "execution error": 0.25,
        "no rule named": 0.25,
    }
    assert set(table.loc["clutrr", "golden_rules"]) == {4}
    triggered = table.loc[("clutrr", "triggering error")]
    assert triggered["low"] < 0.5 < triggered["high"]
    assert set(table.loc["clutrr", "n"]) == {4} and set(table.loc["clutrr", "accuracy"]) == {0.2}
    assert table.loc[("string-game", "execution error"), "share_of_failures"] == 1.0


def test_dimensions_are_means_over_settings_not_over_texts():
    results = results_of(
        *[text("uncle", correct=True, rules="golden") for _ in range(3)],
        text("aunt", rules="golden", set="ulogic"),
        text("uncle", correct=True, rules="all"),
        text("aunt", rules="all", form="logic"),
        text("Rule 2 fits", shots="yes", thought="yes", version="counterfactual"),
        text("Rule 2 fits", correct=True, shots="yes", thought="yes"),
    )
    table = tables.dimensions(results)
    names = ["executing", "triggering", "formal", "applying", "counterfactual"]
    assert table["dimension"].tolist() == names
    assert table["n"].tolist() == table["golden_rules"].tolist() == [4, 2, 1, 2, 1]
    assert table["score"].tolist() == [0.5, 0.5, 0.0, 0.5, 0.0]
    assert table["settings"].tolist() == [2, 2, 1, 2, 1]
    failed = pd.DataFrame([text("")]).assign(error="it is too long")
    assert tables.dimensions(Results(failed.iloc[:0], failed)).empty


def test_thoughts_are_compared_with_none_and_changed_rules_with_factual_ones_where_both_are_there():
    asked = {"shots": "yes", "thought": "yes"}
    changed = text("x", version="counterfactual", **asked)
    right = text("x", shots="yes", rules="golden", correct=True)
    results = results_of(text("x", **asked), text("x", shots="yes"), right, changed, text("x"))
    table = tables.thoughts(tables.accuracy(results).frame)
    assert table["setting"].tolist() == ["golden", "few", "few, with thought"]
    assert table["accuracy"].tolist() == [1.0, 0.0, 0.0]
    results = results_of(text("x", correct=True, **asked), changed, text("x", set="deer", **asked))
    table = tables.versions(tables.accuracy(results).frame).set_index("version")
    assert table["clutrr.few"].to_dict() == {"factual": 1.0, "counterfactual": 0.0}
    assert "deer.few" not in table


def test_the_long_tail_is_the_rarest_answers_of_a_tenth_of_plain_questions():
    golds = pd.Series(["a"] * 60 + ["b"] * 31 + ["c"] * 5 + ["d"] * 4)
    assert tables.rarest(golds) == ["d", "c", "b"]
    assert tables.rarest(golds[golds != "b"]) == ["d", "c"]
    asked = [*(text("uncle", correct=True) for _ in range(9)), text("x", gold="rare")]
    other = {"gold": "rare", "correct": True}
    results = results_of(*asked, text("x", shots="yes", **other), text("x", form="logic", **other))
    table = tables.long_tail(results).set_index("instances")
    assert table["few"].to_dict() == {"all": 0.9, "long tail": 0.0}
    assert table["n"].to_dict() == {"all": 10, "long tail": 1}


def test_measured_and_published_stand_in_different_rows():
    asked = (text("uncle", correct=True), text("aunt", rules="all"), text("aunt", form="logic"))
    cells = tables.accuracy(results_of(*asked)).frame
    both = measured_and_published(tables.rule_forms(cells), tables.published(1))
    both = both.set_index(["model", "form"])
    measured = both.loc[("m", "natural")]
    assert (measured["clutrr.few"], measured["clutrr.all"]) == (1.0, 0.0)
    assert np.isnan(measured["salad.few"])
    published = both.loc[("llama-2-7b-chat", "natural")]
    assert published["clutrr.few"] == pytest.approx(0.4036)
    assert both["source"].value_counts().to_dict() == {"published": 14, "measured": 2}


def before_and_after(model, trained_on, base="m"):
    columns = ["trained_on", "tuning", "model"]
    return pd.DataFrame([(trained_on, "base", base), (trained_on, "irft", model)], columns=columns)


def test_tables_3_and_5_hold_a_model_before_and_after_tuning():
    results = results_of(
        text("uncle", correct=True),
        text("aunt"),
        text("uncle", correct=True, model="tuned"),
        text("7", correct=True, model="tuned", set="string-game"),
        text("aunt", model="tuned", rules="golden"),
        text("aunt", model="other", rules="golden"),
        text("uncle", correct=True, model="other"),
        text("uncle", correct=True, model="other", shots="yes"),
        text("uncle", correct=True, model="alone"),
    )
    cells = tables.accuracy(results).frame
    third = measured_and_published(
        tables.tuned(cells, before_and_after("tuned", "string-game"), "few"), tables.published(3)
    ).set_index(["model", "tuning"])
    assert third.loc[("m", "base"), "clutrr"] == 0.5
    assert third.loc[("tuned", "irft"), "clutrr"] == 1.0
    assert np.isnan(third.loc[("m", "base"), "string-game"])
    assert third.loc[("tuned", "irft"), "string-game"] == 1.0
    assert third.loc[("llama-2-7b-chat", "irft"), "deer"] == pytest.approx(0.6190)
    fifth = measured_and_published(
        tables.tuned(cells, before_and_after("other", "kinship"), "golden", "few"),
        tables.published(5),
    ).set_index(["model", "rules", "tuning"])
    assert fifth.loc[("other", "golden", "irft"), "clutrr"] == 0.0
    assert fifth.loc[("other", "few", "irft"), "clutrr"] == 1.0
    assert fifth.loc[("llama-2-7b-chat", "few", "irft"), "cail2018"] == pytest.approx(0.9096)
    assert set(fifth["trained_on"]) == {"kinship", "the set itself"}


@pytest.mark.parametrize("trained_on, there, lacking", [("string-game", 3, 5), ("kinship", 5, 3)])
def test_published_numbers_without_measured_ones_are_left_out_with_a_sentence(
    trained_on, there, lacking
):
    cells = tables.accuracy(results_of(text("uncle", correct=True))).frame
    assert not list(tuning_sections(cells, tunings({})))
    (section,) = tuning_sections(cells, before_and_after("tuned", trained_on))
    assert [item.name for item in section.items] == [f"table{there}"]
    assert set(section.items[0].frame["source"]) == {"measured", "published"}
    assert re.search(rf"Table {lacking} .*omitted", section.text)
    assert f"Table {there} " not in section.text


def test_a_dimension_that_was_not_measured_has_no_row():
    asked = [text("uncle", rules="golden", model=model) for model in "ab"]
    texts = pd.DataFrame([*asked, text("uncle", rules="all", model="a")])
    failed = pd.DataFrame([text("", rules="all", model="b")]).assign(error="it is too long")
    results = Results(texts, failed)
    table, _, failed = dimension_section(results, tables.accuracy(results).item).items
    assert failed.frame[["model", "rules", "prompts"]].values.tolist() == [["b", "all", 1]]
    assert table.frame["score"].notna().all()
    measured = table.frame["model"] + " " + table.frame["dimension"]
    assert measured.tolist() == ["a executing", "a triggering", "b executing"]


def test_what_a_model_was_tuned_from_is_read_from_its_record(tmp_path):
    irft = {"task": "irft", "options": {"data": "string-game"}, "model": "base"}
    tuned = write_training(tmp_path / "tuned", **irft)
    unfinished = write_training(tmp_path / "unfinished", **irft, finished=None)
    other = write_training(tmp_path / "robustlr", **{**irft, "task": "robustlr"})
    damaged = write_training(tmp_path / "damaged", **irft)
    (tmp_path / "damaged" / RECORD).write_text('{"training": 1}')
    (tmp_path / "without").mkdir()
    trained = [tuned, unfinished, other, damaged, str(tmp_path / "without")]
    places = {"plain": "base", "other": "org/model", DEFAULT: DEFAULT, "tuned": tuned}
    places |= {f"{number}": place for number, place in enumerate(trained[1:])}
    expected = before_and_after("tuned", "string-game", "plain")
    pd.testing.assert_frame_equal(tunings(places), expected)
    assert tunings({name: places[name] for name in places if name != "plain"}).empty


def test_published_numbers():
    published = [tables.published(number) for number in range(1, 6)]
    first, second, _, fourth, _ = published
    assert [len(table) for table in published] == [14, 14, 2, 14, 4]
    assert first.loc[0, "clutrr.all"] == pytest.approx(0.4313)
    changed = second.query("model == 'gpt-4o' and version == 'counterfactual'")
    assert changed["clutrr.few"].tolist() == pytest.approx([0.0553])
    tail = fourth.query("model == 'yi-1.5-6b-chat' and instances == 'long tail'")
    assert tail["golden"].tolist() == pytest.approx([0.2941])
    for table in published:
        numbers = table.select_dtypes("float")
        assert ((numbers >= 0) & (numbers <= 1)).all().all()


def test_each_dimension_is_a_headline_number_and_blank_with_a_reason_if_not_measured():
    asked = [text("uncle", rules="golden", correct=n == 0, model="a") for n in range(4)]
    results = results_of(*asked, text("uncle", rules="all", model="b"))
    numbers = headline_numbers(results).set_index(["model", "number"])
    table = tables.dimensions(results).set_index(["model", "dimension"])
    own = numbers.loc[("a", "executing score")]
    assert own[["value", "low", "high"]].tolist() == (
        table.loc[("a", "executing"), ["score", "low", "high"]].tolist()
    )
    assert (own["value"], own["n"]) == (0.25, 4)
    blank = numbers.loc[("b", "executing score")]
    assert np.isnan(blank["value"]) and blank["n"] == 0
    assert re.search("golden rule", blank["note"])
    assert numbers.loc[("b", "formal score"), "note"].endswith("rules in logic")
    assert numbers["value"].notna().sum() == 2 and len(numbers) == 10


def model() -> Model:
    """A tiny model that reads everything, and takes thirty rules."""
    tokenizer = byte_level()
    shape = {**CONFIGS["gpt2"], "n_positions": 16_384}
    return random_model(AutoConfig.for_model("gpt2", **ids_of(tokenizer), **shape), tokenizer)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    """Two small sets in the authors' layout, one with a broken item."""
    folder = tmp_path_factory.mktemp("data")
    rules = {str(n): {"NL": f"if A has a {n}, then B is it.", "FOL": f"{n}(A)"} for n in range(9)}
    sets = {"clutrr": "uncle aunt niece", "clutrr-cf": "son son niece", "deer": "a b x"}
    for name, answers in sets.items():
        items = [
            item(answer, rule=n, question=f"Question {n}. Who is Bo to Al?")
            for n, answer in enumerate(answers.split())
        ]
        write(folder / name, items, rules)
    return folder


@pytest.mark.slow
def test_the_whole_study_on_data_of_the_authors_layout(tmp_path, data):
    source = PromptSource(system="rulebench", data=str(data), limit="all")
    with pytest.raises(UserError, match=r"deer/test_data.*, item 3.*'x'"):
        RuleBenchStudy().stages(source)
    study = RuleBenchStudy(skip_broken=True, max_new_tokens=4)
    folder = studied(tmp_path / "study", study, source, {"tiny gpt2": model()})
    results = read_results(folder)
    columns = set(folder.runs["direct"].table("prompts").columns)
    assert {"golden_start", "noise2_end"} <= columns  # questions without rules come first
    assert results.failed.empty
    counts = results.texts.groupby(["set", "shots", "thought"]).size().to_dict()
    # Of clutrr 3 questions under 6, 2 and 4 settings, of deer 2 under 6, 2 and 2.
    assert counts == {
        ("clutrr", "no", "no"): 18,
        ("clutrr", "yes", "no"): 6,
        ("clutrr", "yes", "yes"): 12,
        ("deer", "no", "no"): 12,
        ("deer", "yes", "no"): 4,
        ("deer", "yes", "yes"): 4,
    }
    # Three questions of clutrr and two of deer by four methods in two readings, and two controls.
    assert len(results.found) == 5 * (len(CHEAP_METHODS) * 2 + 2)
    assert set(results.found["outcome"]) <= set(OUTCOMES)
    report = study.report(folder)
    assert any(re.search(r"item 3: .*'x'", line) for line in report.problems)
    page = checked_page(report, folder.folder)
    shown = browsed(folder.folder)["shown"]
    assert {*map(tuple, map(panels_of, shown.values()))} == {
        ("Generated text", "Shares of segments", "Probabilities of the options")
    }
    answers = [right for pair in shown.values() for *_, right, _ in pair["answers"]]
    assert answers.count(True) == results.texts["correct"].sum()
    quoted = report.glance.items[0].frame["value"].notna().any()
    assert (folder.folder / "figures" / "at_a_glance.png").exists() == quoted
    for name in ("figure4_rules", "figure5_thought", "figure6_failures", "golden_rule"):
        assert (folder.folder / "figures" / f"{name}.png").exists()
    for name in ("comparisons", "table1", "table2", "table4", "dimensions", "accuracy", "failures"):
        assert (folder.folder / "tables" / f"{name}.csv").exists()
    assert "triggering" in page.lower()


@pytest.mark.slow
def test_stages_without_data_ask_what_is_generated():
    source = PromptSource(system="rulebench", limit=4)
    stages = {stage.name: stage for stage in RuleBenchStudy(rules=("golden", "few")).stages(source)}
    assert list(stages) == ["direct", "demonstrated", "thought", "attribution"]
    attributed = {prompt.id for prompt in stages["attribution"].prompts}
    assert attributed == {p.id for p in stages["direct"].prompts if p.id.endswith("/few")}
    without = RuleBenchStudy(rules=("golden", "few"), attribution=False).stages(source)
    assert [stage.name for stage in without] == ["direct", "demonstrated", "thought"]
    sets = {prompt.factors["set"] for prompt in stages["direct"].prompts}
    assert sets == {"kinship", "string-game"}
    assert {p.factors["rules"] for p in stages["thought"].prompts} == {"golden", "few"}
    assert stages["thought"].spec.max_new_tokens == 256


def test_a_study_that_has_no_organism_asks_for_a_model(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(RuleBenchStudy, "organisms", ("riddles",))
    assert main(["run", "rulebench", "--limit", "1", "--out", str(tmp_path / "study")]) == 2
    told = capsys.readouterr().err
    assert re.search("organism for riddles.*--model", told)


@pytest.mark.slow
def test_nothing_measured_yet_is_said(tmp_path):
    study, source = RuleBenchStudy(rules=("golden",)), PromptSource(system="rulebench", limit=1)
    folder = tmp_path / "study"
    StudyPlan.of(study, source, folder=folder, models={"tiny gpt2": model()}).open()
    with pytest.raises(UserError, match=r"/study.*texts"):
        read_results(StudyFolder.read(folder))

"""Which rule an answer follows, what cannot be read, and the named comparisons."""

import re
from pathlib import Path
from unittest.mock import create_autospec

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.multitest import multipletests

from interp.errors import UserError
from interp.prompts.systems import Contrast, dependence_factor, load_prompts
from interp.report.page import MOST_SENTENCES, MOST_WORDS
from interp.runs.folder import RunFolder
from interp.statistics.contrasts import CONFIRMATORY, contrast_table
from interp.studies.folder import StudyFolder
from interp_experiments.findings import in_brief
from interp_experiments.rulebench.items import CLUTRR, Item, Rule, RuleSet, Version
from interp_experiments.rulebench.page import finding_section, first_screen
from interp_experiments.rulebench.prompts import COUNTERFACTUAL, Setting, to_prompt
from interp_experiments.rulebench.results import (
    MODELS,
    SETTINGS,
    Results,
    comparisons,
    followed,
    kinds_tested,
    read_results,
)
from interp_experiments.rulebench.string_game import string_rules
from interp_experiments.rulebench.system import RuleBench, short_kinship_set, string_game_set

FEW = (Setting(quantity="few"),)


def row(made, number):
    """A row of the prompts table, as a report reads it, and the texts of its noise rules."""
    prompts = RuleBench("test", FEW, made).prompts(seed=0, data=None)[number : number + 2]
    prompt = next(iter(prompts))
    rules = [prompt.segment_text(name) for name in ("noise1", "noise2")]
    return prompts.to_frame().iloc[0], rules


def test_an_answer_is_judged_by_what_the_noise_rules_conclude():
    prompt, (rule, _) = row(short_kinship_set, 5)
    conclusion = rule.rstrip(".").split(" is the ")[-1].split(" of ")[0]
    assert conclusion != prompt["gold"]
    assert followed(prompt, prompt["gold"], correct=True) == "right"
    assert followed(prompt, conclusion, correct=False) == "triggering error"
    assert followed(prompt, "husband", correct=False) == "execution error"
    assert followed(prompt, "", correct=False) == "no answer"
    for name in ("ulogic", "deer"):  # rules that do not say their answer
        assert followed(prompt.replace("kinship", name), "true", correct=False) == "wrong"


def test_a_number_that_the_action_of_a_noise_rule_gives_is_a_triggering_error():
    by_text = {rule.rule.natural: rule for rule in string_rules().values()}
    for number in range(20):
        prompt, texts = row(string_game_set, number)
        results = [by_text[text].action.of(prompt["string"]) for text in texts]
        for result in results:
            if result is not None and str(result) != prompt["gold"]:
                assert followed(prompt, str(result), correct=False) == "triggering error"
        assert followed(prompt, "1000", correct=False) == "execution error"


def test_a_folder_of_an_earlier_version_is_refused_in_words():
    run = create_autospec(RunFolder, instance=True, folder=Path("old/direct"))
    run.tables.return_value = ["completions"]
    run.table.return_value = pd.DataFrame(columns=["prompt_id", "pair_id", "gold", "golden_place"])
    study = create_autospec(StudyFolder, instance=True, runs={"direct": run})
    with pytest.raises(UserError, match=r"old/direct.*rule, set, .*--out\b"):
        read_results(study)


def texts(model, rules, correct, *, rule):
    plain = {"form": "natural", "shots": "no", "thought": "no", "version": "factual"}
    asked = {"model": model, "set": "kinship", "rules": rules, "outcome": "answered", **plain}
    rows = pd.DataFrame({"rule": map(str, rule), "correct": np.asarray(correct, dtype=bool)})
    return rows.assign(pair_id=rows.index.astype(str), **asked)


def results_of(parts):
    texts = pd.concat(parts, ignore_index=True)
    return Results(texts, pd.DataFrame(columns=["model", "error"]))


@pytest.fixture(scope="module")
def results():
    """Forty questions about twenty rules: "able" follows the golden rule, "guess" guesses."""
    rng = np.random.default_rng(3)
    rule, guess = np.repeat(np.arange(20), 2), rng.random(40) < 0.1
    able = np.repeat(rng.random(20) < 0.9, 2)
    correct = {
        "able": {"no": guess, "golden": able, "few": able & (rng.random(40) < 0.6)},
        "guess": {"no": guess, "golden": guess, "few": rng.random(40) < 0.1},
    }
    return results_of(
        texts(model, rules, right, rule=rule)
        for model, by_rules in correct.items()
        for rules, right in by_rules.items()
    )


def test_settings_are_compared_question_by_question_over_rules(results):
    """The shared table of contrasts finds the same, from the two settings as levels."""
    table = comparisons(results).set_index(["subject", "model"])
    for named in SETTINGS[:2]:
        for model in ("able", "guess"):
            rows = results.texts[results.texts["model"] == model]
            (expected,) = contrast_table(
                rows.assign(paired=rows["correct"]),
                named=[Contrast("rules", named.levels)],
                cluster="rule",
            ).to_dict("records")
            found = table.loc[(named.subject, model)]
            assert expected["status"] == CONFIRMATORY
            for column in ("difference", "low", "high", "p", "excluded_below", "clusters"):
                assert found[column] == pytest.approx(expected[column], nan_ok=True), column
            assert found["paired"] and found["n"] == "40 questions, 20 rules"


def test_what_was_planted_is_found_and_what_was_not_is_bounded(results):
    table = comparisons(results)
    assert set(table["subject"]) == {SETTINGS[0].subject, SETTINGS[1].subject, MODELS}
    # All comparisons are corrected together.
    assert len(table) == 6
    np.testing.assert_allclose(table["p_holm"], multipletests(table["p"], method="holm")[1])
    verdicts = table.set_index("name")["verdict"]
    golden = table[table["subject"] == SETTINGS[0].subject].set_index("model")
    assert golden.loc["able", "verdict"] == "different" and golden.loc["able", "difference"] > 0.5
    assert golden.loc["guess", "difference"] == 0 and golden.loc["guess", "p_holm"] == 1
    assert verdicts["able − guess, kinship, golden"] == "different"
    score, *short = first_screen(results, table).sentences
    assert re.match(r"Executing score .*1\.00 .*able .*0\.12 .*guess", score)
    assert re.match(r"Accuracy, .*: 1 of 2\b.*\b0\b.* able, ", short[0])
    assert all(len(sentence.split()) <= MOST_WORDS for sentence in short)
    assert len(short) < MOST_SENTENCES
    items = finding_section(table).items
    assert [item.name for item in items] == ["comparisons"]


def test_only_questions_that_were_answered_both_times_are_compared(results):
    lost = results.texts[(results.texts["rules"] != "few") | (results.texts["pair_id"] < "3")]
    table = comparisons(Results(lost, results.failed)).set_index(["subject", "model"])
    few = table.loc[(SETTINGS[1].subject, "able")]
    assert few["n"].startswith(f"{lost[lost['rules'] == 'few']['pair_id'].nunique()} questions")
    assert table.loc[(SETTINGS[0].subject, "able"), "n"] == "40 questions, 20 rules"


def test_with_few_rules_nothing_is_tested_and_that_is_said():
    rows = [texts("m", rules, [1, 0, 1], rule=range(3)) for rules in ("no", "golden")]
    table = comparisons(results_of(rows))
    assert table["p"].isna().all()
    assert kinds_tested(table) == {}
    assert re.match(r"Named: .*clusters", in_brief(table, "Named"))


@pytest.mark.slow
def test_a_golden_rule_has_one_name_in_both_versions_and_under_every_seed():
    assert dependence_factor("rulebench") == "rule"
    versions = load_prompts("rulebench-versions", limit=40)
    names = [
        {prompt.pair_id: prompt.factors["rule"] for prompt in prompts}
        for prompts in (versions, load_prompts("rulebench", limit=40))
    ]
    shared = names[0].keys() & names[1].keys()
    assert shared and all(names[0][one] == names[1][one] for one in shared)
    assert all(names[0][prompt.pair_id] == prompt.factors["rule"] for prompt in versions)
    string_game = [
        {
            prompt.factors["rule"]: prompt.text[slice(*prompt.segments["golden"])]
            for prompt in load_prompts("rulebench-string-game", limit=80, seed=seed)
            if "golden" in prompt.segments
        }
        for seed in (0, 1)
    ]
    assert len(string_game[0]) == len(set(string_game[0].values()))
    same = string_game[0].keys() & string_game[1].keys()
    assert same and all(string_game[0][rule] == string_game[1][rule] for rule in same)


def test_another_case_of_the_counterfactual_version_has_the_name_of_its_own_rule():
    """The charges of CAIL2018: its versions ask about other cases at the same positions."""

    def version(question, words):
        return Version((Item("0001", question, "uncle", "1"),), {"1": Rule("1", words)})

    def name(factual, counterfactual):
        rule_set = RuleSet(CLUTRR, factual, counterfactual)
        own = counterfactual or factual
        setting = COUNTERFACTUAL[-1] if counterfactual else FEW[0]
        return to_prompt(rule_set, own, own.items[0], setting, "g", seed=0).factors["rule"]

    factual = version("Who?", "if A, then uncle.")
    assert name(factual, version("Who?", "if A, then son.")) == name(factual, None)
    assert name(factual, version("What?", "if B, then son.")) != name(factual, None)

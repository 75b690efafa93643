"""Which rule an answer follows, where rules say what they answer; and what cannot be read."""

from pathlib import Path
from unittest.mock import create_autospec

import pandas as pd
import pytest

from interp.errors import UserError
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder
from interp_experiments.rulebench.prompts import Setting
from interp_experiments.rulebench.results import followed, read_results
from interp_experiments.rulebench.string_game import string_rules
from interp_experiments.rulebench.system import RuleBench, short_kinship_set, string_game_set

FEW = (Setting(quantity="few"),)


def row(made, number):
    """A row of the prompts table, as a report reads it, and the texts of its noise rules."""
    prompts = RuleBench("test", FEW, made).prompts(seed=0, data=None)[number : number + 2]
    prompt = next(iter(prompts))
    rules = [prompt.segment_text(name) for name in ("noise1", "noise2")]
    return prompts.to_frame().iloc[0], rules


def test_an_answer_that_a_noise_rule_concludes_is_a_triggering_error():
    prompt, (rule, _) = row(short_kinship_set, 5)
    conclusion = rule.rstrip(".").split(" is the ")[-1].split(" of ")[0]
    assert conclusion != prompt["gold"]
    assert followed(prompt, prompt["gold"], correct=True) == "right"
    assert followed(prompt, conclusion, correct=False) == "triggering error"
    assert followed(prompt, "husband", correct=False) == "execution error"
    assert followed(prompt, "", correct=False) == "no answer"


def test_a_number_that_the_action_of_a_noise_rule_gives_is_a_triggering_error():
    by_text = {rule.rule.natural: rule for rule in string_rules().values()}
    for number in range(20):
        prompt, texts = row(string_game_set, number)
        results = [by_text[text].action.result(prompt["string"]) for text in texts]
        for result in results:
            if result is not None and str(result) != prompt["gold"]:
                assert followed(prompt, str(result), correct=False) == "triggering error"
        assert followed(prompt, "1000", correct=False) == "execution error"


@pytest.mark.parametrize("name", ["ulogic", "deer"])
def test_where_rules_do_not_say_their_answer_it_is_only_wrong(name):
    prompt, _ = row(short_kinship_set, 5)
    assert followed(prompt.replace("kinship", name), "true", correct=False) == "wrong"


def test_a_folder_of_an_earlier_version_is_refused_in_words():
    run = create_autospec(RunFolder, instance=True, folder=Path("old/direct"))
    run.tables.return_value = ["completions"]
    run.table.return_value = pd.DataFrame(columns=["prompt_id", "pair_id", "gold", "golden_place"])
    study = create_autospec(StudyFolder, instance=True, runs={"direct": run})
    with pytest.raises(UserError, match=r"the prompts in old/direct lack rule, set, .* again"):
        read_results(study)

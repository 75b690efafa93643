"""IRFT: what is learned of which rules, and that a small model learns it."""

import json
from collections import Counter

import pandas as pd
import pytest

from interp.cli import main
from interp.errors import UserError
from interp.models.loading import Loading
from interp.training.lessons import IGNORED, Steps
from interp.training.run import Training
from interp_experiments.rulebench.kinship import KinshipQuestions, split_of
from interp_experiments.rulebench.learning import RuleFollowing
from interp_experiments.rulebench.string_game import rules_of, string_rules
from tests.experiments.rulebench.test_layout import item, rules, write
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

SMALL = {"questions": 60, "held_out": 10}
SPLITS = ("train", "dev", "test")


def rule_texts(prompt):
    shown = [name for name in prompt.segments if name == "golden" or name.startswith("noise")]
    return [prompt.segment_text(name) for name in shown]


def test_no_rule_of_the_string_game_is_both_learned_and_measured_on():
    held_out = {rule.rule.natural for rule in rules_of("held-out").values()}
    spec = RuleFollowing(**SMALL)
    for split in SPLITS:
        texts = {text for prompt in spec.prompts(split) for text in rule_texts(prompt)}
        assert texts <= held_out if split != "train" else not texts & held_out
    dev, test = ({prompt.text for prompt in spec.prompts(split)} for split in ("dev", "test"))
    assert len(dev) == len(test) == 10 and not dev & test


def test_no_rule_of_kinship_is_both_learned_and_measured_on():
    spec = RuleFollowing(data="kinship", **SMALL)
    golden = {
        split: {prompt.segment_text("golden") for prompt in spec.prompts(split)} for split in SPLITS
    }
    assert not golden["train"] & (golden["dev"] | golden["test"])
    hops = [prompt.factors["hops"] for prompt in spec.prompts("test")]
    assert set(hops) == {"2", "3", "4"}


def test_about_a_fifth_of_the_kinship_rules_is_held_out():
    bodies = KinshipQuestions(3, per_hop=150, hops=(2, 3)).bodies.values()
    share = sum(split_of(body) == "held-out" for body in bodies) / len(bodies)
    assert 0.12 < share < 0.28


def test_the_golden_rule_is_shown_among_a_drawn_number_of_noise_rules():
    found = Counter()
    for prompt in RuleFollowing(questions=400, held_out=1).prompts("train"):
        shown, place = rule_texts(prompt), int(prompt.factors["golden_place"])
        assert shown[place - 1] == prompt.segment_text("golden")
        found[len(shown) - 1, place] += 1
    numbers = [sum(found[number, place] for place in range(1, 5)) for number in range(4)]
    assert sum(numbers) == 400 and min(numbers) > 70
    assert min(found[3, place] for place in range(1, 5)) > 10


def test_noise_rules_do_not_apply_and_the_golden_one_gives_the_answer():
    by_text = {rule.rule.natural: rule for rule in string_rules().values()}
    for prompt in RuleFollowing(questions=30, held_out=1, noise=(3,)).prompts("train"):
        results = [by_text[text].run(prompt.factors["string"]) for text in rule_texts(prompt)]
        fitting = [result for result in results if result is not None]
        assert fitting == [int(prompt.answer.gold)]


@pytest.mark.parametrize("thought", [False, True])
def test_the_loss_is_that_of_the_answer_alone(tmp_path, thought):
    model = make_tiny("llama", byte_level())
    model.hf.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    spec = RuleFollowing(questions=4, held_out=1, batch=1, epochs=1, thought=thought)
    training = Training(spec, str(tmp_path), Loading(device="cpu"))
    prompts = {prompt.answer.gold: prompt for prompt in spec.prompts("train")}
    for batch in Steps(training.start.outline(), spec, training.lessons.lessons):
        learned = batch["labels"][batch["labels"] != IGNORED].tolist()
        *answer, end = learned
        text = model.tokenizer.decode(answer).strip()
        assert end == model.tokenizer.eos_token_id
        prompt = prompts[text.rstrip(".").rpartition(" ")[2]]
        assert text == spec.target(prompt)
        if thought:
            assert text.startswith(f"Rule {prompt.factors['golden_place']} fits. Answer: ")


def test_a_folder_is_learned_from_its_own_part_and_measured_on_its_test(tmp_path):
    folder = write(tmp_path / "ulogic", [item(True, rule=0), item(False, rule=1)])
    with pytest.raises(UserError, match=r"\btrain_data.*\bvalidation_data"):
        RuleFollowing(data=str(folder)).prompts("train")
    learned = [item(False, rule=2, question="Is Bo kind?") for _ in range(3)]
    (folder / "train_data.json").write_text(json.dumps(learned))
    spec = RuleFollowing(data=str(folder), noise=(1,), questions=2)
    (first, _) = spec.prompts("train")
    assert "Is Bo kind?" in first.text and spec.target(first) == "False"
    assert [prompt.answer.gold for prompt in spec.prompts("dev")] == ["true"]
    assert [prompt.answer.gold for prompt in spec.prompts("test")] == ["false"]
    (folder / "train_rule.json").write_text(json.dumps(rules(1)))
    with pytest.raises(UserError, match=r"ulogic/train_data\.json, item 1.*'2'"):
        spec.prompts("train")


def test_scores_are_by_the_number_of_noise_rules():
    spec = RuleFollowing(questions=1, held_out=40, noise=(0, 1))
    prompts = list(spec.prompts("test"))
    many = [prompt for prompt in prompts if len(rule_texts(prompt)) == 2][:3]
    asked = [*many, next(prompt for prompt in prompts if len(rule_texts(prompt)) == 1)]
    right = pd.DataFrame({"prompt_id": [prompt.id for prompt in asked]})
    right["correct"] = [True, False, False, True]
    assert spec.metrics(asked, {"completions": right}) == {
        "prompts": 4.0,
        "accuracy": 0.5,
        "accuracy with 0 noise": 1.0,
        "accuracy with 1 noise": pytest.approx(1 / 3),
    }


@pytest.mark.slow
def test_the_command_estimates_and_trains(tmp_path, capsys):
    model = make_tiny("llama", byte_level())
    model.hf.config.max_position_embeddings = 1024
    model.hf.save_pretrained(tmp_path / "base")
    model.tokenizer.save_pretrained(tmp_path / "base")
    command = ["train", "irft", "--model", str(tmp_path / "base"), "--data", "kinship"]
    command += ["--questions", "4", "--held-out", "2", "--noise", "0-1", "--epochs", "1"]
    command += ["--batch", "2", "--out", str(tmp_path / "out"), "--device", "cpu"]
    assert main([*command, "--dry-run"]) == 0
    assert "trained parameters" in capsys.readouterr().out
    assert main(command) == 0
    record = json.loads((tmp_path / "out" / "train.json").read_text())
    assert record["training"]["options"]["noise"] == [0, 1]
    assert "accuracy" in record["metrics"]["test"]

import re
import subprocess
import sys

import pytest

from interp.cli import main
from tests.cli.test_bad_input import refused


def printed(capsys):
    """Tables, and what is said of them, without line breaks."""
    told = capsys.readouterr()
    return told.out + " ".join(told.err.split())


@pytest.fixture(scope="module")
def pilot(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pilot")
    models = ["organism/llama-shallow", "organism/mistral"]
    asked = ["--limit", "60", "--device", "cpu", "--out", str(folder)]
    assert main(["evaluate", "--model", *models, *asked]) == 0
    return folder


@pytest.mark.slow
def test_the_plan_of_a_study(capsys):
    assert main(["plan", "--limit", "240"]) == 0
    out = printed(capsys)
    assert "240 pairs, 24 clusters" in out
    assert "geographical - categorical" in out
    assert "best - worst" in out
    assert re.search(r"\b7 tests.*\b2 models", out)
    assert re.search(r"correlation.*\b0\.8 .*entity_b", out)


def test_a_difference_that_cannot_exist_is_none(capsys):
    """Sixty pairs have six of each phrasing: no difference between phrasings can be found."""
    assert main(["plan", "--limit", "60"]) == 0
    out = printed(capsys)
    assert re.search(r"best - worst .* none", out)
    assert re.search(r"difference.*detected", out)
    assert all(float(number) <= 1 for number in re.findall(r"\b\d\.\d{3}\b", out))


@pytest.mark.slow
def test_a_pilot_says_what_its_models_do(pilot, capsys):
    assert main(["plan", "--limit", "240", "--pilot", str(pilot)]) == 0
    out = printed(capsys)
    assert "organism/llama-shallow - organism/mistral" in out
    assert re.search(r"\b7 tests.*\b2 models", out)
    assert re.search(r"accuracies.*correlations", out)
    # Three contrasts of each model, and one between them.
    assert len(re.findall(r"^ organism/\S+ +(?:rule|entity_group|phrasing) ", out, re.M)) >= 6


def test_the_filter_of_known_facts_is_planned_for(capsys):
    assert main(["plan", "--limit", "240", "--known", "0.2"]) == 0
    out = printed(capsys)
    assert re.search(r"\b20% .*facts.*geographical pairs", out)
    assert re.search(r"geographical - categorical .* none", out)


def test_no_model_library_is_loaded():
    code = (
        "import sys; from interp.cli import main; main(['plan', '--limit', '24']); "
        "assert not {'torch', 'transformers'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--system", "nothing"], "unknown system"),
        (["--system", "logical-forms"], "names no contrasts"),
        (["--limit", "0"], "limit"),
        (["--known", "2"], "expected a number from 0 to 1"),
        (["--accuracy", "1.2"], "expected a number from 0 to 1"),
        (["--correlation", "much"], "expected a number from 0 to 1"),
        (["--models", "0"], "expected a whole number from 1"),
        (["--pilot", "nowhere"], "no folder nowhere"),
        (["--pilot", "nowhere", "--accuracy", "0.4"], "expected either the pilot"),
    ],
)
def test_bad_input_is_named(capsys, arguments, message):
    assert message in refused(["plan", *arguments], capsys)


@pytest.mark.slow
def test_a_pilot_of_another_system_is_refused(tmp_path, capsys):
    asked = ["--limit", "4", "--device", "cpu", "--out", str(tmp_path)]
    system = ["--system", "logical-forms", "--model", "organism/llama-logic"]
    assert main(["evaluate", *system, *asked]) == 0
    capsys.readouterr()
    message = refused(["plan", "--pilot", str(tmp_path)], capsys)
    assert re.search(r"logical-forms; .*rulebreakers", message)


def test_a_pilot_without_a_level_is_refused(tmp_path, capsys):
    asked = ["--limit", "1", "--device", "cpu", "--out", str(tmp_path)]
    assert main(["evaluate", "--model", "organism/llama-shallow", *asked]) == 0
    capsys.readouterr()
    assert re.search(r"answer.*rule", refused(["plan", "--pilot", str(tmp_path)], capsys))


def test_a_factor_with_one_level_compares_nothing(capsys):
    assert main(["plan", "--limit", "1"]) == 0
    assert "best - worst" not in capsys.readouterr().out

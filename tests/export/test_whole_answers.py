"""lm-eval's own log-likelihoods of an exported task, against whole answers read by interp."""

import math
import re
from dataclasses import replace

import pytest

import interp
from interp.cli import main
from interp.models.organisms import DEFAULT, organism_folder

PAIRS = """pair,side,gold,options,text
1,york,New York,New York|New Jersey,Buffalo lies in New York. Where is Buffalo? Answer:
1,jersey,New Jersey,New York|New Jersey,Newark lies in New Jersey. Where is Newark? Answer:
2,york,It follows,It follows|It cannot be determined,All birds fly. Tweety is a bird. Tweety flies?
2,jersey,It cannot be determined,It follows|It cannot be determined,Some fly. Tweety is a bird. So?
"""


def test_tasks_that_judge_first_tokens_are_not_written_for_options_that_begin_alike(
    tmp_path, capsys
):
    data = tmp_path / "pairs.csv"
    data.write_text(PAIRS)
    assert main(["export", "lm-eval", "--data", str(data), "--out", str(tmp_path / "tasks")]) == 0
    assert (tmp_path / "tasks" / "interp_pairs_whole.yaml").exists()
    assert not (tmp_path / "tasks" / "interp_pairs.yaml").exists()
    assert main(["export", "inspect", "--data", str(data), "--out", str(tmp_path / "other")]) == 2
    assert re.search(r"begin.*word", capsys.readouterr().err)


@pytest.mark.quick(2)
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize(
    ("name", "template"), [(DEFAULT, False), (DEFAULT, True), ("organism/mistral", True)]
)
@pytest.mark.parametrize("system", [None, "You know the map."])
def test_lm_eval_computes_the_same_log_likelihoods(tmp_path, name, template, system):
    """Where a template ends in white space, lm-eval also counts it, equally for all options.

    lm-eval writes a blank line behind a system prompt, which mistral's template keeps.
    """
    pytest.importorskip("lm_eval")
    from lm_eval import simple_evaluate
    from lm_eval.models.huggingface import HFLM
    from lm_eval.tasks import TaskManager

    data, folder = tmp_path / "pairs.csv", tmp_path / "tasks"
    data.write_text(PAIRS)
    flags = [] if system is None else ["--system-prompt", system]
    assert main(["export", "lm-eval", "--data", str(data), *flags, "--out", str(folder)]) == 0
    found = simple_evaluate(
        HFLM(pretrained=str(organism_folder(name)), device="cpu", dtype="float32"),
        tasks=["interp_pairs_whole"],
        task_manager=TaskManager(include_path=str(folder), include_defaults=False),
        apply_chat_template=template,
    )
    model = interp.load_model(name, device="cpu", chat_template=template)
    prompts = interp.read_pairs(data)
    if system is not None:
        written = system + "\n\n" * template
        prompts = [replace(p, messages=interp.Messages(system=written)) for p in prompts]
    result = interp.evaluate(model, prompts, answers="whole")
    table = result.option_probabilities.set_index(["prompt_id", "option"])["probability"]
    samples = found["samples"]["interp_pairs_whole"]
    for sample in samples:
        doc = sample["doc"]
        own = [math.log(table[doc["prompt_id"], option["name"]]) for option in doc["options"]]
        theirs = [float(value) for ((value, _),) in sample["resps"]]
        if (name, template) == (DEFAULT, True):
            own, theirs = [own[0] - own[1]], [theirs[0] - theirs[1]]
        assert own == pytest.approx(theirs, abs=1e-4)
    assert len(samples) == 4

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from interp.analysis.contrasts import Contrast, contrast_table
from interp.analysis.power import plan_table
from interp.cli import main
from interp.prompts.systems import load_prompts


def test_the_plan_of_a_study(capsys):
    assert main(["plan", "--limit", "240"]) == 0
    out = capsys.readouterr().out
    assert "240 pairs" in out
    assert "geographical - categorical" in out
    assert "best - worst" in out


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
        (["--accuracy", "1.2"], "expected a number from 0 to 1"),
        (["--correlation", "much"], "expected a number from 0 to 1"),
    ],
)
def test_bad_input_is_named(capsys, arguments, message):
    try:
        code = main(["plan", *arguments])
    except SystemExit as stop:
        code = stop.code
    assert code == 2
    assert message in capsys.readouterr().err


def test_independent_answers_need_what_the_textbook_says():
    pairs = pd.DataFrame({"pair_id": range(400), "entity": range(400), "rule": ["a", "b"] * 200})
    (row,) = plan_table(
        pairs, [Contrast("rule", ("a", "b"))], cluster="entity", accuracy=0.5, correlation=0.2
    ).itertuples()
    # (1.960 + 0.842) * sqrt(0.25 / 200 + 0.25 / 200)
    assert row.detectable == pytest.approx(2.8016 * 0.05, rel=1e-3)
    assert (row.pairs_a, row.pairs_b, row.clusters) == (200, 200, 400)


def test_a_study_of_such_answers_finds_no_smaller_differences():
    """Answers simulated with the correlation that is planned for, on the prompts of a study."""
    pairs = load_prompts(limit=480).to_frame().drop_duplicates("pair_id").assign(model="m")
    contrasts = [
        Contrast("rule", ("mt", "ds")),
        Contrast("entity_group", ("geographical", "categorical")),
    ]
    planned = plan_table(pairs, contrasts, cluster="entity_b", accuracy=0.5, correlation=0.2)
    rng = np.random.default_rng(0)
    entity = pd.factorize(pairs["entity_b"])[0]
    found = []
    for _ in range(20):
        chance = rng.beta(2, 2, size=entity.max() + 1)  # correlation 1 / (2 + 2 + 1)
        answered = pairs.assign(paired=rng.random(len(pairs)) < chance[entity])
        table = contrast_table(answered, named=contrasts, cluster="entity_b")
        found.append(table["detectable"])
    rule, group = np.mean(found, axis=0) / planned["detectable"].to_numpy()
    # Rules are compared within entities, which a plan does not count on.
    assert 0.7 < rule < 1.05
    assert 0.9 < group < 1.15


def test_a_factor_with_one_level_compares_nothing(capsys):
    assert main(["plan", "--limit", "1"]) == 0
    assert "best - worst" not in capsys.readouterr().out

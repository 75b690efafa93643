"""A study of another distribution, installed beside interp: tests/fixtures/content_effects."""

import json
import re
import shutil
import subprocess
import sys
import venv
from pathlib import Path
from statistics import fmean
from sysconfig import get_path

import pandas as pd
import pytest

from tests.support.pages import browsed
from tests.test_import_directions import inner

PACKAGE = Path(__file__).parent / "fixtures" / "content_effects"
MODELS = ("organism/llama-shallow", "organism/gemma2")
CHAINS = 12


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """The interpreter of a fresh environment with the study, above the packages of this one."""
    pytest.importorskip("pip")
    place = tmp_path_factory.mktemp("environment")
    venv.create(place, with_pip=False)
    (own,) = place.glob("lib/python*/site-packages")
    (own / "below.pth").write_text(f"import site; site.addsitedir({get_path('purelib')!r})\n")
    source = tmp_path_factory.mktemp("source") / "content_effects"
    shutil.copytree(PACKAGE, source)  # building writes into it
    pip = [sys.executable, "-m", "pip", "--python", place / "bin" / "python", "install"]
    done = subprocess.run(
        [*pip, "--no-deps", "--no-index", "--no-build-isolation", source],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (own / "content_effects" / "chains.csv").exists()
    return place / "bin" / "python"


def interp_of(python, *words):
    """What a command prints there, and says beside it."""
    command = [python, "-m", "interp", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=python.parent)
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def study(python, tmp_path_factory):
    """A folder in which the study has measured two organisms."""
    folder = tmp_path_factory.mktemp("study") / "out"
    interp_of(
        *(python, "run", "content-effects", "--model", *MODELS),
        *("--device", "cpu", "--out", folder),
    )
    return folder


@pytest.fixture(scope="module")
def said_yes(study):
    """Whether the answer is Yes, by model, chain, content and side."""
    answers = pd.read_parquet(study / "answers" / "answers.parquet")
    ids = answers["prompt_id"].str.split("/", expand=True)
    keys = zip(answers["model"], *(ids[place] for place in range(3)), strict=True)
    return dict(zip(keys, answers["answer"] == "Yes", strict=True))


def test_the_package_is_small_and_imports_public_names_only():
    files = [file for file in PACKAGE.rglob("*") if file.suffix in (".py", ".csv", ".toml")]
    assert sum(len(file.read_text().splitlines()) for file in files) <= 400
    for file in PACKAGE.rglob("*.py"):
        assert inner(file.read_text(), "content_effects") == set(), file


def test_its_prompts_are_minimal_pairs(python, tmp_path):
    file = tmp_path / "syllogisms.csv"
    interp_of(python, "dataset", "content-effects", "--out", file)
    rows = pd.read_csv(file)
    assert len(rows) == CHAINS * 6 and rows["gold"].value_counts().to_dict() == {
        "Yes": 36,
        "No": 36,
    }
    for pair, both in rows.groupby("pair_id"):
        assert both["premise2"].nunique() == 2, pair
        assert both[["premise1", "conclusion", "question"]].drop_duplicates().shape[0] == 1
    said = rows[rows["chain"] == "roses"].set_index("content")["conclusion"].to_dict()
    assert [said[name].removeprefix("Conclusion: ") for name in said] == [
        "All roses are plants.",
        "All plants are roses.",
        "All blickets are wugs.",
    ]


@pytest.mark.slow
def test_its_page_has_the_tables_the_figure_the_findings_and_the_pairs(study):
    page = (study / "report.html").read_text()
    for name in ("called_valid", "content_effects", "at_a_glance"):
        assert (study / "tables" / f"{name}.csv").exists()
        assert f'id="{name}"' in page or f"{name}.csv" in page
    assert (study / "figures" / "called_valid.svg").exists()
    assert "Dasgupta" in page
    assert "blickets" in json.dumps(browsed(study))
    record = json.loads((study / "study.json").read_text())
    assert record["finished"] and "tables/called_valid.csv" in record["report"]


@pytest.mark.slow
def test_its_tables_hold_what_was_answered(study, said_yes):
    shares = pd.read_csv(study / "tables" / "called_valid.csv")
    assert len(said_yes) == len(MODELS) * CHAINS * 6 and len(shares) == len(MODELS) * 6
    for row in shares.itertuples():
        of = [row.model, row.content, row.side]
        cell = [yes for (model, _, *rest), yes in said_yes.items() if [model, *rest] == of]
        assert row.said_yes == pytest.approx(fmean(cell)) and row.prompts == CHAINS
        assert row.low <= row.said_yes <= row.high and row.clusters == CHAINS


@pytest.mark.slow
def test_its_effects_are_means_of_differences(study, said_yes):
    found = pd.read_csv(study / "tables" / "content_effects.csv").set_index(["model", "effect"])

    def mean(model, **wanted):
        rows = [
            yes
            for (name, _, content, side), yes in said_yes.items()
            if name == model
            and content in wanted.get("content", content)
            and side == wanted.get("side", side)
        ]
        return fmean(rows)

    for model in MODELS:
        of = found.loc[model]["difference"]
        logic = mean(model, side="valid") - mean(model, side="invalid")
        belief = {
            side: mean(model, content=["believable"], side=side)
            - mean(model, content=["unbelievable"], side=side)
            for side in ("valid", "invalid")
        }
        assert of["logic"] == pytest.approx(logic)
        assert of["belief"] == pytest.approx(fmean(belief.values()))
        assert of["belief if invalid"] == pytest.approx(belief["invalid"] - belief["valid"])
    assert (found["chains"] == CHAINS).all() and found["p_holm"].between(0, 1).all()


@pytest.mark.slow
def test_the_commands_know_its_tables_and_compare_its_models(python, study):
    told = interp_of(python, "tables", "called_valid", "content_effects")
    assert re.findall("(?m)^## (.+)", told) == ["called_valid", "content_effects"]
    assert "`said_yes`" in told and "derived from `answers`" in told
    compared = interp_of(python, "compare", study)
    assert all(model in compared for model in MODELS)
    assert "the unit of intervals and p is chain" in compared

"""Studies: stages in one folder, resumed, told to be unfinished, refused where data differ."""

import inspect
import re
import shutil
from typing import ClassVar

import matplotlib.pyplot as plt
import pytest

from interp import jobs
from interp.cli import parse
from interp.errors import UserError
from interp.estimates.declared import Table
from interp.jobs import Job
from interp.measurements.specs import Attribute, Evaluate
from interp.measuring.spec import Spec, Stage
from interp.plugins import STUDIES, named, plugins
from interp.prompts.prompt_set import PromptSet
from interp.prompts.source import PromptSource
from interp.prompts.systems import dependence_factor, load_prompts
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.report.write import files_of, write_report
from interp.runs import run as run_module
from interp.runs.execute import execute
from interp.runs.folder import slug
from interp.runs.options import ExecutionOptions
from interp.runs.plan import RunPlan
from interp.runs.run import in_use
from interp.studies.folder import StudyFolder
from interp.studies.plan import StudyPlan
from interp.studies.study import Study, find_study
from tests.support.prompts import some_prompts
from tests.support.records import edited
from tests.support.tiny import tiny_model

MODELS = ("tiny llama", "tiny gpt2")


class TwoStages(Study):
    name: ClassVar[str] = "two-stages"
    default_limit: ClassVar[int] = 4

    def stages(self, source):
        prompts = some_prompts(source.pairs(self.default_limit))
        return (
            Stage("answers", prompts, Evaluate()),
            Stage("tokens", prompts[:4], Attribute(keep_tokens=True)),
        )

    def report(self, folder):
        answers = folder.runs["answers"].table("answers")
        counts = answers.groupby("model").size().rename("prompts").reset_index()
        bars = FigureItem("bars", "Bars", lambda: plt.figure().add_subplot())
        section = Section("Answers", items=(TableItem("counts", "Counts", counts), bars))
        return Report("two stages", "", (section,), problems=tuple(folder.problems()))


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", 4)


def report(folder):
    study = StudyFolder.read(folder)
    page = TwoStages().report(study)
    write_report(page, folder)
    study.note_report(files_of(page, folder))


def measure(folder, **chosen):
    plan = plan_of(folder, **chosen)
    plan.finish(execute(plan))
    return StudyFolder.read(folder)


def plan_of(folder, *, models=MODELS, limit=4):
    return StudyPlan.of(
        TwoStages(),
        PromptSource(limit=limit),
        folder=folder,
        models={name: tiny_model(name.removeprefix("tiny ")) for name in models},
    )


@pytest.mark.parametrize("name", plugins(STUDIES))
def test_every_study_names_what_makes_its_page_and_its_tables(name):
    study = find_study(name)
    assert inspect.signature(named(study.page)).return_annotation is Report
    assert all(isinstance(named(place), Table) for place in study.derives)


def test_every_model_is_measured_in_every_stage(tmp_path):
    folder = measure(tmp_path / "study")
    assert folder.problems() == []
    assert set(folder.runs) == {"answers", "tokens"}
    for run, tables in ((folder.runs["answers"], 8), (folder.runs["tokens"], 4)):
        answers = run.table("answers")
        assert answers["model"].value_counts().to_dict() == dict.fromkeys(MODELS, tables)
    assert folder.record.models == list(MODELS)
    assert folder.record.finished


def test_a_share_without_an_answer_is_said_once_for_all_stages(tmp_path, capsys):
    plan = plan_of(tmp_path / "study")
    jobs.finish_study(plan, execute(plan))
    said = capsys.readouterr().err.splitlines()
    # Untrained models answer none of the 8 + 4 prompts.
    assert [line.split(":")[0] for line in said if "100.0%" in line] == list(MODELS)


def test_a_stopped_study_goes_on_and_ends_the_same(tmp_path, monkeypatch):
    whole = measure(tmp_path / "whole")
    written = []
    original = run_module.write

    def interrupted(shard, *rest, **options):
        if len(written) == 3:
            raise KeyboardInterrupt
        written.append(shard.id)
        original(shard, *rest, **options)

    monkeypatch.setattr(run_module, "write", interrupted)
    with pytest.raises(KeyboardInterrupt):
        measure(tmp_path / "stopped")
    problems = StudyFolder.read(tmp_path / "stopped").problems()
    assert any(re.match(r"answers: tiny gpt2 .*\b2\b.*\b2\b", line) for line in problems)
    assert any(line.startswith("tokens: tiny gpt2 ") for line in problems)
    monkeypatch.setattr(run_module, "write", original)
    resumed = measure(tmp_path / "stopped")
    for stage in whole.runs:
        for table in whole.runs[stage].tables():
            file = f"{stage}/{table}.parquet"
            assert (tmp_path / "whole" / file).read_bytes() == (
                tmp_path / "stopped" / file
            ).read_bytes()
    assert resumed.problems() == []


def test_further_models_join_and_other_options_are_refused(tmp_path):
    measure(tmp_path, models=MODELS[:1])
    assert measure(tmp_path, models=MODELS[1:]).record.models == list(MODELS)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")}
    with pytest.raises(UserError, match=r"'limit': 4\b.*'limit': 3\b.*--limit.*--out\b"):
        measure(tmp_path, limit=3)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.parquet")} == before


def test_an_unfinished_study_says_what_is_missing_and_still_renders(tmp_path):
    folder = measure(tmp_path)
    lost = folder.runs["answers"].shards("tiny llama")[1]
    shutil.rmtree(lost)
    folder = StudyFolder.read(tmp_path)
    (problem,) = folder.problems()
    assert re.fullmatch(rf"answers: tiny llama .*\b1\b.*\b2 shards: {lost.name}", problem)
    page = write_report(TwoStages().report(folder), tmp_path).read_text()
    assert lost.name in page
    assert "tiny gpt2" in page


def test_tables_of_a_report_are_read_by_name(tmp_path):
    folder = measure(tmp_path)
    with pytest.raises(UserError, match="table 'counts'"):
        folder.table("counts")
    write_report(TwoStages().report(folder), tmp_path)
    assert folder.table("counts").to_dict("list") == {"model": sorted(MODELS), "prompts": [8, 8]}
    for name in ("count", "../study", ""):
        with pytest.raises(UserError, match=r"table '.*'.*counts"):
            folder.table(name)


def test_a_model_that_was_measured_on_other_prompts_counts_as_not_begun(tmp_path):
    measure(tmp_path)
    file = tmp_path / "answers" / "models" / f"{slug('tiny gpt2')}.json"
    edited(file, lambda record: record.update(data_hash="0" * 64))
    folder = StudyFolder.read(tmp_path)
    (problem,) = folder.problems()
    assert re.fullmatch("answers: tiny gpt2 .*different prompts", problem)
    assert folder.runs["answers"].table("answers")["model"].unique().tolist() == ["tiny llama"]


def test_a_larger_limit_keeps_what_was_measured(tmp_path, monkeypatch):
    measure(tmp_path / "study")
    measured = []
    original = run_module.write
    monkeypatch.setattr(
        run_module,
        "write",
        lambda shard, *a, **o: (measured.append(shard), original(shard, *a, **o)),
    )
    grown = measure(tmp_path / "study", limit=6)
    # Six pairs in shards of four prompts: the first two are there, for each of two models.
    assert len(measured) == 2
    assert grown.problems() == []
    fresh = measure(tmp_path / "fresh", limit=6)
    for stage in fresh.runs:
        file = f"{stage}/answers.parquet"
        assert (tmp_path / "study" / file).read_bytes() == (tmp_path / "fresh" / file).read_bytes()


def test_a_study_that_is_finished_already_stays_as_it_is(tmp_path):
    measure(tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.json")}
    measure(tmp_path, models=MODELS[1:])
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.json")} == before


def test_a_folder_without_a_study_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"study\.json"):
        StudyFolder.read(tmp_path)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", ["report.html", "tables/counts.csv", "figures/bars.png"])
@pytest.mark.parametrize("harm", ["has changed since it was written", "is missing"])
def test_validate_notices_what_happened_to_a_report(tmp_path, name, harm):
    measure(tmp_path)
    report(tmp_path)
    assert StudyFolder.read(tmp_path).faults() == []
    file = tmp_path / name
    if harm == "is missing":
        file.unlink()
    else:
        file.write_bytes(file.read_bytes() + b"9")
    assert StudyFolder.read(tmp_path).faults() == [f"{name} {harm}"]
    with pytest.raises(UserError, match=re.escape(name)):
        parse(["validate", str(tmp_path)])[0].run(parse(["validate", str(tmp_path)])[1])
    report(tmp_path)
    assert StudyFolder.read(tmp_path).faults() == []


def test_a_study_without_its_report_is_not_whole(tmp_path):
    measure(tmp_path)
    (fault,) = StudyFolder.read(tmp_path).faults()
    assert fault.endswith(f"interp report {tmp_path}")


def test_a_study_in_use_is_not_taken_by_one_with_another_limit(tmp_path):
    plan = plan_of(tmp_path)
    runs = plan.open()
    before = (tmp_path / "study.json").read_bytes()
    with (
        in_use(runs[0]),
        pytest.raises(UserError, match=r"answers: evaluate on 8 prompts.*--out\b"),
    ):
        measure(tmp_path, limit=8)
    assert (tmp_path / "study.json").read_bytes() == before


def test_a_mistake_leaves_no_folder_of_a_new_study_behind(tmp_path, monkeypatch):
    folder = tmp_path / "new" / "study"

    def load(plan, name):
        assert (folder / "study.json").exists() and (folder / "answers" / "run.json").exists()
        raise UserError("no such model")

    monkeypatch.setattr(RunPlan, "model", load)
    with pytest.raises(UserError, match="no such model"):
        execute(plan_of(folder))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("limit", "small"), [(12, False), (4, True)])
def test_only_the_first_stage_decides_whether_a_sample_is_small(
    tmp_path, monkeypatch, capsys, limit, small
):
    """Its tables have the tests; another stage may need only a few prompts, such as examples."""
    plan = plan_of(tmp_path / "study", limit=limit)
    monkeypatch.setattr(Job, "plan", lambda *_, **__: plan)
    monkeypatch.setattr(jobs, "execute", lambda *_, **__: [])
    Job(what=TwoStages()).run(ExecutionOptions(out=tmp_path / "study"))
    assert ("small sample" in capsys.readouterr().err) == small


@pytest.mark.parametrize(
    ("system", "limit", "numbers"),
    [
        ("rulebreakers", 24, None),
        ("rulebreakers", 120, ("22", "22", "24", "274", "481")),
        ("rulebreakers", 500, ("23", "23", "25", "274", "501")),
        ("rulebreakers", 600, None),
        ("logical-forms", 6, ("1", "1", "1", "1,000", "13")),
        ("logical-forms", 60, None),
    ],
)
def test_a_limit_that_adds_no_clusters_is_told(system, limit, numbers):
    """Each number is counted on prompts drawn under that limit."""
    prompts = load_prompts(system, limit=limit)
    found = re.findall(r"[\d,]*\d", jobs._no_more_clusters(prompts).replace(str(limit), ""))
    assert found == list(numbers or ())
    if numbers is None:
        return
    factor = dependence_factor(system)

    def clusters(drawn):
        return len({prompt.factors[factor] for prompt in load_prompts(system, limit=drawn)})

    fewest, few, own, _, more = (int(number.replace(",", "")) for number in numbers)
    assert (clusters(fewest), clusters(limit)) == (few, own)
    assert clusters(more - 1) == own < clusters(more)


def test_own_pairs_without_clusters_are_told_nothing():
    assert not jobs._no_more_clusters(load_prompts("robustlr-not", limit=60))
    assert not jobs._no_more_clusters(PromptSet.of(list(load_prompts("logical-forms", limit=6))))


def test_a_study_without_a_page_is_refused_before_it_is_measured(monkeypatch):
    class Pageless(TwoStages):
        report = Study.report

    with pytest.raises(UserError, match=r"Pageless makes no page.*module:function"):
        Pageless()
    monkeypatch.setattr(Pageless, "page", "somewhere:page", raising=False)
    assert Pageless().page == "somewhere:page"

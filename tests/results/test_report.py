import json
import re
import shutil

import pytest

from interp.cli import main
from interp.measurements.answers.show import Scores
from interp.measurements.attribution.show import Attributions
from interp.measuring.spec import Spec
from interp.models.organisms import DEFAULT
from interp.runs.folder import RunFolder
from tests.support.records import edited


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", 8)
    options = ["--limit", "12", "--keep-tokens", "--device", "cpu", "--out", str(tmp_path / "run")]
    assert main(["attribute", *options]) == 0
    return tmp_path / "run"


@pytest.mark.slow
def test_the_report_command_renders_a_run_beside_it_or_in_one_file(folder, tmp_path, capsys):
    before = sorted(folder.rglob("*"))
    assert main(["report", str(folder), "--embed", "--out", str(tmp_path / "mail.html")]) == 0
    assert sorted(folder.rglob("*")) == before
    page = (tmp_path / "mail.html").read_text()
    assert "data:text/csv;base64," in page and 'href="tables/' not in page
    header = re.sub("<[^>]+>", "", page.partition("</header>")[0])
    assert "interp attribute --limit 12" in header
    hostile = "<script>alert(1)</script>"
    edited(folder / "run.json", lambda record: record["run"].update(system=hostile))
    assert main(["report", str(folder)]) == 0
    assert "report written to" in capsys.readouterr().err
    page = (folder / "report.html").read_text()
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    assert DEFAULT in page
    assert (folder / "tables" / "attribution_table.csv").exists()
    assert page.count('class="heat-map"') == 1  # a typical pair


@pytest.mark.slow
def test_an_unfinished_run_counts_whole_pairs_only(folder):
    run = RunFolder.read(folder)
    lost = run.shards(DEFAULT)[0]
    shutil.rmtree(lost)
    report = Attributions.of(RunFolder.read(folder)).report()
    assert len(report.problems) == 1
    assert re.fullmatch(rf"{DEFAULT} .*\b1\b.*\b3 shards: {lost.name}", report.problems[0])
    table = report.sections[0].items[0].frame
    prompts = run.table("prompts")
    present = set(run.table("answers")["prompt_id"])
    whole = prompts["prompt_id"].isin(present).groupby(prompts["pair_id"]).all().sum()
    assert 0 < whole < 12
    assert table["prompts"].tolist() == [2 * whole]
    segments = report.sections[0].items[1].frame
    assert segments["prompts"].unique().tolist() == [2 * whole]


@pytest.mark.slow
def test_an_evaluation_shows_its_accuracies(tmp_path):
    folder = tmp_path / "run"
    assert main(["evaluate", "--limit", "4", "--device", "cpu", "--out", str(folder)]) == 0
    report = Scores.of(RunFolder.read(folder)).report()
    (results,) = report.sections
    names = ["accuracy_table", "accuracy_by_reading", "told_apart"]
    assert [item.name for item in results.items] == names
    (accuracy,) = results.items[0].frame["paired_accuracy"]
    assert "8 prompts, 1 model." in report.glance.question
    assert re.search(r"\b4 clusters \(entity_b\).*\b2\.3\b", report.glance.question)
    own = results.items[0].frame.iloc[0]
    free = results.items[1].frame.iloc[0]
    assert free["paired_accuracy"] == pytest.approx(own["paired_accuracy"])
    assert free["rulebreaker_accuracy"] == pytest.approx(own["rulebreaker_accuracy"])
    assert re.match(rf"Paired accuracy .*\b{accuracy:.2f} \[", report.glance.sentences[0])


def test_console_record_and_page_say_how_often_nothing_is_answered(tmp_path, capsys):
    # Asked plainly, a model that knows conversations only says something else.
    options = ["--limit", "4", "--device", "cpu", "--no-chat-template", "--out", str(tmp_path)]
    assert main(["evaluate", *options]) == 0
    share = json.loads((tmp_path / "run.json").read_text())["summary"][DEFAULT]["no_answer_share"]
    assert share > 0
    note = f"{share:.0%} of its replies ({share * 8:.0f} of 8)"
    said = capsys.readouterr()
    assert said.out.count(note) == 1
    assert "most probable token" not in said.err
    assert main(["report", str(tmp_path)]) == 0
    assert note in (tmp_path / "report.html").read_text()
    (record,) = RunFolder.read(tmp_path).models().values()
    assert (record.chat["template"], record.chat["templated"]) == (False, False)
    data = tmp_path / "pairs.csv"
    data.write_text("pair,side\n")
    assert main(["report", str(tmp_path), "--out", str(data)]) == 2
    assert re.search("page; ", capsys.readouterr().err)
    assert data.read_text() == "pair,side\n"
    assert main(["evaluate", *options[:4], "--out", str(tmp_path)]) == 2

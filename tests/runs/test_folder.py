import os
import shutil
import subprocess
import sys

import pyarrow.parquet as pq
import pytest

from interp.errors import UserError
from interp.measurements.specs import Evaluate
from interp.measuring.core import bind
from interp.measuring.spec import Spec
from interp.runs import shards as shards_module
from interp.runs.folder import RunFolder, progress
from interp.runs.merge import merging
from interp.runs.run import Run
from interp.tables import SCHEMAS, note
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model


@pytest.fixture
def run(tmp_path, monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", 8)
    run = Run.open(tmp_path, some_prompts(12), Evaluate())
    for kind in ("llama", "gpt2"):
        run.measure(bind(Evaluate(), tiny_model(kind)))
    return RunFolder.read(tmp_path)


def test_a_table_is_read_from_every_shard_that_is_done(run):
    assert run.missing() == {}
    assert run.tables() == ["answers", "option_probabilities"]
    assert len(run.table("answers")) == 2 * 24
    assert run.table("prompts", ["prompt_id"])["prompt_id"].tolist() == [
        prompt.id for prompt in some_prompts(12)
    ]
    lost = run.shards("tiny llama")[2]
    shutil.rmtree(lost)
    assert run.missing() == {"tiny llama": [lost.name]}
    assert run.table("answers")["model"].value_counts().to_dict() == {
        "tiny llama": 16,
        "tiny gpt2": 24,
    }


def test_a_folder_is_looked_at_without_torch():
    code = (
        "import sys, interp.studies.folder, interp.runs.workers; "
        "sys.exit(bool({'torch', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_a_table_that_is_not_there_is_refused(run):
    with pytest.raises(UserError, match=r"\brun.*'segment_scores'"):
        run.table("segment_scores")


def test_only_models_without_missing_shards_are_merged(run, tmp_path):
    shutil.rmtree(run.shards("tiny llama")[0])
    opened = Run.open(tmp_path, some_prompts(12), Evaluate())
    with merging(opened.folder):
        pass
    merged = shards_module.pq.read_table(tmp_path / "answers.parquet").to_pandas()
    assert merged["model"].unique().tolist() == ["tiny gpt2"]


def test_a_folder_without_a_run_is_refused(tmp_path):
    with pytest.raises(UserError, match=r"\brun\.json.*interp attribute"):
        RunFolder.read(tmp_path)


def test_a_table_that_has_changed_or_became_a_pipe_is_not_handed_on(tmp_path):
    run = Run.open(tmp_path, some_prompts(2), Evaluate())
    run.measure(bind(Evaluate(), tiny_model("llama")))
    (file,) = run.files("answers", run.models())
    file.write_bytes(file.read_bytes()[:-1])
    with pytest.raises(UserError, match=rf"\b{file.name} .*shard"):
        run.files("answers", run.models())
    file.unlink()
    with pytest.raises(UserError, match=r"answers\.parquet.*shard"):
        run.files("answers", run.models())
    os.mkfifo(file)
    with pytest.raises(UserError, match="file; "):
        run.files("answers", run.models())


def test_the_progress_of_a_run_without_models_is_empty(run):
    change = {"models": []}
    run.change(lambda record: change)
    assert list(progress(RunFolder.read(run.folder))) == []


def test_every_file_of_a_run_says_what_its_columns_hold(run, tmp_path):
    with merging(run.folder):
        pass
    shard = run.shards("tiny gpt2")[0]
    for table in run.tables():
        for file in (shard / f"{table}.parquet", tmp_path / f"{table}.parquet"):
            kept = pq.read_schema(file)
            assert note(kept, "description") == note(SCHEMAS[table], "description")
            for field in SCHEMAS[table]:
                for key in ("description", "unit", "sign"):
                    assert note(kept.field(field.name), key) == note(field, key)
    prompts = pq.read_schema(tmp_path / "prompts.parquet")
    assert note(prompts, "description").startswith("One row per prompt.")
    assert note(prompts.field("weight"), "unit") == "prompts"
    assert note(prompts.field("verb"), "description").startswith("level of a factor")
    assert note(prompts.field("premise1_end"), "unit") == "characters, from 0"


def test_progress_reads_the_record_of_each_model_once(run, monkeypatch):
    """It used to read the records of all models for each model."""
    names = [f"m{number}" for number in range(20)]
    read = []
    record = run.record.model_copy(update={"models": names})
    many = RunFolder(run.folder, record)
    monkeypatch.setattr(RunFolder, "model_record", lambda self, model: read.append(model))
    assert len(list(progress(many))) == 20
    assert list(many.missing()) == names
    assert sorted(read) == sorted(2 * names)

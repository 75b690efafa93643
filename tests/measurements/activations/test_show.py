"""What a run of activations leaves: read by safetensors and pyarrow alone."""

import dataclasses
import re
import shutil

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file

import interp
from interp.errors import UserError
from interp.measurements.activations import show as activations
from interp.measurements.activations.show import ActivationVectors, fill_tensors
from interp.measurements.specs import Activations
from interp.measuring.core import bind, collect
from interp.results.files import finish
from interp.results.measured import InMemory
from interp.runs.folder import RunFolder, problems
from interp.runs.run import Run
from interp.tables import note
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

SPEC = Activations(sites=("resid_post", "k"), roles=("premise2", "last"), tokens="all")


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(Activations, "shard_prompts", 8)


def run_in(folder, *kinds, prompts=None, spec=SPEC):
    run = Run.open(folder, some_prompts(12) if prompts is None else prompts, spec)
    for kind in kinds:
        run.measure(bind(spec, tiny_model(kind)))
    return finish(folder, type(spec))


def contents(folder):
    files = (*folder.glob("*.safetensors"), *folder.glob("*.parquet"), *folder.glob("*.csv"))
    return {path.name: path.read_bytes() for path in files}


def by_index(folder):
    """The index and, in its order, the vectors that it names."""
    index = pq.read_table(folder / "activations.parquet").to_pandas()
    held = {name: load_file(folder / name) for name in index["file"].unique()}
    return index, [held[row.file][row.tensor][row.row] for row in index.itertuples()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("run")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Activations, "shard_prompts", 8)
        run_in(folder, "llama", "gpt2")
    return folder


@pytest.mark.slow
def test_every_row_of_the_index_names_its_vector(folder):
    index, vectors = by_index(folder)
    measured = pd.concat(
        collect(bind(SPEC, tiny_model(kind)), some_prompts(12))["activation_vectors"]
        for kind in ("llama", "gpt2")
    )
    places = [column for column in measured if column != "vector"]
    pd.testing.assert_frame_equal(index[places], measured[places].reset_index(drop=True))
    assert len(vectors) == len(measured)
    for ours, theirs in zip(vectors, measured["vector"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-5)  # shards are other batches


def test_every_row_of_every_tensor_is_in_the_index_once(folder):
    index, _ = by_index(folder)
    assert index["file"].nunique() == 2
    for name, rows in index.groupby("file"):
        with safe_open(folder / name, "np") as file:
            assert sorted(file.keys()) == ["k.0", "k.1", "resid_post.0", "resid_post.1"]
            assert file.metadata() == {
                "model": rows["model"].iloc[0],
                "index": "activations.parquet",
            }
            for tensor, own in rows.groupby("tensor"):
                count, width = file.get_slice(tensor).get_shape()
                assert own["row"].tolist() == list(range(count))
                heads = {"k": 2 if "llama" in name else 4, "resid_post": 1}[own["site"].iloc[0]]
                assert width == (8 if tensor.startswith("k") else 32)
                assert own["head"].nunique() == (heads if heads > 1 else 0)


def test_the_index_holds_the_prompts_factors_and_the_models_answers(folder):
    index, _ = by_index(folder)
    prompts = pd.read_parquet(folder / "prompts.parquet").set_index("prompt_id")
    answers = pd.read_parquet(folder / "answers.parquet").set_index(["model", "prompt_id"])
    factors = some_prompts(12)[0].factors
    assert {"rule", "verb"} <= set(factors)
    for name in ("pair_id", "side", "gold", *factors):
        assert index[name].tolist() == prompts.loc[index["prompt_id"], name].tolist()
    own = answers.loc[list(zip(index["model"], index["prompt_id"], strict=True))]
    for name in ("correct", "answer"):
        assert index[name].tolist() == own[name].tolist()
    schema = pq.read_schema(folder / "activations.parquet")
    assert note(schema, "description").startswith("One row per vector")
    assert all(note(field, "description") for field in schema)
    assert schema.field("position").type == schema.field("head").type == pa.int64()
    assert note(schema.field("rule"), "description") == "level of a factor that was varied"


def test_the_folder_is_whole_and_only_a_damaged_tensor_is_written_again(folder, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    assert not list(problems(RunFolder.read(copy)))
    assert not (copy / "activation_vectors.parquet").exists()
    times = {path: path.stat().st_mtime_ns for path in copy.glob("activations*")}
    run_in(copy, "llama", "gpt2")
    assert {path: path.stat().st_mtime_ns for path in times} == times
    (file,) = copy.glob("activations-tiny_gpt2-*.safetensors")
    whole = file.read_bytes()
    file.write_bytes(whole[:-4] + b"oops")
    (problem,) = problems(RunFolder.read(copy))
    assert problem.startswith(f"{file.name} ")
    before = contents(copy)
    run_in(copy, "llama", "gpt2")
    assert contents(copy) == {**before, file.name: whole}
    file.unlink()
    run_in(copy, "llama", "gpt2")
    assert file.read_bytes() == whole


@pytest.mark.slow
def test_stopped_and_grown_it_ends_in_the_same_bytes(folder, tmp_path):
    grown, stopped = tmp_path / "grown", tmp_path / "stopped"
    run_in(grown, "llama", prompts=some_prompts(8))
    small, _ = by_index(grown)
    run_in(grown, "llama", "gpt2")
    assert contents(grown) == contents(folder)
    large, _ = by_index(grown)
    key = ["model", "prompt_id", "group", "position", "site", "layer", "head", "tensor", "row"]
    pd.testing.assert_frame_equal(large[key].head(len(small)), small[key])
    run = Run.open(stopped, some_prompts(12), SPEC, models=("tiny llama", "tiny gpt2"))
    run.measure(bind(SPEC, tiny_model("llama")))
    finish(stopped, Activations)  # the second model is not there yet
    assert len(by_index(stopped)[1]) < len(by_index(folder)[1])
    shutil.rmtree(run.shards("tiny llama")[1])
    run_in(stopped, "llama", "gpt2")
    assert contents(stopped) == contents(folder)


def test_one_shard_at_a_time_is_in_memory(folder, monkeypatch):
    read, alive = activations.read_table, []

    def counted(*arguments, **options):
        table = read(*arguments, **options)
        alive.append(table.num_rows)
        return table

    monkeypatch.setattr(activations, "read_table", counted)
    (name,) = {name for name in contents(folder) if "llama" in name}
    run = RunFolder.read(folder)
    (item,) = (item for item in ActivationVectors.of(run).files if item.name == name)
    item.write(folder / "again")
    assert (folder / "again").read_bytes() == (folder / name).read_bytes()
    (folder / "again").unlink()
    assert len(alive) == 3
    index, _ = by_index(folder)
    assert sum(alive) == (index["model"] == "tiny llama").sum()


def test_a_factor_named_as_a_column_of_the_index_is_left_out(tmp_path):
    prompts = [
        dataclasses.replace(prompt, factors={"layer": "upper", "theme": "rain"})
        for prompt in some_prompts(12)[:4]
    ]
    interp.run(SPEC, models=tiny_model("llama"), prompts=prompts, out=tmp_path)
    index, _ = by_index(tmp_path)
    assert set(index["layer"]) == {0, 1}
    assert set(index["theme"]) == {"rain"}


def test_a_prompt_with_an_error_has_no_vectors_and_is_told(tmp_path, capsys):
    prompts = list(some_prompts(12))
    prompts[1] = dataclasses.replace(prompts[1], segments={"odd": (0, 0)})
    interp.run(SPEC, models=tiny_model("llama"), prompts=prompts, out=tmp_path)
    index, _ = by_index(tmp_path)
    assert set(index["prompt_id"]) == {prompt.id for prompt in prompts} - {prompts[1].id}
    assert re.search(r"\b1 prompt.*error", capsys.readouterr().err)
    table = pd.read_csv(tmp_path / "activation_table.csv").set_index("site")
    tokens = index.drop_duplicates(["prompt_id", "position"])
    assert table.loc["resid_post"].tolist() == ["tiny llama", 2, 23, len(tokens), 32]
    assert table.loc["k"].tolist() == ["tiny llama", 2, 23, 2 * len(tokens), 8]


def test_where_no_prompt_has_vectors_the_index_is_empty_and_there_is_no_tensor(tmp_path):
    prompts = [
        dataclasses.replace(prompt, segments={"premise2": (0, 0)})
        for prompt in some_prompts(12)[:4]
    ]
    options = {"models": tiny_model("llama"), "prompts": prompts, "fail_on_error": 1.0}
    interp.run(SPEC, **options, out=tmp_path)
    index, vectors = by_index(tmp_path)
    assert index.empty and not vectors
    assert not list(tmp_path.glob("*.safetensors"))
    assert not list(problems(RunFolder.read(tmp_path)))


def test_in_memory_it_gives_the_vectors_and_no_files():
    result = interp.run(SPEC, models=tiny_model("llama"), prompts=list(some_prompts(12)[:4]))
    assert set(result.tables) == {"answers", "activation_vectors"}
    row = result.summary().set_index("site").loc["resid_post"]
    vectors = result.table("activation_vectors")
    assert row["vectors"] * row["layers"] == (vectors["site"] == "resid_post").sum()
    assert (row["layers"], row["prompts"], row["width"]) == (2, 4, 32)
    held = pd.concat([vectors, vectors.assign(vector=vectors["vector"].map(lambda own: own[:3]))])
    with pytest.raises(
        UserError, match=r"^tiny llama\b.*\b(3|32)\b.*\b(32|3)\b.*resid_post\b.*0\b"
    ):
        ActivationVectors(InMemory(SPEC, [], {"activation_vectors": held})).derived()


@pytest.mark.parametrize("shapes", [{}, {"é a": (3, 2)}, {"a": (1, 5), "": (6, 1), "c": (2, 4)}])
def test_what_is_written_row_by_row_is_what_safetensors_reads(shapes, tmp_path):
    rng, file = np.random.default_rng(0), tmp_path / "held.safetensors"
    held = {name: rng.normal(size=own).astype(np.float32) for name, own in shapes.items()}
    # Row by row, the tensors in turns.
    rows = sorted((row, name) for name, (count, _) in shapes.items() for row in range(count))
    parts = ((name, held[name][row : row + 1]) for row, name in rows)
    fill_tensors(file, shapes, parts, about={"model": "é"})
    read = load_file(file)
    assert read.keys() == held.keys()
    for name, tensor in held.items():
        np.testing.assert_array_equal(read[name], tensor)
    with safe_open(file, "np") as stream:
        assert stream.metadata() == {"model": "é"}


@pytest.mark.parametrize("shape", [(1, 3), (3, 3), (2, 2)])
def test_other_rows_than_the_shapes_say_are_refused(shape, tmp_path):
    parts = [("a", np.zeros(shape, np.float32))]
    with pytest.raises(ValueError, match="rows"):
        fill_tensors(tmp_path / "x", {"a": (2, 3)}, parts, about={})

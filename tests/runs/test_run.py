import dataclasses
import json

import pyarrow.parquet as pq
import pytest
from transformers import BitsAndBytesConfig

from interp.errors import UserError
from interp.files import process_space
from interp.measurements.specs import Attribute, Evaluate
from interp.measuring.core import bind
from interp.measuring.spec import Spec
from interp.models.model import Model
from interp.runs import identity as origin_module
from interp.runs import run as run_module
from interp.runs.folder import slug
from interp.runs.merge import merging
from interp.runs.run import Run, take_folder
from interp.runs.shards import cut
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, tiny_model
from tests.support.tokenizers import byte_level


@pytest.fixture(autouse=True)
def small_shards(monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", 8)


def run_in(folder, *kinds, prompts=None, spec=None):
    run = Run.open(folder, some_prompts(12) if prompts is None else prompts, spec or Attribute())
    for kind in kinds:
        run.measure(bind((spec or Attribute()), tiny_model(kind)))
    with merging(run.folder):
        pass
    return run


def reversed_prompts(pairs, **changes):
    found = some_prompts(pairs)
    return dataclasses.replace(found, numbers=found.numbers[::-1], **changes)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.glob("*.parquet")}


def test_a_run_leaves_its_tables_and_its_record(tmp_path):
    folder = tmp_path / "new" / "run"
    run_in(folder, "llama")
    tables = {path.name for path in folder.iterdir()}
    assert tables == {
        "answers.parquet",
        "option_probabilities.parquet",
        "segment_scores.parquet",
        "prompts.parquet",
        "run.json",
        "models",
        "shards",
    }
    assert pq.read_table(folder / "segment_scores.parquet").num_rows == 2 * 5 * 24
    record = json.loads((folder / "run.json").read_text())
    assert record["models"] == ["tiny llama"]
    model = json.loads((folder / "models" / f"{slug('tiny llama')}.json").read_text())
    assert len(model["shards"]) == 3
    assert model["dtype"] == "float32"
    assert model["identity"] == tiny_model("llama").identity
    assert record["finished"]
    assert record["run"]["data_hash"] == some_prompts(12).content_hash()
    ids = pq.read_table(folder / "answers.parquet")["prompt_id"].to_pylist()
    assert ids == [prompt.id for prompt in some_prompts(12)]


def test_models_can_join_a_run_later(tmp_path):
    together, later = tmp_path / "together", tmp_path / "later"
    run_in(together, "llama", "gpt2")
    run_in(later, "llama")
    run_in(later, "gpt2")
    assert contents(together) == contents(later)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"prompts": reversed_prompts(12)}, r"\brun: .*data.*--out\b"),
        ({"prompts": reversed_prompts(5)}, r"\b24 prompts.*\b10; .*--limit.*--out\b"),
        ({"spec": Attribute(target="gold")}, r"--target predicted.*--target gold"),
        ({"spec": Evaluate()}, r"measurement is 'attribute', this run's is 'evaluate'"),
        ({"prompts": reversed_prompts(12, seed=1)}, r"seed is 0, this run's is 1"),
        (
            {"spec": Attribute(keep_tokens=True)},
            "was made without --keep-tokens, this one with --keep-tokens",
        ),
    ],
)
def test_a_folder_of_another_run_is_refused_and_left_alone(tmp_path, change, message):
    run_in(tmp_path, "llama")
    before = contents(tmp_path)
    with pytest.raises(UserError, match=message):
        run_in(tmp_path, "llama", **change)
    assert contents(tmp_path) == before


def test_a_folder_of_another_version_is_refused(tmp_path, monkeypatch):
    run_in(tmp_path, "llama")
    monkeypatch.setattr(origin_module, "code_version", lambda modules: "0" * 64)
    with pytest.raises(UserError, match=r"version.*interp.*--out\b"):
        run_in(tmp_path, "llama")


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("precious")
    for place in (tmp_path, tmp_path / "thesis.tex"):
        with pytest.raises(UserError, match=r"folder \(.*\brun\.json\).*--out\b"):
            run_in(place, "llama")
    assert (tmp_path / "thesis.tex").read_text() == "precious"


def test_a_worker_may_come_while_another_writes_the_prompts(tmp_path, monkeypatch):
    write = Run._write_prompts

    def written_while_another_comes(run):
        write(run)
        take_folder(run.folder, "run.json")

    monkeypatch.setattr(Run, "_write_prompts", written_while_another_comes)
    run_in(tmp_path, "llama")
    assert (tmp_path / "answers.parquet").exists()


def test_token_scores_are_tables_of_their_own(tmp_path):
    run = run_in(tmp_path, "llama", prompts=some_prompts(2), spec=Attribute(keep_tokens=True))
    names = ["answers", "option_probabilities", "segment_scores", "token_scores", "tokens"]
    assert run.tables() == names
    scores = pq.read_table(tmp_path / "token_scores.parquet").to_pandas()
    tokens = pq.read_table(tmp_path / "tokens.parquet").to_pandas()
    names = {"premise1", "premise2", "conclusion", "question", "template"}
    assert names == set(tokens["segment"])
    assert len(scores) == 2 * len(tokens)


def test_shards_of_another_model_target_or_quantization_are_others(tmp_path):
    tiny = make_tiny("llama", byte_level())
    model = Model("org/model", tiny.hf, tiny.tokenizer, {"name": "org/model", "commit": "0" * 40})

    def ids(spec, model):
        return {shard.id for shard in cut(bind(spec, model), some_prompts(2), tmp_path)}

    whole = ids(Evaluate(), model)
    assert ids(Evaluate(), model) == whole
    assert not ids(Evaluate(), tiny_model("qwen2")) & whole
    assert not ids(Attribute(), model) & ids(Attribute(target="gold"), model)
    model.hf.config.quantization_config = BitsAndBytesConfig(load_in_8bit=True)
    assert not ids(Evaluate(), model) & whole


@pytest.mark.parametrize(("parameters", "size"), [(10**6, 8), (26 * 10**6, 4), (10**11, 2)])
def test_a_slow_model_gets_smaller_shards(monkeypatch, parameters, size):
    model = tiny_model("llama")
    monkeypatch.setattr(model.hf, "num_parameters", lambda: parameters)
    assert bind(Attribute(), model).shard_prompts == size


def test_the_cut_leaves_the_tables_and_a_resumed_run_keeps_it(tmp_path, monkeypatch):
    run_in(tmp_path / "whole", "llama")
    monkeypatch.setattr(Spec, "shard_prompts", 4)
    run_in(tmp_path / "parts", "llama")
    run = run_in(tmp_path / "whole", "llama")  # where another device would suggest another cut
    assert len(run.done("tiny llama")) == 3
    whole, parts = (pq.read_table(tmp_path / d / "answers.parquet") for d in ("whole", "parts"))
    assert whole["predicted_token"].equals(parts["predicted_token"])


def test_an_interrupted_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    undisturbed = tmp_path / "undisturbed"
    run_in(undisturbed, "llama")
    written = []
    original = run_module.write

    def interrupted(shard, *rest, **options):
        if len(written) == 2:
            raise KeyboardInterrupt
        written.append(shard.id)
        original(shard, *rest, **options)

    monkeypatch.setattr(run_module, "write", interrupted)
    folder = tmp_path / "run"
    with pytest.raises(KeyboardInterrupt):
        run_in(folder, "llama")
    leftover = f".torn.{process_space()}.{2**22 + 1}.{'0' * 16}.unfinished"
    (folder / "shards" / slug("tiny llama") / leftover).mkdir()
    resumed = []
    monkeypatch.setattr(
        run_module,
        "write",
        lambda shard, *rest, **options: (
            resumed.append(shard.id),
            original(shard, *rest, **options),
        ),
    )
    run_in(folder, "llama")
    assert len(resumed) == 1
    assert contents(folder) == contents(undisturbed)
    assert not list(folder.rglob(".torn*"))

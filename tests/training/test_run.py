import errno
import os
import re
import shutil
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
import torch
import yaml
from transformers import AutoConfig

from interp.errors import UserError
from interp.files import locked
from interp.models.load import load_model
from interp.models.loading import Loading
from interp.prompts.answers import FreeText
from interp.runs.records import read_record
from interp.training.folder import TrainRecord, last_whole
from interp.training.run import Training
from tests.support import training
from tests.support.other_kinds import classifier, tokenizer_of
from tests.support.processes import child, ended, until
from tests.support.records import edited
from tests.support.tiny import save
from tests.support.training import CPU, Colors, weights

SPEC = Colors(from_scratch=True, epochs=6, batch=8, learning_rate=5e-3)
train = partial(training.train, spec=SPEC, steps=4)


@pytest.fixture(scope="module")
def configuration(tmp_path_factory):
    """A folder with a configuration, with dropout, and a tokenizer; no weights."""
    folder = tmp_path_factory.mktemp("configuration")
    tokenizer = tokenizer_of("bert")
    AutoConfig.for_model(
        "bert",
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        hidden_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=64,
        max_position_embeddings=128,
        hidden_dropout_prob=0.1,
        initializer_range=0.2,
    ).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def undisturbed(configuration, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / "undisturbed"
    return folder, train(configuration, folder)


@pytest.mark.slow
def test_the_folder_is_a_models_and_says_how_it_was_trained(undisturbed, configuration):
    folder, record = undisturbed
    model = load_model(str(folder), device="cpu")
    assert type(model.hf).__name__ == "BertForSequenceClassification"
    assert set(model.hf.config.id2label.values()) == {"red", "blue", "green"}
    assert sorted(path.name for path in folder.iterdir()) == [
        "README.md",
        "chat_template.jinja",
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        "train.json",
    ]
    assert (record.steps, record.training.lessons) == (36, 48)
    assert set(record.metrics) == {"dev", "test"}
    assert record.metrics["test"]["weighted_f1"] > 0.6
    assert read_record(folder / "train.json", TrainRecord) == record
    card = (folder / "README.md").read_text()
    metadata = yaml.safe_load(card.split("---")[1])
    assert metadata["pipeline_tag"] == "text-classification"
    assert "base_model" not in metadata  # the folder of this machine means nothing elsewhere
    assert str(configuration.parent) not in card
    assert re.search(rf"\b{configuration.name}, .*sequence classifier", card)
    assert "| --learning-rate | 0.005 |" in card
    for split in ("dev", "test"):
        assert f"| {split}: accuracy | {record.metrics[split]['accuracy']:.4g} |" in card
    assert f"| versions: torch | {torch.__version__} |" in card


def test_a_finished_run_is_not_trained_again(undisturbed, configuration, capsys):
    folder, record = undisturbed
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert train(configuration, folder) == record
    assert before == {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert re.search(rf"{folder}.*model", capsys.readouterr().err)


@pytest.mark.parametrize("metrics", [{}, {"dev": {"accuracy": 0.5}}])
def test_a_finished_record_without_scores_is_damaged(undisturbed, tmp_path, metrics):
    folder, _ = undisturbed
    copied = shutil.copytree(folder, tmp_path / "copied")
    edited(copied / "train.json", lambda record: record.update(metrics=metrics))
    with pytest.raises(UserError, match=r"train\.json.*held-out\b.*--out\b"):
        read_record(copied / "train.json", TrainRecord)


def killed_at_a_checkpoint(configuration: str, out: str) -> None:
    """Train, in a process that will be killed, with a checkpoint at every step."""
    torch.set_num_threads(1)
    train(Path(configuration), Path(out), steps=1)


@pytest.mark.slow
def test_a_killed_and_resumed_run_gives_the_same_model(undisturbed, configuration, tmp_path):
    folder, record = undisturbed
    out = tmp_path / "killed"
    with child(killed_at_a_checkpoint, str(configuration), str(out)) as process:
        until((out / "checkpoint-5" / "manifest.json").exists)
        os.kill(process.pid, signal.SIGKILL)
        assert ended(process) == -signal.SIGKILL
    assert not (out / "config.json").exists()
    step, _ = last_whole(out)
    assert 1 <= step < record.steps
    resumed = train(configuration, out)
    assert resumed.metrics == record.metrics
    assert len(resumed.history) == 2
    ours, theirs = weights(out), weights(folder)
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert not list(out.glob("checkpoint-*"))


def test_a_run_killed_after_its_last_step_gives_the_same_configuration(
    undisturbed, configuration, tmp_path, monkeypatch
):
    out = tmp_path / "killed"
    with monkeypatch.context() as patch:
        patch.setattr("interp.training.run.save_folder", Mock(side_effect=KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            train(configuration, out)
    assert last_whole(out)[0] == undisturbed[1].steps
    train(configuration, out)
    assert (out / "config.json").read_bytes() == (undisturbed[0] / "config.json").read_bytes()


def test_another_run_is_refused(undisturbed, configuration, tmp_path):
    folder, _ = undisturbed
    with pytest.raises(UserError, match=r"--epochs.*\b6\b.*\b7\b"):
        train(configuration, folder, spec=SPEC.model_copy(update={"epochs": 7}))
    (tmp_path / "mine.txt").write_text("mine")
    with pytest.raises(UserError, match=r"train\.json\).*--out\b"):
        train(configuration, tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_folder_in_use_and_a_damaged_record_are_refused(configuration, tmp_path):
    with locked(tmp_path, "training") as mine, pytest.raises(UserError, match=r"process.*training"):
        assert mine
        train(configuration, tmp_path)
    (tmp_path / "train.json").write_text('{"training": 1}')
    with pytest.raises(UserError, match=r"train\.json.*training: "):
        train(configuration, tmp_path)


def test_a_link_in_the_folder_is_not_written_through(configuration, tmp_path):
    out, elsewhere = tmp_path / "run", tmp_path / "elsewhere.json"
    elsewhere.write_text("mine")
    out.mkdir()
    (out / "train.json").symlink_to(elsewhere)
    with pytest.raises(UserError, match=r"links?\b"):
        train(configuration, out)
    assert elsewhere.read_text() == "mine"


@pytest.fixture(scope="module")
def begun(configuration, tmp_path_factory):
    """A run folder that was stopped before its first step."""
    out = tmp_path_factory.mktemp("begun") / "run"

    with pytest.MonkeyPatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr("interp.training.run.fit", Mock(side_effect=KeyboardInterrupt))
        train(configuration, out, spec=SPEC.model_copy(update={"epochs": 1}))
    return out


@pytest.mark.quick(1)
@pytest.mark.parametrize(
    "name",
    [
        "config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
        ".training.lock",
    ],
)
def test_links_in_the_place_of_a_model_are_not_written_through(
    begun, configuration, tmp_path, name
):
    out, elsewhere = shutil.copytree(begun, tmp_path / "run"), tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_text("mine")
    (out / name).symlink_to(elsewhere / "file")
    with pytest.raises(UserError, match=r"links?\b|folder"):
        train(configuration, out, spec=SPEC.model_copy(update={"epochs": 1}))
    assert [file.read_text() for file in elsewhere.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    "options",
    [{"dtype": "float16"}, {"quantization": "8bit"}, {"dequantize": True}, {"device": "cuda:1"}],
)
def test_loading_that_does_not_go_with_training_is_refused(configuration, options):
    with pytest.raises(UserError, match="training"):
        Training(SPEC, str(configuration), Loading(**options))


def test_what_cannot_learn_the_task_is_refused(configuration, tmp_path):
    class Writing(Colors):
        def prompts(self, split):
            answer = FreeText(("red",))
            return [replace(prompt, answer=answer) for prompt in super().prompts(split)]

    with pytest.raises(UserError, match=r"encoder.*generated text"):
        Training(Writing(from_scratch=True), str(configuration), CPU)
    with pytest.raises(UserError, match=r"small-decoder.*--from-scratch"):
        Training(Colors(), "small-decoder", CPU)


@pytest.mark.parametrize(
    ("error", "told"),
    [
        (torch.OutOfMemoryError("CUDA out of memory"), r"\b8 prompts.*--batch"),
        (OSError(errno.ENOSPC, "no space"), "space left on device"),
    ],
)
def test_memory_or_a_disk_that_is_full_is_told(configuration, tmp_path, monkeypatch, error, told):
    monkeypatch.setattr("interp.training.run.fit", Mock(side_effect=error))
    with pytest.raises(UserError, match=told):
        train(configuration, tmp_path / "out")


def test_a_checkpoint_with_other_classes_gets_a_new_head(tmp_path):
    source = tmp_path / "source"
    model = classifier("roberta")
    save(model, source)
    spec = Colors(epochs=1, batch=24, seed=3)
    train(source, tmp_path / "out", spec=spec)
    trained = weights(tmp_path / "out")
    before = model.hf.state_dict()
    encoder = [name for name in before if name.startswith("roberta.")]
    # At the default rate of 1e-5 two steps move no weight of the encoder far.
    assert all((trained[name] - before[name]).abs().max() < 1e-3 for name in encoder)
    head = "classifier.out_proj.weight"
    assert (trained[head] - before[head]).abs().max() > 1e-2


def test_an_encoder_that_fills_masks_becomes_a_classifier(tmp_path):
    from transformers import AutoModelForMaskedLM

    source, tokenizer = tmp_path / "masks", tokenizer_of("roberta")
    config = classifier("roberta").hf.config
    hf = AutoModelForMaskedLM.from_config(config)
    hf.save_pretrained(source)
    tokenizer.save_pretrained(source)
    record = train(source, tmp_path / "out", spec=Colors(epochs=1, batch=24))
    assert record.metrics["dev"]["prompts"] == 12
    # The encoder's own weights must all be there.
    damaged = hf.state_dict()
    damaged.pop("roberta.encoder.layer.1.output.dense.weight")
    hf.save_pretrained(source, state_dict=damaged)
    with pytest.raises(UserError, match=r"roberta\.encoder\.layer\.1\.output\.dense"):
        train(source, tmp_path / "other", spec=Colors(epochs=1, batch=24))
    assert not (tmp_path / "other").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "name",
    [
        "small-encoder",
        pytest.param("small-text-to-text", marks=pytest.mark.release),
        pytest.param("small-decoder", marks=pytest.mark.release),
    ],
)
def test_built_in_configurations_learn(name, tmp_path):
    spec = SPEC.model_copy(update={"epochs": 40, "learning_rate": 3e-3})
    record = train(name, tmp_path / "out", spec=spec, steps=100)
    assert record.metrics["test"]["accuracy"] > 0.9
    assert load_model(str(tmp_path / "out"), device="cpu")

import json
import os
import pickle
import random

import pytest
import torch
from safetensors.torch import load_file

from interp.errors import UserError
from interp.models.checkpoint import as_user_error
from tests.models.conftest import configure, load, refused, rewrite

INDEX = "model.safetensors.index.json"


def shifted(weights):
    return {key: value + 1 for key, value in weights.items()}


def indexed(folder, file):
    """Move the weights to a file that an index names, by whatever name."""
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    listed(folder / INDEX, load_file(folder / "part.safetensors"), file)


def listed(index, weights, file):
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(weights, file)}))


def test_two_sets_of_weights_in_a_folder_are_the_same(saved):
    whole = (saved / "model.safetensors").read_bytes()
    indexed(saved, "part.safetensors")
    load(saved)
    (saved / "model.safetensors").write_bytes(whole)
    load(saved)
    rewrite(saved, shifted)
    refused(r"two .*model\.safetensors\.index\.json", saved)


def test_a_pickle_beside_safetensors_is_named_or_compared(saved):
    state = load_file(saved / "model.safetensors")
    torch.save(state | {"tied": state["model.norm.weight"]}, saved / "pytorch_model.bin")
    assert any("pytorch_model.bin" in note for note in load(saved).notes)
    assert not any("pytorch_model.bin" in note for note in load(saved, allow_pickle=True).notes)
    for other in (shifted(state), {"lm_head.weight": torch.ones(2)}):
        torch.save(other, saved / "pytorch_model.bin")
        refused(r"model\.safetensors.*pytorch_model\.bin", saved, allow_pickle=True)
    (saved / "pytorch_model.bin").write_bytes(b"damaged")
    refused(r"pytorch_model\.bin", saved, allow_pickle=True)


def test_a_pickle_and_an_index_of_pickles_hold_the_same(saved):
    state = load_file(saved / "model.safetensors")
    pickled(saved, state)
    index = saved / "pytorch_model.bin.index.json"
    listed(index, state, "part.bin")
    torch.save(state, saved / "part.bin")
    load(saved, allow_pickle=True)
    torch.save(shifted(state), saved / "part.bin")
    refused(r"pytorch_model\.bin\.index\.json", saved, allow_pickle=True)
    (saved / "pytorch_model.bin").unlink()
    load(saved, allow_pickle=True)
    listed(index, state, "../part.bin")
    words = r"pytorch_model\.bin\.index\.json.*'\.\./part\.bin'.*\.bin file"
    refused(words, saved, allow_pickle=True)


def test_a_file_may_be_a_link_as_in_the_hubs_cache(saved, tmp_path_factory):
    blob = tmp_path_factory.mktemp("blobs") / "0123"
    (saved / "model.safetensors").rename(blob)
    (saved / "model.safetensors").symlink_to(blob)
    load(saved)


@pytest.mark.parametrize(
    "file",
    [
        *("../{}/part.safetensors", "{}/part.safetensors", "./part.safetensors"),
        *("part.bin", "/part.safetensors", ".part.safetensors", "a\n", ""),
        "x" * 300 + ".safetensors",
    ],
)
def test_an_index_names_safetensors_of_its_folder_only(saved, file):
    indexed(saved, file.format(saved.name))
    refused(r"model\.safetensors\.index\.json.*'.*\.safetensors file", saved)


@pytest.mark.parametrize(
    "index",
    ["[]", "{}", '{"weight_map": [1]}', '{"weight_map": {"a": 1}}', "{", "other.safetensors"],
)
def test_a_damaged_index_is_refused(saved, index):
    indexed(saved, index)
    words = r"weight file other\.safetensors.*model\.safetensors\.index\.json"
    if index != "other.safetensors":  # which is not there
        (saved / INDEX).write_text(index)
        words = r"model '.+'.*: model\.safetensors\.index\.json: "
    refused(words, saved)


def pickled(folder, content):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")


class Code:
    def __reduce__(self):
        return print, ("code ran",)


@pytest.mark.parametrize(
    ("content", "named"),
    [
        *(([1], " list"), ({"a": 1}, " int"), (5, " int"), ({1: torch.ones(1)}, " 1")),
        *(({"a": {}}, " dict"), ({"a": Code()}, " tensors")),
    ],
)
def test_a_pickle_of_something_else_is_refused(saved, content, named, capsys):
    pickled(saved, content)
    refused(rf"pytorch_model\.bin\b.*{named}\b", saved, allow_pickle=True)
    if named == " tensors":  # without torch's own form, which is one message too, and no warning
        (saved / "pytorch_model.bin").write_bytes(pickle.dumps(content))
        refused(r"pytorch_model\.bin", saved, allow_pickle=True)
    assert "code ran" not in capsys.readouterr().out


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_pipes_and_devices_are_not_read(saved, name):
    (saved / name).unlink()
    os.mkfifo(saved / name)
    refused(rf"^{name} .*file; ", saved)
    (saved / name).unlink()
    (saved / name).symlink_to("/dev/zero")
    refused(rf"^{name} .*file; ", saved)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool, torch.int64])
@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.0.mlp.up_proj.weight"])
def test_weights_are_floating_point_numbers(saved, dtype, name):
    rewrite(saved, lambda tensors: tensors | {name: tensors[name].to(dtype)})
    refused(f"tensor {name} .*\\bfloating-point\\b", saved)


@pytest.mark.parametrize(
    "file",
    [
        *("chat_template.jinja", "generation_config.json", "special_tokens_map.json"),
        "additional_chat_templates/rag.jinja",
    ],
)
def test_files_that_cannot_be_read_are_not_left_out(saved, file):
    (saved / ".#config.json").symlink_to("user@host.1:2")  # as editors leave it
    assert load(saved)
    place = saved / file
    place.parent.mkdir(exist_ok=True)
    for target in ("../../blobs/0123", place.name):
        place.unlink(missing_ok=True)
        place.symlink_to(target)
        refused(rf"^{place.name} .*\blink; ", saved)
    place.unlink()
    place.mkdir()
    if place.parent == saved:
        refused(rf"^{file} .*\bfolder; ", saved)


@pytest.mark.parametrize("value", ["evil/kernel", "evil/kernel@main:run", {"text": "evil/kernel"}])
def test_a_configuration_names_no_kernel(saved, value):
    configure(saved, _attn_implementation=value)
    if isinstance(value, dict):
        configure(saved, _attn_implementation=None, sub={"attn_implementation": value["text"]})
    refused(r"config\.json.*'evil/kernel.*--attn-implementation", saved)
    configure(saved, _attn_implementation="eager", sub=None)
    assert load(saved).attn_implementation == "eager"


MESSAGE_LENGTH = 420

WRONG_VALUES = [None, "x", -1, 0, 1.5, [], {}, [1], True, "9" * 30]
SETTINGS = (
    *("hidden_size", "num_attention_heads", "num_key_value_heads", "vocab_size", "layer_types"),
    *("rope_parameters", "hidden_act", "rms_norm_eps", "model_type", "dtype", "pad_token_id"),
    *("quantization_config", "auto_map"),
)


def refusal(folder):
    """The message of a model that is refused; None where it loads."""
    try:
        load(folder)
    except UserError as error:
        return str(error)
    return None


@pytest.mark.parametrize("setting", SETTINGS)
def test_wrong_settings_end_in_a_message(saved, setting):
    original = (saved / "config.json").read_text()
    told = []
    for value in WRONG_VALUES:
        (saved / "config.json").write_text(json.dumps(json.loads(original) | {setting: value}))
        told.append(refusal(saved))
    assert any(told)
    assert all(len(said) < MESSAGE_LENGTH and saved.name in said for said in filter(None, told))


@pytest.mark.parametrize("seed", range(40))
def test_damaged_files_end_in_a_message(saved, seed):
    chance = random.Random(seed)
    names = ["config.json", "tokenizer.json", "tokenizer_config.json", "model.safetensors"]
    file = saved / chance.choice(names)
    content = bytearray(file.read_bytes())
    if chance.random() < 0.5:
        del content[chance.randrange(len(content)) :]
    else:
        content[chance.randrange(min(len(content), 2000))] = chance.randrange(256)
    file.write_bytes(content)
    message = refusal(saved)
    assert message is None or len(message) < MESSAGE_LENGTH


def wrong_field(value, *path):
    def damage(folder):
        tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
        *parents, last = path
        part = tokenizer
        for name in parents:
            part = part[name]
        part[last] = value
        (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")

    return damage


def content(file, text):
    return lambda folder: (folder / file).write_text(text)


TOKENIZER = r": .*tokenizer: "


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (wrong_field(5, "model"), TOKENIZER),
        (wrong_field("Nonsense", "model", "type"), TOKENIZER),
        (wrong_field([], "model", "vocab"), TOKENIZER),
        (wrong_field({"a": "b"}, "model", "vocab"), TOKENIZER),
        (wrong_field([["a", "b", "c"]], "model", "merges"), TOKENIZER),
        (wrong_field("x", "added_tokens"), TOKENIZER),
        (wrong_field({"type": "Split", "pattern": {"Regex": "(a|"}}, "pre_tokenizer"), TOKENIZER),
        (content("tokenizer.json", "[" * 100_000), TOKENIZER),
        (content("tokenizer_config.json", "[]"), TOKENIZER),
        (content("config.json", "[" * 100_000), ": config.json: "),
        (content("config.json", "[1]"), "JSON object"),
        (content("config.json", '{"model_type": "llama", "dtype": "float99"}'), "float99"),
        (content("config.json", '{"transformers_weights": "x"}'), "sets transformers_weights"),
        *(
            (content("generation_config.json", text), r"generation_config\.json")
            for text in ("{", "[]", '"x"', "\ufeff{}", '{"watermarking_config": 5}', "[" * 100_000)
        ),
    ],
)
def test_damaged_files_are_refused(saved, damage, words):
    damage(saved)
    assert len(refused(words, saved)) < MESSAGE_LENGTH


class PanicException(BaseException):
    """As the tokenizers library's panics, no Exception."""


@pytest.mark.parametrize(
    ("error", "told"),
    [
        *((e, r": \w+") for e in (PanicException("panic"), RecursionError(), KeyError("key"))),
        (OSError(), r": \w+"),
        (MemoryError(), ".*memory"),
    ],
)
def test_any_error_is_told(error, told):
    with pytest.raises(UserError, match=f"'m'.*file{told}"), as_user_error("a file", "m"):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, UserError])
def test_what_is_not_the_models_fault_passes(error):
    with pytest.raises(error), as_user_error("a file", "m"):
        raise error

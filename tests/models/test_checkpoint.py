import json
import os
import pickle
import random
import re

import pytest
import torch
from safetensors.torch import load_file

import interp
from interp.errors import UserError, one_line
from interp.models.checkpoint import as_user_error
from tests.models.conftest import configure, rewrite


def load(folder, **options):
    return interp.load_model(str(folder), device="cpu", **options)


def indexed(folder, file):
    """Move the weights to a file that an index names, by whatever name."""
    (folder / "model.safetensors").rename(folder / "part.safetensors")
    weight_map = dict.fromkeys(load_file(folder / "part.safetensors"), file)
    index = {"metadata": {}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def test_an_index_may_name_files_beside_it(saved):
    indexed(saved, "part.safetensors")
    load(saved)


def test_two_sets_of_weights_in_a_folder_are_the_same(saved):
    whole = (saved / "model.safetensors").read_bytes()
    indexed(saved, "part.safetensors")
    (saved / "model.safetensors").write_bytes(whole)
    load(saved)
    rewrite(saved, lambda weights: {k: v + 1 for k, v in weights.items()})
    with pytest.raises(UserError, match=r"two .*model\.safetensors\.index\.json"):
        load(saved)


def test_a_pickle_beside_safetensors_is_named_or_compared(saved):
    state = load_file(saved / "model.safetensors")
    torch.save(state | {"tied": state["model.norm.weight"]}, saved / "pytorch_model.bin")
    assert any("pytorch_model.bin" in note for note in load(saved).notes)
    assert not any("pytorch_model.bin" in note for note in load(saved, allow_pickle=True).notes)
    for other in ({k: v + 1 for k, v in state.items()}, {"lm_head.weight": torch.ones(2)}):
        torch.save(other, saved / "pytorch_model.bin")
        with pytest.raises(UserError, match=r"model\.safetensors.*pytorch_model\.bin"):
            load(saved, allow_pickle=True)
    (saved / "pytorch_model.bin").write_bytes(b"damaged")
    with pytest.raises(UserError, match=r"pytorch_model\.bin"):
        load(saved, allow_pickle=True)


def test_a_pickle_and_an_index_of_pickles_hold_the_same(saved):
    state = load_file(saved / "model.safetensors")
    pickled(saved, state)
    index = {"metadata": {}, "weight_map": dict.fromkeys(state, "part.bin")}
    (saved / "pytorch_model.bin.index.json").write_text(json.dumps(index))
    torch.save(state, saved / "part.bin")
    load(saved, allow_pickle=True)
    torch.save({k: v + 1 for k, v in state.items()}, saved / "part.bin")
    with pytest.raises(UserError, match=r"pytorch_model\.bin\.index\.json"):
        load(saved, allow_pickle=True)


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
    with pytest.raises(UserError, match=r"model\.safetensors\.index\.json.*'.*\.safetensors file"):
        load(saved)


def test_an_index_whose_files_are_not_all_there_is_refused(saved):
    indexed(saved, "other.safetensors")
    with pytest.raises(
        UserError, match=r"weight file other\.safetensors.*model\.safetensors\.index\.json"
    ):
        load(saved)


@pytest.mark.parametrize(
    "index", ["[]", "{}", '{"weight_map": [1]}', '{"weight_map": {"a": 1}}', "{"]
)
def test_a_damaged_index_is_refused(saved, index):
    indexed(saved, "part.safetensors")
    (saved / "model.safetensors.index.json").write_text(index)
    with pytest.raises(UserError, match=r"model '.+'.*: model\.safetensors\.index\.json: "):
        load(saved)


def pickled(folder, content):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")


class Code:
    def __reduce__(self):
        return print, ("code ran",)


def test_a_pickle_with_code_is_refused_also_when_pickles_are_allowed(saved, capsys):
    pickled(saved, {"a": Code()})
    with pytest.raises(UserError, match=r"pytorch_model\.bin\b.*tensors"):
        load(saved, allow_pickle=True)
    assert "code ran" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "named"),
    [([1], "list"), ({"a": 1}, "int"), (5, "int"), ({1: torch.ones(1)}, "1"), ({"a": {}}, "dict")],
)
def test_a_pickle_of_something_else_is_refused(saved, content, named):
    pickled(saved, content)
    with pytest.raises(UserError, match=rf"pytorch_model\.bin.* {named}\b.*state_dict"):
        load(saved, allow_pickle=True)


def test_a_pickle_that_is_no_checkpoint_is_one_message(saved):
    (saved / "model.safetensors").unlink()
    (saved / "pytorch_model.bin").write_bytes(pickle.dumps({"a": Code()}))
    with pytest.raises(UserError, match=r"pytorch_model\.bin"):  # and no warning
        load(saved, allow_pickle=True)


def test_an_index_of_pickles_names_pickles_beside_it(saved):
    state = load_file(saved / "model.safetensors")
    (saved / "model.safetensors").unlink()
    torch.save(state, saved / "part.bin")
    index = saved / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(state, "part.bin")}))
    load(saved, allow_pickle=True)
    index.write_text(json.dumps({"weight_map": dict.fromkeys(state, "../part.bin")}))
    with pytest.raises(
        UserError, match=r"pytorch_model\.bin\.index\.json.*'\.\./part\.bin'.*\.bin file"
    ):
        load(saved, allow_pickle=True)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_pipes_and_devices_are_not_read(saved, name):
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(UserError, match=rf"^{name} .*file; "):
        load(saved)
    (saved / name).unlink()
    (saved / name).symlink_to("/dev/zero")
    with pytest.raises(UserError, match=rf"^{name} .*file; "):
        load(saved)


def test_a_configuration_names_no_weights(saved):
    configure(saved, transformers_weights="other.safetensors")
    with pytest.raises(UserError, match="sets transformers_weights"):
        load(saved)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool, torch.int64])
@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.0.mlp.up_proj.weight"])
def test_weights_are_floating_point_numbers(saved, dtype, name):
    rewrite(saved, lambda tensors: tensors | {name: tensors[name].to(dtype)})
    with pytest.raises(UserError, match=f"tensor {name} .*\\bfloating-point\\b"):
        load(saved)


COUNTING = ["chat_template.jinja", "generation_config.json", "special_tokens_map.json"]


@pytest.mark.parametrize("file", COUNTING)
@pytest.mark.parametrize("kind", ["dangling", "loop", "folder"])
def test_files_that_cannot_be_read_are_not_left_out(saved, file, kind):
    place = saved / file
    place.unlink(missing_ok=True)
    if kind == "folder":
        place.mkdir()
    else:
        place.symlink_to("../../blobs/0123" if kind == "dangling" else file)
    told = "folder" if kind == "folder" else "link"
    with pytest.raises(UserError, match=rf"^{file} .*\b{told}; "):
        load(saved)


def test_templates_beside_the_first_are_read_too(saved):
    (saved / "additional_chat_templates").mkdir()
    (saved / "additional_chat_templates" / "rag.jinja").symlink_to("none")
    with pytest.raises(UserError, match=r"\brag\.jinja.*link"):
        load(saved)


def test_links_of_editors_are_none_of_the_models_business(saved):
    (saved / ".#config.json").symlink_to("user@host.1:2")
    assert load(saved)


@pytest.mark.parametrize(
    "content", ["{", "[]", '"x"', "\ufeff{}", '{"watermarking_config": 5}', "[" * 100_000]
)
def test_a_damaged_generation_config_is_not_left_out(saved, content):
    (saved / "generation_config.json").write_text(content)
    with pytest.raises(UserError, match=r"generation_config\.json"):
        load(saved)


@pytest.mark.parametrize("value", ["evil/kernel", "evil/kernel@main:run", {"text": "evil/kernel"}])
def test_a_configuration_names_no_kernel(saved, value):
    configure(saved, _attn_implementation=value)
    if isinstance(value, dict):
        configure(saved, _attn_implementation=None, sub={"attn_implementation": value["text"]})
    with pytest.raises(UserError, match=r"config\.json.*'evil/kernel.*--attn-implementation"):
        load(saved)
    configure(saved, _attn_implementation="eager", sub=None)
    assert load(saved).attn_implementation == "eager"


MESSAGE_LENGTH = 420

WRONG_VALUES = [None, "x", -1, 0, 1.5, [], {}, [1], True, "9" * 30]
SETTINGS = [
    "hidden_size",
    "num_attention_heads",
    "num_key_value_heads",
    "vocab_size",
    "rope_parameters",
    "hidden_act",
    "rms_norm_eps",
    "model_type",
    "dtype",
    "quantization_config",
    "pad_token_id",
    "layer_types",
    "auto_map",
]


def refusal(folder):
    """The message of a model that is refused; None where it loads."""
    try:
        interp.load_model(str(folder), device="cpu")
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
    refused = [message for message in told if message is not None]
    assert refused
    assert all(len(message) < MESSAGE_LENGTH and saved.name in message for message in refused)


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


@pytest.mark.parametrize(
    "damage",
    [
        wrong_field(5, "model"),
        wrong_field("Nonsense", "model", "type"),
        wrong_field([], "model", "vocab"),
        wrong_field({"a": "b"}, "model", "vocab"),
        wrong_field([["a", "b", "c"]], "model", "merges"),
        wrong_field("x", "added_tokens"),
        wrong_field({"type": "Split", "pattern": {"Regex": "(a|"}}, "pre_tokenizer"),
        lambda folder: (folder / "tokenizer.json").write_text("[" * 100_000),
        lambda folder: (folder / "tokenizer_config.json").write_text("[]"),
    ],
)
def test_damaged_tokenizers_are_refused(saved, damage):
    damage(saved)
    message = refusal(saved)
    assert message is not None
    assert re.search(r": .*tokenizer: ", message)
    assert len(message) < MESSAGE_LENGTH


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("[" * 100_000, ": config.json: "),
        ("[1]", "JSON object"),
        ('{"model_type": "llama", "dtype": "float99"}', "float99"),
    ],
)
def test_damaged_configurations_are_refused(saved, content, told):
    (saved / "config.json").write_text(content)
    assert told in str(refusal(saved))


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


def test_messages_repeat_little_and_nothing_that_terminals_obey():
    assert one_line("a\x1b[1m\nb") == r"a\x1b[1m b"
    assert len(one_line("x" * 10_000)) <= 80

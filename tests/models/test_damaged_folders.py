"""Whatever is wrong with a folder ends in one short message that names the model and the file."""

import json
import random

import pytest

import interp
from interp.errors import UserError, one_line
from interp.models.checkpoint import reading
from tests.models.conftest import configure

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
    assert "cannot be loaded: its tokenizer: " in message
    assert len(message) < MESSAGE_LENGTH


def test_deeply_nested_configurations_are_refused(saved):
    (saved / "config.json").write_text("[" * 100_000)
    assert "cannot be loaded: config.json: " in str(refusal(saved))


def test_a_configuration_that_is_no_object_is_refused(saved):
    (saved / "config.json").write_text("[1]")
    assert "is no object" in str(refusal(saved))


def test_unknown_number_types_are_refused(saved):
    configure(saved, dtype="float99")
    assert "float99" in str(refusal(saved))


class PanicException(BaseException):
    """As the tokenizers library's panics, no Exception."""


@pytest.mark.parametrize(
    "error", [PanicException("panic"), RecursionError(), KeyError("key"), OSError()]
)
def test_any_error_is_told(error):
    told = r"the model 'm' cannot be loaded: a file: \w+"
    with pytest.raises(UserError, match=told), reading("a file", "m"):
        raise error


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, UserError])
def test_what_is_not_the_models_fault_passes(error):
    with pytest.raises(error), reading("a file", "m"):
        raise error


def test_what_does_not_fit_into_memory_is_told():
    told = "the model 'm' cannot be loaded: a file does not fit into the memory"
    with pytest.raises(UserError, match=told), reading("a file", "m"):
        raise MemoryError


def test_messages_repeat_little_and_nothing_that_terminals_obey():
    assert one_line("a\x1b[1m\nb") == r"a\x1b[1m b"
    assert len(one_line("x" * 10_000)) <= 80

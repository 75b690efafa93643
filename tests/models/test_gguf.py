import json
import struct
from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from transformers.modeling_gguf_pytorch_utils import (
    TensorProcessor,
    get_gguf_hf_weights_map,
    load_gguf_checkpoint,
)

import interp
from interp.errors import UserError
from interp.models import gguf_header
from interp.models.adapters import Base, low_rank, save_adapter
from interp.models.find import find_named
from interp.models.formats import format_of
from interp.models.gguf import FORMAT, _names, _settings
from interp.models.gguf_header import header_of
from interp.models.loading import Loading
from tests.models.conftest import IDS, load, refused
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

gguf = pytest.importorskip("gguf")

NAMES = {
    **{"model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"},
    "model.layers.": "blk.",
    **{f"self_attn.{own}_proj": f"attn_{own}" for own in "qkv"},
    "self_attn.o_proj": "attn_output",
    **{f"mlp.{own}_proj": f"ffn_{own}" for own in ("gate", "up", "down")},
    "post_attention_layernorm": "ffn_norm",
    "input_layernorm": "attn_norm",
}


def gguf_name(name):
    for own, theirs in NAMES.items():
        name = name.replace(own, theirs)
    return name


def rotated(name, weight, config):
    """Queries and keys in llama.cpp's order, which rotates pairs of neighbours."""
    heads = {"q": config.num_attention_heads, "k": config.num_key_value_heads}.get(name[-8:-7])
    if "attn_" not in name or heads is None:
        return weight
    shape = (heads, 2, weight.shape[0] // heads // 2, weight.shape[1])
    return weight.reshape(shape).swapaxes(1, 2).reshape(weight.shape)


def vocabulary(tokenizer):
    tokens = sorted(tokenizer.get_vocab(), key=tokenizer.get_vocab().get)
    merges = json.loads(tokenizer.backend_tokenizer.to_str())["model"]["merges"]
    return tokens, [" ".join(merge) for merge in merges]


def write(file, model, kind="Q8_0", **further):
    """Write a model as llama.cpp would, its MLPs quantized, and round these in the model too."""
    config, tokenizer = model.hf.config, model.tokenizer
    writer = gguf.GGUFWriter(file, "llama")
    writer.add_context_length(config.max_position_embeddings)
    writer.add_embedding_length(config.hidden_size)
    writer.add_block_count(config.num_hidden_layers)
    writer.add_feed_forward_length(config.intermediate_size)
    writer.add_head_count(config.num_attention_heads)
    writer.add_head_count_kv(config.num_key_value_heads)
    writer.add_layer_norm_rms_eps(config.rms_norm_eps)
    writer.add_rope_freq_base(10000.0)
    writer.add_rope_dimension_count(config.head_dim)
    tokens, merges = vocabulary(tokenizer)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("gpt-2")
    writer.add_token_list(tokens)
    control = {str(token) for token in tokenizer.added_tokens_decoder.values()}
    writer.add_token_types([3 if token in control else 1 for token in tokens])
    writer.add_token_merges(merges)
    writer.add_bos_token_id(tokenizer.bos_token_id)
    writer.add_eos_token_id(tokenizer.eos_token_id)
    writer.add_chat_template(tokenizer.chat_template)
    for key, value in further.items():
        writer.add_key_value(key.replace("__", "."), value, gguf.GGUFValueType.get_type(value))
    for key, tensor in model.hf.state_dict().items():
        name = gguf_name(key)
        if "ffn_" not in name or "norm" in name or kind == "F32":
            writer.add_tensor(name, rotated(name, tensor.numpy(), config))
            continue
        raw = gguf.GGMLQuantizationType[kind]
        packed = gguf.quants.quantize(tensor.numpy(), raw)
        writer.add_tensor(name, packed, raw_dtype=raw)
        tensor.copy_(torch.from_numpy(gguf.quants.dequantize(packed, raw)))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return file


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A tiny Llama, and its file."""
    model = make_tiny("llama", byte_level())
    return model, write(tmp_path_factory.mktemp("gguf") / "tiny.Q8_0.gguf", model)


@pytest.fixture
def file(written, tmp_path):
    """A copy of the file that a test may damage."""
    copy = tmp_path / "tiny.Q8_0.gguf"
    copy.write_bytes(written[1].read_bytes())
    return copy


def test_a_file_loads_as_the_model_that_it_holds(written, prompts):
    model, file = written
    loaded = load(file)
    assert loaded.identity == load(file).identity
    scores = interp.attribute(loaded, prompts[:2], methods=("input_gradient",))
    assert (scores.segment_scores["error"] == "").all()
    assert torch.equal(loaded.hf(IDS).logits, model.hf(IDS).logits)
    text = "Yes, <u>it is"
    assert len(loaded.tokenizer) == len(model.tokenizer)
    assert loaded.tokenizer(text)["input_ids"] == model.tokenizer(text)["input_ids"]
    assert loaded.tokenizer.chat_template == model.tokenizer.chat_template
    assert (loaded.name, loaded.quantization) == ("tiny.Q8_0", None)
    assert loaded.source == {"kind": "file", "name": str(file), "dequantized": "Q8_0"}
    assert "Q8_0" in loaded.notes[0]


def test_floating_point_weights_are_not_dequantized(tmp_path, capsys):
    loaded = load(write(tmp_path / "m.gguf", make_tiny("llama", byte_level()), "F32"))
    assert "dequantized" not in loaded.source
    assert loaded.notes == ()
    assert capsys.readouterr().err == ""  # no bar of progress
    refused(r"dequantize.*quantized", tmp_path / "m.gguf", dequantize=True)


def test_nothing_beside_the_file_is_read(file, tmp_path, monkeypatch):
    for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
        (file.parent / name).write_text("damaged")
    (file.parent / "chat_template.jinja").write_text("other")
    other = tmp_path / "other"
    other.mkdir()
    (other / "model.gguf").write_bytes(b"")
    monkeypatch.chdir(other)
    loaded = load("../tiny.Q8_0.gguf")
    assert loaded.name == "tiny.Q8_0"
    assert loaded.tokenizer.chat_template == byte_level().chat_template


def test_the_header_is_read_once_for_a_model_but_again_once_it_has_changed(file, monkeypatch):
    opened = []
    original = gguf_header._walk
    monkeypatch.setattr(gguf_header, "_walk", lambda header: opened.append(1) or original(header))
    load(file)
    assert len(opened) == 1
    file.write_bytes(file.read_bytes())
    load(file)
    assert len(opened) == 2
    assert gguf.get_tensor_name_map is gguf.tensor_mapping.get_tensor_name_map


def test_the_configuration_alone_is_checked_too(file):
    assert format_of(file).load_config(file).num_hidden_layers == 2
    file.write_bytes(file.read_bytes()[:100])
    with pytest.raises(ValueError, match=r"header.*\b100 bytes"):
        format_of(file).load_config(file)


def test_a_folder_with_weights_is_loaded_from_them(saved):
    (saved / "tiny.gguf").write_bytes(b"GGUF")
    assert load(saved).source == {"kind": "folder", "name": str(saved)}


def find(place):
    return find_named(str(place), Loading())


def test_the_checksum_changes_with_one_byte(file):
    before = find(f"a={file}")
    assert before.name == "a"
    checksum = before.checksum()
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    after = find(file)
    assert len(checksum) == 64
    assert checksum != after.checksum()
    assert before.fingerprint != after.fingerprint


def test_a_file_is_not_quantized_again_and_needs_a_package(file, monkeypatch):
    refused("8bit", file, quantization="8bit")
    monkeypatch.setattr("interp.models.gguf.find_spec", lambda name: None)
    refused(r"pip install .*gguf", file)


def test_a_file_that_is_missing_is_not_looked_for_on_the_hub(tmp_path):
    for place in (tmp_path / "m.GGUF", "models/m.gguf", "m.gguf"):
        refused(r"(?i)GGUF file '.*m\.gguf'", place)


def test_a_folder_may_be_called_as_a_file(saved, tmp_path):
    folder = tmp_path / "m.gguf"
    folder.mkdir()
    refused(r"config\.json", folder)
    for part in [*saved.iterdir()]:
        if part != folder:
            part.rename(folder / part.name)
    assert load(folder).name == "m.gguf"


def text(value):
    return struct.pack("<Q", len(value)) + value


def header(*pairs, tensors=(), version=3, magic=b"GGUF", counts=None):
    """A header of (key, type, value) with tensors of (name, shape, type, offset)."""
    tensor_count, pair_count = counts or (len(tensors), len(pairs))
    start = magic + struct.pack("<IQQ", version, tensor_count, pair_count)
    for key, kind, value in pairs:
        start += text(key) + struct.pack("<I", kind) + value
    for name, shape, kind, offset in tensors:
        start += text(name) + struct.pack(f"<I{len(shape)}Q", len(shape), *shape)
        start += struct.pack("<IQ", kind, offset)
    return start


ARCH = (b"general.architecture", 8, text(b"llama"))
F32, Q8_0 = 0, 8


def array(kind, count, rest=b""):
    return struct.pack("<IQ", kind, count) + rest


@pytest.mark.parametrize(
    ("content", "named"),
    [
        (b"", "header"),
        (b"GGUF", "header"),
        (b"GGML" + bytes(60), "GGML"),
        (b"PK\3\4" + bytes(60), "PK"),
        (header(ARCH, version=1), "version 1"),
        (header(ARCH, version=0x03000000), "version"),
        (header(ARCH, counts=(0, 2**63)), "settings"),
        (header(ARCH, counts=(2**60, 1)), "tensors"),
        (header(ARCH, counts=(0, 2)), "header"),
        (header(ARCH, ARCH), r"general\.architecture"),
        (header(ARCH) + bytes(64), "tensors"),
        (header((b"general.architecture", 4, bytes(4))), "architecture"),
        (header((b"a", 8, struct.pack("<Q", 2**63))), "9,223,372,036,854,775,808 bytes"),
        (header((b"a", 8, text(b"\xff"))), "utf-8"),
        (header((b"a", 13, bytes(8))), "13"),
        (header((b"a", 9, array(0, 2**62))), "elements"),
        (header((b"a", 9, array(8, 2**21))), "header"),
        (header((b"a", 9, array(9, 1, array(9, 1)))), "\\b9\\b"),
        (header((b"a", 9, array(8, 1, text(b"a" * 5000)))), r"5,000 bytes.* 4,096"),
        (header(ARCH, (b"general.alignment", 4, bytes(4))), r"general\.alignment .*\b0; "),
        (header(ARCH, (b"general.alignment", 0, b"\x20")), "alignment"),
        (header(ARCH, tensors=[(b"a", (2**40,), F32, 0)]), "4,398,046,511,232 bytes"),
        (header(ARCH, tensors=[(b"a", (2**63, 2**63), F32, 0)]), r"340,282,366,920,[\d,]+ bytes"),
        (header(ARCH, tensors=[(b"a", (1,), F32, 2**63)]), r"9,223,372,[\d,]+ bytes"),
        (header(ARCH, tensors=[(b"a", (0,), F32, 0)]), "shape"),
        (header(ARCH, tensors=[(b"a", (33,), Q8_0, 0)]), r"\(33,\).*\b32\b"),
        (header(ARCH, tensors=[(b"a", (1,) * 5, F32, 0)]), "axes"),
        (header(ARCH, tensors=[(b"a", (1,), 999, 0)]), "999"),
        (header(ARCH, tensors=[(b"a", (1,), F32, 0)] * 2), r"header .*\ba\b"),
        (header(ARCH, tensors=[(b"a", (1,), F32, 7)]) + bytes(99), r"\b7 bytes.*\b32\b"),
        (
            header(ARCH, tensors=[(b"a", (9,), F32, 0), (b"b", (1,), F32, 32)]) + bytes(99),
            r"\b32 bytes.*\b32\b",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_hostile_headers_end_in_a_message(content, named, tmp_path):
    file = tmp_path / "m.gguf"
    file.write_bytes(content)
    refused(rf"m\.gguf.*{named}", file)


@pytest.mark.parametrize(
    ("further", "named"),
    [
        ({"split__count": 3}, "split"),
        ({"llama__expert_count": 10**9}, "expert_count"),
        ({"llama__rope__scaling__type": "linear"}, "rope"),
        ({"general__file_type": [15]}, "TypeError"),
    ],
)
def test_files_that_would_be_misread_are_refused(further, named, tmp_path):
    file = write(tmp_path / "m.gguf", make_tiny("llama", byte_level()), "F32", **further)
    refused(named, file)


def changed(file, old, new):
    content = file.read_bytes()
    assert content.count(old)
    file.write_bytes(content.replace(old, new))


ARCHITECTURE = b"general.architecture" + struct.pack("<I", 8)
LAYERS = b"llama.block_count" + struct.pack("<I", 4)


@pytest.mark.parametrize(
    ("old", "new", "named"),
    [
        *(
            (ARCHITECTURE + text(b"llama"), ARCHITECTURE + text(name.encode()), f"'{name}'")
            for name in ("nosuch", "qwen35", "qwen35moe")
        ),
        (b"output_norm.weight", b"rope_freqs.weights", "rope_freqs"),
        (LAYERS + struct.pack("<I", 2), LAYERS + struct.pack("<I", 2**31), "block_count"),
        (b"blk.1.attn_q.weight", b"blk.7.attn_q.weight", "q_proj"),
    ],
)
def test_what_is_not_read_as_it_is_meant_is_named(file, old, new, named):
    changed(file, old, new)
    refused(named, file)


def set_number(file, key, number):
    key += struct.pack("<I", 4)
    content = file.read_bytes()
    place = content.index(key) + len(key)
    file.write_bytes(content[:place] + struct.pack("<I", number) + content[place + 4 :])


@pytest.mark.parametrize(
    ("key", "number", "words"),
    [
        *((b"block_count", count, r"\b63,392 numbers.*\b\d\d,\d{3}\b") for count in (0, 1)),
        *((b"rope.dimension_count", length, "configuration") for length in (0, 2**31)),
    ],
)
def test_wrong_sizes_are_refused_and_no_other_file_is_named(file, key, number, words):
    set_number(file, b"llama." + key, number)
    assert "config.json" not in refused(words, file)


def test_an_adapter_of_a_file_is_merged_into_it(file, tmp_path):
    pytest.importorskip("peft")
    base = load(file)
    wrapped = low_rank(base.hf, 2, seed=0)
    for key, parameter in wrapped.named_parameters():
        if "lora_B" in key:
            torch.nn.init.normal_(parameter)
    folder = tmp_path / "adapter"
    folder.mkdir()
    save_adapter(wrapped, folder, Base(name=str(file), checksum=find(file).checksum()))
    merged = load(folder)
    torch.testing.assert_close(merged.hf(IDS).logits, wrapped.eval()(IDS).logits)
    assert merged.source["base"] == str(file)
    set_number(file, b"tokenizer.ggml.eos_token_id", 1)  # another file
    refused("--base", folder)


@settings(
    max_examples=60, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(data=st.data())
def test_damaged_headers_are_read_or_refused(written, tmp_path, data):
    content = bytearray(written[1].read_bytes())
    start = data.draw(st.integers(0, 24_000))
    if data.draw(st.booleans()):
        content = content[:start]
    else:
        content[start : start + 8] = data.draw(st.binary(min_size=1, max_size=8))
    file = tmp_path / "m.gguf"
    file.write_bytes(content)
    try:
        found = FORMAT.read("m", file, allow_pickle=False)
    except UserError:
        return
    assert all(np.prod(tensor.shape) > 0 for tensor in found.stored.values())


def test_a_turn_ends_where_the_file_says(tmp_path):
    model = make_tiny("llama", byte_level())
    other = {"tokenizer__ggml__eot_token_id": 9, "tokenizer__ggml__eom_token_id": 11}
    loaded = load(write(tmp_path / "m.gguf", model, **other))
    assert loaded.end_tokens == sorted([model.tokenizer.eos_token_id, 9, 11])


def test_the_files_own_name_for_its_mixture_of_types_is_given(tmp_path):
    model = make_tiny("llama", byte_level())
    for file_type, name in ((15, "Q4_K_M"), (1, "Q5_0"), (1024, "Q5_0"), (999, "Q5_0")):
        file = write(tmp_path / f"{file_type}.gguf", model, "Q5_0", general__file_type=file_type)
        assert FORMAT.read("m", file, allow_pickle=False).packed == name
    loaded = load(write(tmp_path / "m.gguf", model, "Q4_1"), dequantize=True)  # as always
    assert torch.equal(loaded.hf(IDS).logits, model.hf(IDS).logits)
    assert loaded.source["dequantized"] == "Q4_1"


def test_settings_of_other_types_end_in_own_words(tmp_path):
    model = make_tiny("llama", byte_level())
    file = write(tmp_path / "m.gguf", model, "F32", llama__rope__dimension_sections=[1, 2])
    changed(file, b"llama.attention.head_count_kv", b"lfm2x.attention.head_count_kv")
    changed(file, ARCHITECTURE + text(b"llama"), ARCHITECTURE + text(b"lfm2x"))
    assert "iterable" not in refused(r"architecture 'lfm2x'.*whole GGUF", file)


def test_a_template_is_bounded(tmp_path):
    model = replace(make_tiny("llama", byte_level()), tokenizer=deepcopy(byte_level()))
    model.tokenizer.chat_template += " " * 300_000
    refused(r"template of 300,\d{3} characters", write(tmp_path / "m.gguf", model))


def test_the_configuration_and_names_are_those_that_transformers_reads(written):
    """Its own reader is given the whole file, and its names are looked for in every module."""
    model, file = written
    header = header_of(file)
    assert _settings(header) == load_gguf_checkpoint(str(file))["config"]
    processor = TensorProcessor(config=model.hf.config.to_dict())
    for part in (model.hf, model.hf.model):  # some files hold a model without its head
        own, theirs = (
            {key: name for key, name in names.items() if key in header.tensors}
            for names in (_names(part, processor), get_gguf_hf_weights_map(part, processor))
        )
        assert own == theirs and len(own) >= len(header.tensors) - 1


def test_lists_about_the_file_are_left_out_but_no_setting_that_no_file_holds(written):
    header = header_of(written[1])

    def read(**more):
        settings = {key.replace("__", "."): value for key, value in more.items()}
        return _settings(replace(header, settings={**header.settings, **settings}))

    numbers = {"llama__rope__factors": [2**40, 3], "llama__scales": [1.1, 1e300]}
    assert read(general__tags=[], **numbers) == _settings(header)
    for value in ([], [1, 2.5], 2**63):
        with pytest.raises((ValueError, struct.error)):
            read(llama__feed_forward_length=value)


def test_embeddings_may_outnumber_tokens(tmp_path):
    model = make_tiny("llama", byte_level())
    model.hf.resize_token_embeddings(len(model.tokenizer) + 7)
    loaded = load(write(tmp_path / "m.gguf", model, "F32"))
    assert torch.equal(loaded.hf(IDS).logits, model.hf(IDS).logits)

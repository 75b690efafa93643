"""Adapters are merged as the formula has it, from whole weights, into a base that is checked."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

import interp
from interp.errors import UserError
from interp.models.adapters import BASE, SETTINGS, WEIGHTS, Base
from interp.models.checkpoint import folder_checksum
from tests.models.conftest import configure as configure_base
from tests.models.conftest import in_fp8
from tests.models.conftest import rewrite as rewrite_base
from tests.support.tiny import make_tiny, save
from tests.support.tokenizers import byte_level

peft = pytest.importorskip("peft")

RANK = 3


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder with a base, "base", and one with an adapter whose weights are random, "adapter"."""
    from interp.models.adapters import low_rank, save_adapter

    folder = tmp_path_factory.mktemp("adapters")
    model = make_tiny("llama", byte_level())
    save(model, folder / "base")
    wrapped = low_rank(model.hf, RANK, seed=1)
    with torch.no_grad():
        for name, weight in wrapped.named_parameters():
            if "lora_B" in name:
                weight.normal_(std=0.3)
    (folder / "adapter").mkdir()
    checksum = folder_checksum("base", folder / "base", allow_pickle=False)
    base = Base(name=str(folder / "base"), checksum=checksum)
    save_adapter(wrapped, folder / "adapter", base)
    return folder


@pytest.fixture
def adapter(trained, tmp_path):
    """A copy of the adapter, which a test may damage."""
    shutil.copytree(trained / "adapter", tmp_path / "adapter")
    return tmp_path / "adapter"


def load(folder, **options):
    return interp.load_model(str(folder), device="cpu", **options)


def configure(folder, **settings):
    file = folder / SETTINGS
    file.write_text(json.dumps(json.loads(file.read_text()) | settings))


def rewrite(folder, change):
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def test_an_adapter_is_merged_as_the_formula_has_it(trained):
    base, model = load(trained / "base"), load(trained / "adapter")
    changes = load_file(trained / "adapter" / WEIGHTS)
    before, after = base.hf.state_dict(), model.hf.state_dict()
    assert list(before) == list(after)
    changed = {key.removeprefix("base_model.model.").partition(".lora_")[0] for key in changes}
    assert len(changed) == 7 * base.hf.config.num_hidden_layers
    for name in before:
        path = name.removesuffix(".weight")
        expected = before[name]
        if path in changed:
            a, b = (changes[f"base_model.model.{path}.lora_{x}.weight"] for x in "AB")
            expected = expected + 2 * b @ a
            assert not torch.allclose(after[name], before[name], atol=1e-2)
        torch.testing.assert_close(after[name], expected)


def test_a_merged_model_answers_as_peft_does_without_merging(trained):
    model, base = load(trained / "adapter"), load(trained / "base")
    beside = peft.tuners.lora.LoraModel(
        base.hf, peft.LoraConfig.from_pretrained(trained / "adapter"), "default"
    )
    weights = load_file(trained / "adapter" / WEIGHTS)
    stripped = {key.removeprefix("base_model."): tensor for key, tensor in weights.items()}
    assert not peft.set_peft_model_state_dict(beside, stripped).unexpected_keys
    tokens = torch.arange(5, 25)[None]
    with torch.no_grad():
        torch.testing.assert_close(model.hf(tokens).logits, beside.model(tokens).logits)


def test_in_float64_it_is_the_formula_to_the_last_digits(trained):
    base, model = (load(trained / name, dtype="float64") for name in ("base", "adapter"))
    name = "model.layers.1.self_attn.q_proj"
    stored = load_file(trained / "adapter" / WEIGHTS)
    a, b = (stored[f"base_model.model.{name}.lora_{x}.weight"].double() for x in "AB")
    before, after = (own.hf.get_submodule(name).weight.detach() for own in (base, model))
    assert after.dtype == torch.float64
    assert (after - (before + 2 * b @ a)).abs().max() < 1e-10


def test_its_identity_is_that_of_both(trained, adapter):
    model, base = load(trained / "adapter"), load(trained / "base")
    assert model.source["kind"] == "adapter" and model.name == "adapter"
    assert model.source["base_checksum"] == folder_checksum(
        "base", trained / "base", allow_pickle=False
    )
    assert model.identity != base.identity
    rewrite(adapter, lambda weights: next(iter(weights.values())).mul_(1.01))
    other = load(adapter)
    assert other.source["adapter"] != model.source["adapter"]
    assert other.source["base_checksum"] == model.source["base_checksum"]
    assert other.identity != model.identity


def test_the_scale_follows_the_settings(adapter, trained):
    configure(adapter, lora_alpha=9, use_rslora=True)
    name = "model.layers.0.mlp.up_proj.weight"
    before = load(trained / "base").hf.state_dict()[name]
    weights = load_file(adapter / WEIGHTS)
    a, b = (weights[f"base_model.model.{name[:-7]}.lora_{x}.weight"] for x in "AB")
    torch.testing.assert_close(load(adapter).hf.state_dict()[name], before + 9 / RANK**0.5 * b @ a)


def test_a_base_that_changed_or_is_not_on_record_is_not_taken(adapter, trained, tmp_path):
    shutil.copytree(trained / "base", tmp_path / "moved")
    assert load(adapter, base=str(tmp_path / "moved")).name == "adapter"
    state = load_file(tmp_path / "moved" / "model.safetensors")
    next(iter(state.values())).add_(1)
    save_file(state, tmp_path / "moved" / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(UserError, match=r"/moved.*/adapter.*--base"):
        load(adapter, base=str(tmp_path / "moved"))
    (adapter / BASE).unlink()
    with pytest.raises(UserError, match=r"/adapter.*'\S*base'.*--base"):
        load(adapter)
    assert load(adapter, base=str(trained / "base"))
    configure(adapter, base_model_name_or_path=None)
    with pytest.raises(UserError, match=r"/adapter[^']*--base"):
        load(adapter)


def test_a_base_on_the_hub_is_named_by_the_user(adapter):
    base = Base(name="org/model", checksum=None)
    (adapter / BASE).write_text(base.model_dump_json())
    with pytest.raises(UserError, match=r"/adapter.*'org/model'.*--base"):
        load(adapter)


def test_a_base_is_no_adapter_and_no_classifier(adapter, trained, tmp_path):
    from tests.support.other_kinds import classifier

    (adapter / BASE).unlink()
    with pytest.raises(UserError, match=r"base \S+/adapter.*adapter \S+/adapter"):
        load(adapter, base=str(trained / "adapter"))
    encoder = classifier("bert")
    save(encoder, tmp_path / "encoder")
    with pytest.raises(UserError, match=r"base \S+/encoder.*sequence classifier"):
        load(adapter, base=str(tmp_path / "encoder"))


def test_no_code_is_run_and_nothing_merged_into_fewer_bits(adapter):
    with pytest.raises(UserError, match=r"/adapter.*trust_remote_code"):
        load(adapter, trust_remote_code=True)
    for option, value in (("quantization", "8bit"), ("tensor_parallel", 2)):
        with pytest.raises(UserError, match=rf"/adapter.*\b{option}$"):
            load(adapter, **{option: value})


def without(part):
    return lambda weights: [weights.pop(key) for key in list(weights) if part in key]


def renamed(weights):
    for key in [key for key in weights if "layers.1.mlp.up_proj" in key]:
        weights[key.replace("layers.1", "layers.7")] = weights.pop(key)


def of_rank_one(weights):
    for key in weights:
        weights[key] = (weights[key][:1] if "lora_A" in key else weights[key][:, :1]).clone()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            without("layers.1.mlp.up_proj.lora_B"),
            r"adapter_model\.safetensors.*model\.layers\.1\.mlp\.up_proj",
        ),
        (without("layers.1"), r"down_proj\.lora_A\.weight.*\b11\b"),
        (renamed, r"up_proj\.lora_A\.weight, \S+up_proj\.lora_B\.weight;"),
        (of_rank_one, r"\(1, 64\).*lora_A.*lora_B.*rank 3\b"),
        (lambda w: w.update({"base_model.model.lm_head.weight": torch.ones(3, 3)}), "lm_head"),
        (
            lambda w: w.update(
                {
                    f"base_model.model.model.norm.lora_{x}.weight": torch.ones(*shape)
                    for x, shape in (("A", (RANK, 4)), ("B", (4, RANK)))
                }
            ),
            r"model\.norm\.lora_A\.weight",
        ),
        (lambda w: next(iter(w.values())).fill_(float("nan")), "NaN"),
    ],
)
def test_weights_that_are_not_those_of_the_settings_are_refused(adapter, damage, message):
    rewrite(adapter, damage)
    with pytest.raises(UserError, match=message):
        load(adapter)


def test_tensors_of_other_sizes_are_refused(adapter):
    def wider(weights):
        key = next(key for key in weights if "lora_A" in key)
        weights[key] = torch.ones(RANK, weights[key].shape[1] + 1)

    rewrite(adapter, wider)
    with pytest.raises(UserError, match="size mismatch"):
        load(adapter)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_dora": True}, r"use_dora.*True; .*LoRA"),
        ({"modules_to_save": ["lm_head"]}, "sets modules_to_save"),
        ({"rank_pattern": {"(a+)+$": 2}}, "sets rank_pattern"),
        ({"auto_mapping": {"parent_library": "x"}}, None),
        ({"target_modules": r"(.*a)+"}, r"target_modules.*'\(\.\*a\)\+'.*LoRA"),
        ({"peft_type": "IA3"}, "peft_type"),
        ({"r": 10**9}, r"\(3, 64\).*rank 1000000000\b"),
        ({"lora_alpha": 0}, "lora_alpha"),
        ({"bias": "all"}, r"bias.*'all'.*'none'"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
    ],
)
def test_settings_beyond_plain_lora_are_refused(adapter, settings, message):
    configure(adapter, **settings)
    if message is None:
        assert load(adapter)
        return
    with pytest.raises(UserError, match=message):
        load(adapter)


def test_files_that_are_missing_or_something_else_are_refused(adapter, trained):
    (adapter / WEIGHTS).rename(adapter / "adapter_model.bin")
    with pytest.raises(UserError, match=rf"/adapter.*\b{WEIGHTS}\b"):
        load(adapter)
    shutil.copy(trained / "base" / "config.json", adapter)
    with pytest.raises(UserError, match=r"config\.json.*adapter_config\.json"):
        load(adapter)


def test_a_change_of_tied_embeddings_is_refused(tmp_path):
    model = make_tiny("llama", byte_level())
    model.hf.config.tie_word_embeddings = True
    model.hf.tie_weights()
    save(model, tmp_path / "base")
    (tmp_path / "adapter").mkdir()
    rows, columns = model.hf.lm_head.weight.shape
    name = "base_model.model.lm_head.lora_{}.weight"
    weights = {name.format("A"): torch.ones(2, columns), name.format("B"): torch.ones(rows, 2)}
    save_file(weights, tmp_path / "adapter" / WEIGHTS)
    settings = {"peft_type": "LORA", "r": 2, "lora_alpha": 4, "target_modules": ["lm_head"]}
    (tmp_path / "adapter" / SETTINGS).write_text(json.dumps(settings))
    with pytest.raises(UserError, match=r"/adapter.*embeddings.*unembedding"):
        load(tmp_path / "adapter", base=str(tmp_path / "base"))


def test_adapters_of_the_hub_are_not_loaded(monkeypatch, adapter):
    monkeypatch.setattr("interp.models.find.resolve", on_the_hub)
    monkeypatch.setattr(
        "interp.models.find.find_adapter_config_file", lambda name, **_: str(adapter / SETTINGS)
    )
    with pytest.raises(UserError, match=r"org/adapter.*adapter_config\.json.*--model"):
        interp.load_model("org/adapter", device="cpu")


def on_the_hub(name, revision):
    return name, {"kind": "hub", "name": name, "revision": "main"}


def test_an_adapter_is_merged_into_a_base_that_is_dequantized(trained, adapter, tmp_path):
    base = shutil.copytree(trained / "base", tmp_path / "base")
    rewrite_base(base, in_fp8)
    fp8 = {"quant_method": "fp8", "weight_block_size": [16, 16]}
    configure_base(base, quantization_config=fp8)
    (adapter / BASE).unlink()
    with pytest.raises(UserError, match=r"quantized \(fp8\).*--dequantize"):
        load(adapter, base=str(base))
    model = load(adapter, base=str(base), dequantize=True)
    merged = load(base, dequantize=True).hf.state_dict()
    changes = load_file(adapter / WEIGHTS)
    path = "model.layers.1.mlp.up_proj"
    a, b = (changes[f"base_model.model.{path}.lora_{x}.weight"] for x in "AB")
    weight = model.hf.state_dict()[f"{path}.weight"]
    torch.testing.assert_close(weight, merged[f"{path}.weight"] + 2 * b @ a)

"""Adapters are merged as the formula has it, from whole weights, into a base that is checked."""

import json
import shutil

import pytest
import torch
from safetensors.torch import load_file, save_file

from interp.errors import UserError
from interp.jobs import Job
from interp.measurements.specs import Evaluate
from interp.models.adapters import BASE, SETTINGS, WEIGHTS, Base
from interp.models.formats import FOLDER
from interp.models.loading import Loading
from interp.models.names import ModelChoice
from tests.models.conftest import FP8, IDS, configure, in_fp8, load, refused
from tests.models.conftest import rewrite as rewrite_base
from tests.support.other_kinds import classifier
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
    checksum = FOLDER.checksum("base", folder / "base", allow_pickle=False)
    base = Base(name=str(folder / "base"), checksum=checksum)
    save_adapter(wrapped, folder / "adapter", base)
    return folder


@pytest.fixture
def adapter(trained, tmp_path):
    """A copy of the adapter, which a test may damage."""
    shutil.copytree(trained / "adapter", tmp_path / "adapter")
    return tmp_path / "adapter"


def rewrite(folder, change):
    weights = load_file(folder / WEIGHTS)
    change(weights)
    save_file(weights, folder / WEIGHTS, metadata={"format": "pt"})


def change_of(folder, path):
    """B A of a layer."""
    weights = load_file(folder / WEIGHTS)
    a, b = (weights[f"base_model.model.{path}.lora_{x}.weight"] for x in "AB")
    return b.double() @ a.double()


def test_an_adapter_is_merged_as_the_formula_has_it(trained):
    for dtype, close in (("float32", 1e-5), ("float64", 1e-10)):
        before, after = (
            load(trained / name, dtype=dtype).hf.state_dict() for name in ("base", "adapter")
        )
        assert list(before) == list(after)
        keys = load_file(trained / "adapter" / WEIGHTS)
        changed = {key.removeprefix("base_model.model.").partition(".lora_")[0] for key in keys}
        assert len(changed) == 7 * 2
        for name in before:
            path = name.removesuffix(".weight")
            expected = before[name]
            if path in changed:
                expected = expected + 2 * change_of(trained / "adapter", path)
                assert not torch.allclose(after[name], before[name], atol=1e-2)
            assert str(after[name].dtype) == f"torch.{dtype}"
            assert (after[name] - expected).abs().max() < close


def test_a_merged_model_answers_as_peft_does_without_merging(trained):
    model, base = load(trained / "adapter"), load(trained / "base")
    beside = peft.tuners.lora.LoraModel(
        base.hf, peft.LoraConfig.from_pretrained(trained / "adapter"), "default"
    )
    weights = load_file(trained / "adapter" / WEIGHTS)
    stripped = {key.removeprefix("base_model."): tensor for key, tensor in weights.items()}
    assert not peft.set_peft_model_state_dict(beside, stripped).unexpected_keys
    with torch.no_grad():
        torch.testing.assert_close(model.hf(IDS).logits, beside.model(IDS).logits)


def test_its_identity_is_that_of_both(trained, adapter):
    model, base = load(trained / "adapter"), load(trained / "base")
    assert model.source["kind"] == "adapter" and model.name == "adapter"
    assert model.source["base_checksum"] == FOLDER.checksum(
        "base", trained / "base", allow_pickle=False
    )
    assert model.identity != base.identity
    rewrite(adapter, lambda weights: next(iter(weights.values())).mul_(1.01))
    other = load(adapter)
    assert other.source["adapter"] != model.source["adapter"]
    assert other.source["base_checksum"] == model.source["base_checksum"]
    assert other.identity != model.identity


def test_the_scale_follows_the_settings(adapter, trained):
    configure(adapter, SETTINGS, lora_alpha=9, use_rslora=True)
    path = "model.layers.0.mlp.up_proj"
    before, after = (load(own).hf.state_dict() for own in (trained / "base", adapter))
    expected = before[f"{path}.weight"] + 9 / RANK**0.5 * change_of(adapter, path)
    torch.testing.assert_close(after[f"{path}.weight"].double(), expected)


def test_a_base_that_changed_or_is_not_on_record_is_not_taken(adapter, trained, tmp_path):
    shutil.copytree(trained / "base", tmp_path / "moved")
    assert load(adapter, base=str(tmp_path / "moved")).name == "adapter"
    rewrite_base(tmp_path / "moved", lambda own: {key: value + 1 for key, value in own.items()})
    refused(r"/moved.*/adapter.*--base", adapter, base=str(tmp_path / "moved"))
    (adapter / BASE).unlink()
    refused(r"/adapter.*'\S*base'.*--base", adapter)
    assert load(adapter, base=str(trained / "base"))
    configure(adapter, SETTINGS, base_model_name_or_path=None)
    refused(r"/adapter[^']*--base", adapter)
    base = Base(name="org/model", checksum=None)
    (adapter / BASE).write_text(base.model_dump_json())
    refused(r"/adapter.*'org/model'.*--base", adapter)
    refused(r"base \S+/adapter.*adapter \S+/adapter", adapter, base=str(trained / "adapter"))
    save(classifier("bert"), tmp_path / "encoder")
    refused(r"base \S+/encoder.*sequence classifier", adapter, base=str(tmp_path / "encoder"))


def test_a_base_into_which_nothing_is_merged_is_refused(adapter, trained):
    base = str(trained / "base")
    refused(r"base \S+/base, but no model is an adapter", trained / "base", base=base)
    named = (ModelChoice(place=base), ModelChoice(place=str(adapter)))
    job = Job(what=Evaluate(), models=named, loading=Loading(base=base))
    assert list(job.found_models()) == ["base", "adapter"]
    with pytest.raises(UserError, match="no model is an adapter"):
        job.found_models(named[:1])


def test_no_code_is_run_and_nothing_merged_into_fewer_bits(adapter):
    refused(r"/adapter.*trust_remote_code", adapter, trust_remote_code=True)
    for option, value in (("quantization", "8bit"), ("tensor_parallel", 2)):
        refused(rf"/adapter.*\b{option}$", adapter, **{option: value})


def without(part):
    return lambda weights: [weights.pop(key) for key in list(weights) if part in key]


def renamed(weights):
    for key in [key for key in weights if "layers.1.mlp.up_proj" in key]:
        weights[key.replace("layers.1", "layers.7")] = weights.pop(key)


def wider(weights):
    key = next(key for key in weights if "lora_A" in key)
    weights[key] = torch.ones(RANK, weights[key].shape[1] + 1)


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
        (wider, "size mismatch"),
    ],
)
def test_weights_that_are_not_those_of_the_settings_are_refused(adapter, damage, message):
    rewrite(adapter, damage)
    refused(message, adapter)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"use_dora": True}, r"use_dora.*True; .*LoRA"),
        ({"modules_to_save": ["lm_head"]}, "sets modules_to_save"),
        ({"rank_pattern": {"(a+)+$": 2}}, "sets rank_pattern"),
        ({"target_modules": r"(.*a)+"}, r"target_modules.*'\(\.\*a\)\+'.*LoRA"),
        ({"peft_type": "IA3"}, "peft_type"),
        ({"r": 10**9}, r"\(3, 64\).*rank 1000000000\b"),
        ({"lora_alpha": 0}, "lora_alpha"),
        ({"bias": "all"}, r"bias.*'all'.*'none'"),
        ({"init_lora_weights": "pissa"}, "init_lora_weights"),
    ],
)
def test_settings_beyond_plain_lora_are_refused(adapter, settings, message):
    configure(adapter, SETTINGS, auto_mapping={"parent_library": "x"})
    assert load(adapter)
    configure(adapter, SETTINGS, **settings)
    refused(message, adapter)


def test_a_missing_setting_is_named(adapter):
    settings = json.loads((adapter / SETTINGS).read_text())
    del settings["r"]
    (adapter / SETTINGS).write_text(json.dumps(settings))
    refused(rf"{SETTINGS}: r: (?!.*http)", adapter)


def test_files_that_are_missing_or_something_else_are_refused(adapter, trained):
    (adapter / WEIGHTS).rename(adapter / "adapter_model.bin")
    refused(rf"/adapter.*\b{WEIGHTS}\b", adapter)
    shutil.copy(trained / "base" / "config.json", adapter)
    refused(r"config\.json.*adapter_config\.json", adapter)


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
    refused(r"/adapter.*embeddings.*unembedding", tmp_path / "adapter", base=str(tmp_path / "base"))


def test_adapters_of_the_hub_are_not_loaded(monkeypatch, adapter):
    source = {"kind": "hub", "name": "org/adapter", "revision": "main"}
    monkeypatch.setattr("interp.models.find.resolve", lambda name, _: (name, source))
    monkeypatch.setattr(
        "interp.models.find.find_adapter_config_file", lambda name, **_: str(adapter / SETTINGS)
    )
    refused(r"org/adapter.*adapter_config\.json.*--model", "org/adapter")


def test_an_adapter_is_merged_into_a_base_that_is_dequantized(trained, adapter, tmp_path):
    base = shutil.copytree(trained / "base", tmp_path / "base")
    rewrite_base(base, in_fp8)
    configure(base, quantization_config=FP8)
    (adapter / BASE).unlink()
    refused(r"quantized \(fp8\).*--dequantize", adapter, base=str(base))
    model = load(adapter, base=str(base), dequantize=True)
    merged = load(base, dequantize=True).hf.state_dict()
    path = "model.layers.1.mlp.up_proj"
    weight = model.hf.state_dict()[f"{path}.weight"]
    expected = merged[f"{path}.weight"] + 2 * change_of(adapter, path)
    torch.testing.assert_close(weight.double(), expected)


def test_in_float64_it_is_the_formula_to_the_last_digits(trained):
    base, model = (load(trained / name, dtype="float64") for name in ("base", "adapter"))
    name = "model.layers.1.self_attn.q_proj"
    stored = load_file(trained / "adapter" / WEIGHTS)
    a, b = (stored[f"base_model.model.{name}.lora_{x}.weight"].double() for x in "AB")
    before, after = (own.hf.get_submodule(name).weight.detach() for own in (base, model))
    assert after.dtype == torch.float64
    assert (after - (before + 2 * b @ a)).abs().max() < 1e-10

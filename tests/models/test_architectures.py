import copy
from dataclasses import replace
from importlib.metadata import EntryPoint

import pytest
import torch
from torch import nn

import interp
from interp.errors import UserError
from interp.measurements.specs import SoftScore
from interp.measuring.core import bind
from interp.models import architectures, measured_layers
from interp.models.architectures import anatomy_of
from interp.models.families.modules import ARCHITECTURES, ENCODERS
from interp.plugins import ARCHITECTURES as PLUGINS
from interp_probes.specs import Familiarity
from tests.support.other_kinds import CLASSIFIERS, classifier
from tests.support.other_models import SHAPES
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level
from tests.support.unmapped import UNMAPPED, unmapped_model


def test_every_architecture_has_a_tiny_model():
    assert set(ENCODERS) <= set(CLASSIFIERS)
    assert set(CONFIGS) <= set(ARCHITECTURES) <= {*CONFIGS, *SHAPES}


def without_attention(hf):
    hf.model.layers[1].self_attn = None


def with_one_layer(hf):
    hf.model.layers = nn.ModuleList(list(hf.model.layers)[:1])


def pooling_all(hf):
    hf.config.classifier_pooling = "mean"


@pytest.mark.parametrize(
    ("kind", "changed", "words"),
    [
        ("llama", without_attention, r"'llama'.*--methods input_gradient"),
        ("llama", with_one_layer, r"'llama'.*--methods input_gradient"),
        ("modernbert", pooling_all, r"'modernbert'.*'mean'"),
    ],
)
def test_a_model_unlike_its_family_is_refused(kind, changed, words):
    model = make_tiny(kind, byte_level()) if kind == "llama" else classifier(kind)
    hf = copy.deepcopy(model.hf)
    assert anatomy_of(hf).names.layers == "model.layers"
    changed(hf)
    with pytest.raises(UserError, match=words):
        anatomy_of(hf)


def raising(error):
    def raised(*given, **named):
        raise error

    return raised


def unlisted():
    hf = make_tiny("llama", byte_level()).hf
    hf.config.model_type = "brand_new"
    return hf


@pytest.mark.parametrize(
    ("error", "told"),
    [
        *((kind("own code"), UserError) for kind in (IndexError, RuntimeError)),
        (MemoryError("full"), MemoryError),
        (torch.OutOfMemoryError("full"), torch.OutOfMemoryError),
    ],
)
def test_what_a_models_own_code_raises_is_told_and_its_names_are_not_trusted(
    monkeypatch, error, told
):
    hf = unlisted()
    without_attention(hf)
    monkeypatch.setattr(hf.model, "forward", raising(error))
    words = r"'brand_new'.*\bown code\b" if told is UserError else "full"
    with pytest.raises(told, match=words):
        anatomy_of(hf)


def test_gradients_that_cannot_be_computed_leave_the_names_and_faults_are_shown(monkeypatch):
    hf = unlisted()
    assert anatomy_of(hf).measured
    with monkeypatch.context() as patch:
        patch.setattr(torch.autograd, "grad", raising(NotImplementedError("no derivative")))
        assert not anatomy_of(hf).measured
    monkeypatch.setattr(measured_layers, "smallest_sum", raising(KeyError("a fault")))
    with pytest.raises(KeyError):
        anatomy_of(hf)


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_layers_of_an_unknown_model_type_are_those_of_its_family(kind):
    listed = make_tiny(kind, byte_level())
    hf = make_tiny(kind, byte_level()).hf
    hf.config.model_type = "brand_new"
    found = anatomy_of(hf.eval())
    paths = {module: path for path, module in hf.named_modules()}
    known = {module: path for path, module in listed.hf.named_modules()}
    assert found.measured and not listed.anatomy.measured
    assert paths[found.final_norm] == known[listed.anatomy.final_norm]
    for layer, own in zip(found.layers, listed.layers, strict=True):
        assert paths[layer.module] == known[own.module]
        assert [paths[part.module] for part in layer.mixer] == [known[p.module] for p in own.mixer]
        assert [paths[part.module] for part in layer.mlp] == [known[p.module] for p in own.mlp]
        assert {part.scale for part in layer.mixer} == {listed.residual_scale}
        assert (layer.between is None) == (own.between is None)
        if layer.between is not None:
            assert paths[layer.between.module] == known[own.between.module]


@pytest.fixture
def another_package(monkeypatch):
    """Install entry points, by model type, of another package."""

    def install(**values):
        points = {name: EntryPoint(name, value, PLUGINS) for name, value in values.items()}
        monkeypatch.setattr(architectures, "plugins", lambda group: points)

    return install


NEW_FAMILY = replace(
    ARCHITECTURES["gpt2"], residual_scale=lambda config: 0.5, logit_scale=lambda config: 3.0
)


def test_another_package_adds_a_family(another_package):
    model = make_tiny("gpt2", byte_level())
    model.hf.config.model_type = "brand_new"
    assert model.logit_scale == 1.0
    another_package(brand_new=f"{__name__}:NEW_FAMILY", llama=f"{__name__}:NEW_FAMILY")
    packaged = tiny_model("llama")  # which it does not replace
    assert (packaged.family_modules, anatomy_of(packaged.hf).names.layers) == ((), "model.layers")
    assert anatomy_of(model.hf).names.heads_out == NEW_FAMILY.heads_out
    assert model.is_mapped
    assert (model.residual_scale, model.logit_scale, model.logit_soft_cap) == (0.5, 3.0, None)
    assert model.family_modules == (__name__,)
    encoder = copy.deepcopy(classifier("bert").hf)
    encoder.config.model_type = "brand_new"
    with pytest.raises(UserError, match=r"'brand_new'.*--methods input_gradient"):
        anatomy_of(encoder)


@pytest.mark.parametrize("value", ["no_such_package:THING", f"{__name__}:PLUGINS"])
def test_a_family_that_is_none_is_refused(another_package, value):
    another_package(brand_new=value)
    hf = make_tiny("gpt2", byte_level()).hf
    hf.config.model_type = "brand_new"
    with pytest.raises(UserError, match=r"'brand_new'.*interp\.architectures"):
        anatomy_of(hf)


@pytest.mark.quick(3)
@pytest.mark.parametrize("kind", ["falcon", "gemma3", "mamba", "opt"])
def test_families_that_are_not_listed_have_familiarity_and_perplexity(kind, prompts):
    model, few = unmapped_model(kind), prompts[:2]
    assert len(bind(SoftScore(), model)(few)["soft_answers"]) == 2
    rows = bind(Familiarity(), model)(few)["familiarity"]
    assert all(0 < row["familiarity"] < 1 for row in rows)
    if kind == "gemma3":  # which also reads images
        assert model.architecture.layers == "model.language_model.layers"
        assert model.context_length == 512
        assert len(model.layers) == 2


def test_padding_is_left_to_those_that_can_hide_it():
    padded = {kind for kind in UNMAPPED if unmapped_model(kind).allows_padding}
    without_positions = {"mpt"}
    recurrent = {"mamba", "mamba2", "recurrent_gemma", "lfm2", "jamba", "qwen3_next"}
    assert padded == set(UNMAPPED) - without_positions - recurrent


def test_attention_that_cannot_be_read_is_refused(prompts):
    flexible = make_tiny("llama", byte_level(), attn="flex_attention")
    without = r"tiny mamba2?\b.*--methods input_gradient.*--attn-implementation eager"
    for model, words in (
        (flexible, r"tiny llama \(flex_attention\).*--attn-implementation sdpa"),
        (unmapped_model("mamba"), without),
        (unmapped_model("mamba2"), without),
    ):
        with pytest.raises(UserError, match=words):
            interp.attribute(model, prompts, methods=["attention"])

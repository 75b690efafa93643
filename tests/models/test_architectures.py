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
from interp.models.families.modules import ARCHITECTURES
from interp.plugins import ARCHITECTURES as PLUGINS
from interp.reading.tokens import tokenize
from interp_probes.specs import Familiarity
from tests.support.other_kinds import classifier
from tests.support.other_models import SHAPES
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level
from tests.support.unmapped import UNMAPPED, unmapped_model


def test_every_architecture_has_a_tiny_model():
    assert set(CONFIGS) <= set(ARCHITECTURES) <= {*CONFIGS, *SHAPES}


@pytest.mark.parametrize("kind", CONFIGS)
def test_modules_are_where_the_map_says(kind):
    model = tiny_model(kind)
    assert not model.anatomy.measured
    assert len(model.layers) == model.hf.config.num_hidden_layers
    names = {type(layer.heads.module).__name__ for layer in model.layers}
    assert len(names) == 1
    assert "Attention" in names.pop()
    assert model.anatomy.final_norm is not None


def without_attention(hf):
    hf.model.layers[1].self_attn = None


def with_one_layer(hf):
    hf.model.layers = nn.ModuleList(list(hf.model.layers)[:1])


@pytest.mark.parametrize("changed", [without_attention, with_one_layer])
def test_a_model_without_the_modules_that_it_names_is_refused(changed):
    hf = make_tiny("llama", byte_level()).hf
    changed(hf)
    with pytest.raises(UserError, match=r"'llama'.*--methods input_gradient"):
        anatomy_of(hf)


def raising(error):
    def raised(*given, **named):
        raise error

    return raised


def unlisted():
    hf = make_tiny("llama", byte_level()).hf
    hf.config.model_type = "brand_new"
    return hf


@pytest.mark.parametrize("error", [IndexError("own code"), RuntimeError("own code")])
def test_what_a_models_own_code_raises_is_told_and_its_names_are_not_trusted(monkeypatch, error):
    hf = unlisted()
    without_attention(hf)
    monkeypatch.setattr(hf.model, "forward", raising(error))
    with pytest.raises(UserError, match=r"'brand_new'.*\bown code\b"):
        anatomy_of(hf)


def test_gradients_that_cannot_be_computed_leave_the_names(monkeypatch):
    hf = unlisted()
    assert anatomy_of(hf).measured
    monkeypatch.setattr(torch.autograd, "grad", raising(NotImplementedError("no derivative")))
    assert not anatomy_of(hf).measured


@pytest.mark.parametrize("error", [MemoryError(), torch.OutOfMemoryError("full")])
def test_memory_that_ends_says_nothing_about_a_model(monkeypatch, error):
    hf = unlisted()
    monkeypatch.setattr(hf.model, "forward", raising(error))
    with pytest.raises(type(error)):
        anatomy_of(hf)


def test_a_fault_of_the_search_for_layers_is_shown(monkeypatch):
    monkeypatch.setattr(measured_layers, "smallest_sum", raising(KeyError("a fault")))
    with pytest.raises(KeyError):
        anatomy_of(unlisted())


@pytest.mark.parametrize("kind", [kind for kind in CONFIGS if kind != "bloom"])
def test_the_layers_of_an_unknown_model_type_are_those_of_its_family(kind):
    listed = make_tiny(kind, byte_level())
    hf = make_tiny(kind, byte_level()).hf
    hf.config.model_type = "brand_new"
    found = anatomy_of(hf.eval())
    paths = {module: path for path, module in hf.named_modules()}
    known = {module: path for path, module in listed.hf.named_modules()}
    assert found.measured
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
    another_package(brand_new=f"{__name__}:NEW_FAMILY")
    assert anatomy_of(model.hf).names.heads_out == NEW_FAMILY.heads_out
    assert model.is_mapped
    assert (model.residual_scale, model.logit_scale, model.logit_soft_cap) == (0.5, 3.0, None)
    assert model.family_modules == (__name__,)
    encoder = copy.deepcopy(classifier("bert").hf)
    encoder.config.model_type = "brand_new"
    with pytest.raises(UserError, match=r"'brand_new'.*--methods input_gradient"):
        anatomy_of(encoder)


def test_the_packaged_families_cannot_be_replaced(another_package):
    another_package(llama=f"{__name__}:NEW_FAMILY")
    model = tiny_model("llama")
    assert not anatomy_of(model.hf).measured
    assert model.family_modules == ()


@pytest.mark.parametrize("value", ["no_such_package:THING", f"{__name__}:PLUGINS"])
def test_a_family_that_is_none_is_refused(another_package, value):
    another_package(brand_new=value)
    hf = make_tiny("gpt2", byte_level()).hf
    hf.config.model_type = "brand_new"
    with pytest.raises(UserError, match=r"'brand_new'.*interp\.architectures"):
        anatomy_of(hf)


def test_an_encoder_that_pools_all_tokens_is_refused():
    hf = copy.deepcopy(classifier("modernbert").hf)
    assert anatomy_of(hf).names.layers == "model.layers"
    hf.config.classifier_pooling = "mean"
    with pytest.raises(UserError, match=r"'modernbert'.*'mean'"):
        anatomy_of(hf)


KINDS = [*UNMAPPED, "gemma3"]
WITHOUT_ATTENTION = ("mamba", "mamba2")
TOLERANCE = {"rtol": 0, "atol": 1e-5}


def plain(model, prompt, **options):
    """transformers' own forward pass over one prompt."""
    return model.hf(input_ids=torch.tensor([prompt.token_ids]), use_cache=False, **options)


def scores_of(table, prompt, method):
    own = table[(table["prompt_id"] == prompt.prompt.id) & (table["method"] == method)]
    return torch.tensor(own.sort_values("position")["share"].to_numpy(dtype="float32"))


@pytest.mark.quick(5)
@pytest.mark.parametrize("kind", KINDS)
def test_probabilities(kind, prompts):
    model = unmapped_model(kind)
    answers = interp.evaluate(model, prompts).answers
    assert (answers["error"] == "").all()
    with torch.no_grad():
        expected = torch.stack(
            [plain(model, prompt).logits[0, -1].softmax(-1) for prompt in tokenize(model, prompts)]
        )
    assert answers["predicted_token_id"].tolist() == expected.argmax(-1).tolist()
    got = torch.tensor(answers["predicted_probability"].to_numpy(dtype="float32"))
    torch.testing.assert_close(got, expected.max(-1).values, **TOLERANCE)


@pytest.mark.quick(5)
@pytest.mark.parametrize("kind", KINDS)
def test_gradients(kind, prompts):
    model, few = unmapped_model(kind), prompts[:6]
    table = interp.attribute(
        model, few, methods=["input_gradient"], keep_tokens=True
    ).token_shares()
    for prompt in tokenize(model, few):
        ids = torch.tensor([prompt.token_ids])
        embeddings = model.hf.get_input_embeddings()(ids).detach().requires_grad_()
        logits = model.hf(inputs_embeds=embeddings, use_cache=False).logits[0, -1]
        logits.log_softmax(-1)[logits.argmax()].backward()
        norms = embeddings.grad[0].norm(dim=-1)
        got = scores_of(table, prompt, "input_gradient")
        torch.testing.assert_close(got, norms / norms.sum(), **TOLERANCE)


@pytest.mark.quick(5)
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in WITHOUT_ATTENTION])
def test_attention(kind, prompts):
    eager, model, few = unmapped_model(kind, attn="eager"), unmapped_model(kind), prompts[:6]
    table = interp.attribute(model, few, methods=["attention"], keep_tokens=True).token_shares()
    for prompt in tokenize(model, few):
        with torch.no_grad():
            layers = plain(eager, prompt, output_attentions=True).attentions
        rows = [weights[0, :, -1].mean(0) for weights in layers if weights is not None]
        torch.testing.assert_close(
            scores_of(table, prompt, "attention"), torch.stack(rows).mean(0), **TOLERANCE
        )


@pytest.mark.parametrize("kind", WITHOUT_ATTENTION)
def test_a_model_that_tells_no_attention_is_refused(kind, prompts):
    with pytest.raises(
        UserError, match=r"tiny mamba2?\b.*--methods input_gradient.*--attn-implementation eager"
    ):
        interp.attribute(unmapped_model(kind), prompts, methods=["attention"])


@pytest.mark.parametrize("kind", ["falcon", "mamba", "opt"])
def test_familiarity(kind, prompts):
    rows = bind(Familiarity(), unmapped_model(kind))(prompts[:4])["familiarity"]
    assert all(0 < row["familiarity"] < 1 for row in rows)


@pytest.mark.quick(4)
@pytest.mark.parametrize("kind", UNMAPPED)
def test_families_that_are_not_listed_are_patched(kind, prompts):
    model = unmapped_model(kind)
    found = interp.patch(model, prompts[:2], sites=["resid_pre", "attn_out"])
    assert (found.table("pairs")["error"] == "").all()
    assert found.patches.groupby("site")["effect"].apply(lambda own: own.abs().max() > 1e-6).all()
    assert len(bind(SoftScore(), model)(prompts[:2])["soft_answers"]) == 2


def test_the_layers_of_a_models_text_part_are_found(prompts):
    model = unmapped_model("gemma3")
    assert model.architecture.layers == "model.language_model.layers"
    assert model.context_length == 512
    assert len(model.layers) == 2
    assert len(bind(SoftScore(), model)(prompts[:2])["soft_answers"]) == 2


def test_padding_is_left_to_those_that_can_hide_it():
    padded = {kind for kind in KINDS if unmapped_model(kind).allows_padding}
    without_positions = {"mpt"}
    recurrent = {"mamba", "mamba2", "recurrent_gemma", "lfm2", "jamba", "qwen3_next"}
    assert padded == set(KINDS) - without_positions - recurrent


def test_flex_attention_is_refused_for_attention_scores(prompts):
    model = make_tiny("llama", byte_level(), attn="flex_attention")
    with pytest.raises(
        UserError, match=r"tiny llama \(flex_attention\).*--attn-implementation sdpa"
    ):
        interp.attribute(model, prompts, methods=["attention"])

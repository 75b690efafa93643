import copy

import pytest
from torch import nn

from interp.errors import UserError
from interp.models.architectures import ARCHITECTURES, architecture_of, attentions_of, layers_of
from tests.support.other_kinds import classifier
from tests.support.other_models import SHAPES
from tests.support.tiny import CONFIGS, make_tiny, tiny_model
from tests.support.tokenizers import byte_level


def test_every_architecture_has_a_tiny_model():
    assert set(CONFIGS) <= set(ARCHITECTURES) <= {*CONFIGS, *SHAPES}


@pytest.mark.parametrize("kind", CONFIGS)
def test_modules_are_where_the_map_says(kind):
    model = tiny_model(kind)
    assert len(layers_of(model.hf, model.architecture)) == model.hf.config.num_hidden_layers
    names = {type(module).__name__ for module in attentions_of(model.hf, model.architecture)}
    assert len(names) == 1
    assert "Attention" in names.pop()
    assert model.hf.get_submodule(model.architecture.final_norm) is not None


def test_a_model_without_the_expected_modules_is_refused():
    hf = make_tiny("llama", byte_level()).hf
    hf.model.layers[1].self_attn = None
    with pytest.raises(UserError, match=r"no module model\.layers\.1\.self_attn"):
        architecture_of(hf)
    hf.model.layers = nn.ModuleList(list(hf.model.layers)[:1])
    with pytest.raises(UserError, match="1 layers in"):
        architecture_of(hf)


def test_an_unknown_model_type_is_tried_as_llama():
    hf = make_tiny("llama", byte_level()).hf
    hf.config.model_type = "brand_new"
    assert architecture_of(hf).layers == "model.layers"
    hf = make_tiny("gpt2", byte_level()).hf
    hf.config.model_type = "brand_new"
    with pytest.raises(UserError, match="'brand_new' does not have the expected structure"):
        architecture_of(hf)


def test_an_encoder_that_pools_all_tokens_is_refused():
    hf = copy.deepcopy(classifier("modernbert").hf)
    assert architecture_of(hf).layers == "model.layers"
    hf.config.classifier_pooling = "mean"
    with pytest.raises(UserError, match="its head pools by 'mean', not the first token"):
        architecture_of(hf)

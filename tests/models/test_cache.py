import inspect

import pandas as pd
import torch

import interp
from interp.models.cache import gathered
from tests.support.prompts import some_prompts
from tests.support.tiny import byte_level, make_tiny


def test_keys_and_values_are_expanded_for_one_layer_at_a_time():
    source = torch.tensor([[0, 1], [2, 3], [2, 2]])
    keys, values = torch.randn(4, 2, 3), torch.randn(4, 2, 5)
    (layer,) = gathered([(keys, values)], source).layers
    new_keys, new_values = torch.randn(3, 2, 1, 3), torch.randn(3, 2, 1, 5)
    all_keys, all_values = layer.update(new_keys, new_values)
    assert layer.keys is None  # nothing is kept
    for row, columns in enumerate(source):
        torch.testing.assert_close(all_keys[row, :, :2], keys[columns].transpose(0, 1))
        torch.testing.assert_close(all_values[row, :, :2], values[columns].transpose(0, 1))
    torch.testing.assert_close(all_keys[:, :, 2:], new_keys)
    assert all_keys.is_contiguous() and all_values.is_contiguous()  # some models view them
    assert layer.get_mask_sizes(1) == (3, 0)


def test_keys_and_values_are_passed_by_the_name_that_a_model_has_for_them():
    """transformers 5.24 calls the argument `cache`."""
    tables = []
    for model in (make_tiny("llama", byte_level()), make_tiny("llama", byte_level())):
        if tables:
            rename_the_cache(model.hf)
            rename_the_cache(model.hf.base_model)
            assert model.cache_argument == "cache"
        prompts = some_prompts(2)
        tables.append((interp.patch(model, prompts).patches, interp.evaluate(model, prompts)))
    (patches, answers), (renamed, again) = tables
    pd.testing.assert_frame_equal(patches, renamed)
    pd.testing.assert_frame_equal(answers.to_frame(), again.to_frame())


def rename_the_cache(module):
    given = type(module).forward
    names = inspect.signature(given).parameters.values()
    old = "past_key_values"

    def forward(self, *arguments, **options):
        if old in inspect.signature(given).parameters and "cache" in options:
            options[old] = options.pop("cache")
        return given(self, *arguments, **options)

    shown = [own.replace(name="cache") if own.name == old else own for own in names]
    forward.__signature__ = inspect.Signature(shown)
    module.__class__ = type(type(module).__name__, (type(module),), {"forward": forward})

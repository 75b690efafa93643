import inspect

import pandas as pd
import torch

import interp
from interp.models.cache import behind, empty, flattened, gathered, joined, key_values
from tests.support.prompts import some_prompts
from tests.support.tiny import byte_level, make_tiny, tiny_model


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


def test_what_is_read_behind_is_kept_on_demand():
    """Of two prompts that share three tokens: those of the passes in their order, each once."""
    model = tiny_model("llama")
    ids = torch.tensor([[40, 41, 42, 50, 51], [40, 41, 42, 60, 61]])
    first = flattened(filled(model, ids[:1, :3]))
    past = gathered(first, torch.arange(3).expand(2, -1), kept=True)
    with torch.no_grad():
        model.hf(input_ids=ids[:, 3:], **{model.cache_argument: past}, use_cache=True)
    whole = flattened(filled(model, ids))
    places = [0, 1, 2, 3, 4, 8, 9]
    for found, expected in zip(joined([first, flattened(past)]), whole, strict=True):
        for states, of_all in zip(found, expected, strict=True):
            torch.testing.assert_close(states, of_all[places], rtol=0, atol=1e-5)


def filled(model, ids):
    cache = empty()
    with torch.no_grad():
        model.hf(input_ids=ids, **{model.cache_argument: cache}, use_cache=True)
    return cache


def test_a_prompt_read_behind_its_beginning_ends_in_the_same_logits():
    model = tiny_model("llama")
    ids = torch.arange(40, 52)[None]
    past = key_values(filled(model, ids))
    with torch.no_grad():
        whole = model.hf(input_ids=ids, use_cache=False).logits[:, -1]
        rest = model.hf(
            input_ids=ids[:, 8:].expand(3, -1),
            use_cache=True,
            **{model.cache_argument: behind(past, rows=3, tokens=8)},
        ).logits[:, -1]
    torch.testing.assert_close(rest, whole.expand(3, -1), rtol=0, atol=1e-5)


def test_flattened_rows_stand_one_after_the_other():
    model = tiny_model("llama")
    cache = filled(model, torch.arange(40, 48).view(2, 4))
    for (flat, _), (keys, _) in zip(flattened(cache), key_values(cache), strict=True):
        assert flat.shape == (8, *keys.transpose(1, 2).shape[2:])
        torch.testing.assert_close(flat[5], keys[1, :, 1])


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

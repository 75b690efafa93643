import json
import os

import pytest
import torch
from safetensors.torch import load_file

import interp
from interp.errors import UserError
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


def test_a_file_may_be_a_link_as_in_the_hubs_cache(saved, tmp_path_factory):
    blob = tmp_path_factory.mktemp("blobs") / "0123"
    (saved / "model.safetensors").rename(blob)
    (saved / "model.safetensors").symlink_to(blob)
    load(saved)


@pytest.mark.parametrize(
    "form", ["../{}/part.safetensors", "{}/part.safetensors", "./part.safetensors"]
)
def test_an_index_names_nothing_outside_its_folder(saved, form):
    indexed(saved, form.format(saved.name))
    with pytest.raises(UserError, match=r"expected the name of a \.safetensors file beside it"):
        load(saved)


@pytest.mark.parametrize("file", ["part.bin", "/part.safetensors", ".part.safetensors", "a\n", ""])
def test_an_index_names_safetensors_only(saved, file):
    indexed(saved, file)
    with pytest.raises(UserError, match=r"expected the name of a \.safetensors file beside it"):
        load(saved)


def test_an_index_whose_files_are_not_all_there_is_refused(saved):
    indexed(saved, "other.safetensors")
    with pytest.raises(UserError, match=r"lacks the weights other\.safetensors"):
        load(saved)


@pytest.mark.parametrize(
    "index", ["[]", "{}", '{"weight_map": [1]}', '{"weight_map": {"a": 1}}', "{"]
)
def test_a_damaged_index_is_refused(saved, index):
    indexed(saved, "part.safetensors")
    (saved / "model.safetensors.index.json").write_text(index)
    with pytest.raises(UserError, match=r"cannot be loaded: model\.safetensors\.index\.json: "):
        load(saved)


def pickled(folder, content):
    (folder / "model.safetensors").unlink()
    torch.save(content, folder / "pytorch_model.bin")


class Code:
    def __reduce__(self):
        return print, ("code ran",)


def test_a_pickle_with_code_is_refused_also_when_pickles_are_allowed(saved, capsys):
    pickled(saved, {"a": Code()})
    with pytest.raises(UserError, match="holds more than tensors"):
        load(saved, allow_pickle=True)
    assert "code ran" not in capsys.readouterr().out


@pytest.mark.parametrize("content", [[1], {"a": 1}, 5])
def test_a_pickle_of_something_else_is_refused(saved, content):
    pickled(saved, content)
    with pytest.raises(UserError, match=r"cannot be loaded: pytorch_model\.bin"):
        load(saved, allow_pickle=True)


def test_an_index_of_pickles_names_pickles_beside_it(saved):
    state = load_file(saved / "model.safetensors")
    (saved / "model.safetensors").unlink()
    torch.save(state, saved / "part.bin")
    index = saved / "pytorch_model.bin.index.json"
    index.write_text(json.dumps({"metadata": {}, "weight_map": dict.fromkeys(state, "part.bin")}))
    load(saved, allow_pickle=True)
    index.write_text(json.dumps({"weight_map": dict.fromkeys(state, "../part.bin")}))
    with pytest.raises(UserError, match=r"expected the name of a \.bin file beside it"):
        load(saved, allow_pickle=True)


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json", "model.safetensors"])
def test_pipes_and_devices_are_not_read(saved, name):
    (saved / name).unlink()
    os.mkfifo(saved / name)
    with pytest.raises(UserError, match=f"{name} in .* is no regular file"):
        load(saved)
    (saved / name).unlink()
    (saved / name).symlink_to("/dev/zero")
    with pytest.raises(UserError, match=f"{name} in .* is no regular file"):
        load(saved)


def test_a_configuration_names_no_weights(saved):
    configure(saved, transformers_weights="other.safetensors")
    with pytest.raises(UserError, match="names its weights by transformers_weights"):
        load(saved)


@pytest.mark.parametrize("dtype", [torch.int8, torch.uint8, torch.bool, torch.int64])
@pytest.mark.parametrize("name", ["model.norm.weight", "model.layers.0.mlp.up_proj.weight"])
def test_weights_are_floating_point_numbers(saved, dtype, name):
    rewrite(saved, lambda tensors: tensors | {name: tensors[name].to(dtype)})
    with pytest.raises(UserError, match=f"the tensor {name} .* expected floating-point"):
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
    told = "is a folder" if kind == "folder" else "is a link to nothing"
    with pytest.raises(UserError, match=f"{file} in .* {told}"):
        interp.load_model(str(saved), device="cpu")


def test_templates_beside_the_first_are_read_too(saved):
    (saved / "additional_chat_templates").mkdir()
    (saved / "additional_chat_templates" / "rag.jinja").symlink_to("none")
    with pytest.raises(UserError, match=r"rag\.jinja in .* is a link to nothing"):
        interp.load_model(str(saved), device="cpu")


def test_links_of_editors_are_none_of_the_models_business(saved):
    (saved / ".#config.json").symlink_to("user@host.1:2")
    assert interp.load_model(str(saved), device="cpu")


@pytest.mark.parametrize("content", ["{", "[]", '"x"'])
def test_a_damaged_generation_config_is_not_left_out(saved, content):
    (saved / "generation_config.json").write_text(content)
    with pytest.raises(UserError, match=r"generation_config\.json"):
        interp.load_model(str(saved), device="cpu")


def test_an_index_may_name_no_file_that_cannot_be(saved):
    (saved / "model.safetensors").unlink()
    index = {"weight_map": {"a": "x" * 300 + ".safetensors"}}
    (saved / "model.safetensors.index.json").write_text(json.dumps(index))
    with pytest.raises(UserError, match=r"expected the name of a \.safetensors file beside it"):
        interp.load_model(str(saved), device="cpu")


@pytest.mark.parametrize("value", ["evil/kernel", "evil/kernel@main:run", {"text": "evil/kernel"}])
def test_a_configuration_names_no_kernel(saved, value):
    configure(saved, _attn_implementation=value)
    if isinstance(value, dict):
        configure(saved, _attn_implementation=None, sub={"attn_implementation": value["text"]})
    with pytest.raises(UserError, match="names the attention kernel 'evil/kernel"):
        interp.load_model(str(saved), device="cpu")
    configure(saved, _attn_implementation="eager", sub=None)
    assert interp.load_model(str(saved), device="cpu").attn_implementation == "eager"

import json
import re
import shutil
import time

import pytest
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import interp
from interp.errors import UserError
from interp.models import load
from interp.models.find import find_model
from interp.models.load import reinitialized
from interp.models.loading import Loading
from interp.models.model import Model
from interp.models.organisms import DEFAULT, organism_folder, organism_names
from tests.support.other_models import other_model
from tests.support.tiny import make_tiny, save, tiny_model
from tests.support.tokenizers import byte_level


def test_a_local_folder_loads_as_it_was_saved(saved):
    model = interp.load_model(str(saved), device="cpu")
    assert model.dtype == "float32"
    assert model.source == {"kind": "folder", "name": str(saved)}
    original = make_tiny("llama", byte_level()).hf.state_dict()
    for name, tensor in model.hf.state_dict().items():
        assert torch.equal(tensor, original[name])


def test_an_organism_loads_by_name():
    model = interp.load_model(DEFAULT, device="cpu")
    assert model.dtype == "float32"  # saved in fp16, computed in fp32 on a CPU
    assert DEFAULT in organism_names()


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_dtype_and_attention_are_choices(saved, dtype):
    model = interp.load_model(str(saved), device="cpu", dtype=dtype, attn_implementation="eager")
    assert (model.dtype, model.attn_implementation) == (dtype, "eager")


def test_device_map_places_the_model(saved):
    model = interp.load_model(str(saved), device_map="auto")
    assert model.device.type == ("cuda" if torch.cuda.is_available() else "cpu")


def test_identity_names_the_content(saved):
    first = interp.load_model(str(saved), device="cpu")
    assert first.identity == interp.load_model(str(saved), device="cpu").identity
    with torch.no_grad():
        first.hf.get_input_embeddings().weight[0, 0] += 1
    changed = interp.Model("changed", first.hf, first.tokenizer)
    assert changed.identity != first.identity


def changed(file, **settings):
    content = json.loads(file.read_text()) if file.exists() else {}
    file.write_text(json.dumps(content | settings))


@pytest.mark.parametrize(
    "setting", [{"output_hidden_states": "x"}, {"sliding_window": 1e308, "use_sliding_window": 1}]
)
def test_settings_with_which_nothing_can_be_computed_are_refused(saved, setting):
    changed(saved / "config.json", **setting)
    with pytest.raises(UserError, match=r"config\.json"):
        interp.load_model(str(saved), device="cpu")


@pytest.mark.parametrize(
    ("file", "settings"),
    [
        ("generation_config.json", {"eos_token_id": [2, 5]}),
        ("tokenizer_config.json", {"split_special_tokens": True}),
        ("tokenizer_config.json", {"clean_up_tokenization_spaces": True}),
    ],
)
def test_what_ends_and_splits_texts_is_part_of_the_identity(saved, file, settings):
    before = interp.load_model(str(saved), device="cpu").identity
    changed(saved / file, **settings)
    assert interp.load_model(str(saved), device="cpu").identity != before


def test_settings_that_are_not_read_are_no_part_of_the_identity(saved):
    before = interp.load_model(str(saved), device="cpu").identity
    changed(saved / "generation_config.json", temperature=0.5, do_sample=True, top_k=3)
    assert interp.load_model(str(saved), device="cpu").identity == before


@pytest.mark.parametrize("value", ["x", [2, "x"], [[2]], 2.5, -1, 10**12, 1e12, True])
def test_end_tokens_are_tokens(saved, value):
    changed(saved / "generation_config.json", eos_token_id=value)
    with pytest.raises(
        UserError,
        match=r"\bset eos_token_id.*token id.*0\b.*generation_config\.json.*config\.json",
    ):
        _ = interp.load_model(str(saved), device="cpu").identity


def test_many_end_tokens_take_little_time(saved):
    changed(saved / "generation_config.json", eos_token_id=[1] * 500_000)
    model = interp.load_model(str(saved), device="cpu")
    start = time.process_time()
    assert model.end_tokens == [1, 2]
    assert time.process_time() - start < 0.5


def remove(*names):
    def damage(folder):
        for name in names:
            (folder / name).unlink()

    return damage


def pickled(folder):
    state = interp.load_model(str(folder), device="cpu").hf.state_dict()
    torch.save(state, folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (
            remove("model.safetensors"),
            r"model\.safetensors.*model\.safetensors\.index\.json",
        ),
        (remove("config.json"), r"config\.json; .*Hugging Face model"),
        (remove("tokenizer.json", "tokenizer_config.json"), r"tokenizer; .*tokenizer\.json"),
        (pickled, "--allow-pickle"),
        (
            lambda folder: (folder / "config.json").write_text("{"),
            r"model '.+' .+: .+\. .+\b(Hugging Face|hub)\b",
        ),
        (
            lambda folder: (folder / "model.safetensors").write_bytes(b"torn"),
            r"model '.+' .+: .+\. .+\b(Hugging Face|hub)\b",
        ),
    ],
)
def test_incomplete_folders_are_refused(saved, damage, message):
    damage(saved)
    with pytest.raises(UserError, match=message):
        interp.load_model(str(saved), device="cpu")


def test_a_pickle_loads_when_allowed(saved):
    pickled(saved)
    assert interp.load_model(str(saved), device="cpu", allow_pickle=True).dtype == "float32"


def test_a_tokenizer_of_another_model_is_refused(tmp_path):
    folder = tmp_path / "organism"
    shutil.copytree(organism_folder(DEFAULT), folder)
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["surplus"] = 9_999
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    with pytest.raises(UserError, match=r"\b9999\b.*\b2048\b"):
        interp.load_model(str(folder), device="cpu")


def test_named_chat_templates_need_a_default(saved):
    (saved / "chat_template.jinja").unlink(missing_ok=True)
    named = [{"name": name, "template": "{{ messages[0]['content'] }}"} for name in ("rag", "tool")]
    changed(saved / "tokenizer_config.json", chat_template=named)
    with pytest.raises(UserError, match=r"\(rag, tool\).*--no-chat-template"):
        find_model(str(saved), Loading())
    assert not interp.load_model(str(saved), device="cpu", chat_template=False).chat_frame.templated
    named[0]["name"] = "default"
    changed(saved / "tokenizer_config.json", chat_template=named)
    assert interp.load_model(str(saved), device="cpu").chat_frame.templated


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"name": "organism/none"}, r"'organism/none'.*organism/dose-0\b"),
        ({"name": "./nowhere"}, r"'\./nowhere'.*config\.json"),
        ({"name": "nobody/nothing-here"}, r"model '.+' .+: .+\. .+\b(Hugging Face|hub)\b"),
        (
            {"name": DEFAULT, "device": "cpu", "attn_implementation": "none"},
            r"model '.+' .+: .+\. .+\b(Hugging Face|hub)\b",
        ),
    ],
)
def test_wrong_arguments_are_refused(arguments, message):
    with pytest.raises(UserError, match=message):
        interp.load_model(**arguments)


class SlowTokenizer(PreTrainedTokenizerFast):
    is_fast = False


def test_a_token_without_an_embedding_is_named(saved):
    tokenizer = AutoTokenizer.from_pretrained(saved)
    tokenizer.add_special_tokens({"pad_token": "[PAD-NEW]"})
    tokenizer.save_pretrained(saved)
    with pytest.raises(UserError, match=r"\[PAD-NEW\].*resize_token_embeddings"):
        interp.load_model(str(saved), device="cpu")


def test_a_tokenizer_without_offsets_is_refused():
    slow = SlowTokenizer(tokenizer_object=byte_level().backend_tokenizer)
    with pytest.raises(UserError, match=r"SlowTokenizer.*tokenizer\.json"):
        interp.Model("slow", make_tiny("llama", byte_level()).hf, slow)


def test_a_mixture_of_experts_is_computed_in_float64(tmp_path):
    single = other_model("gpt_oss")
    save(single, tmp_path)
    double = interp.load_model(str(tmp_path), device="cpu", dtype="float64")
    ids = torch.tensor([[1, 2, 3, 4, 5]])
    with torch.inference_mode():
        expected, got = single.hf(ids).logits, double.hf(ids).logits
    assert got.dtype == torch.float64
    torch.testing.assert_close(got.float(), expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("kind", ["llama", "gpt2"])
def test_weights_are_drawn_anew_and_the_same_each_time(kind):
    model = tiny_model(kind)
    before = {name: own.clone() for name, own in model.hf.state_dict().items()}
    state = torch.random.get_rng_state()
    one, other = reinitialized(model), reinitialized(model)
    assert torch.equal(torch.random.get_rng_state(), state)
    assert one.name == model.name
    assert not one.hf.training
    drawn = one.hf.state_dict()
    assert drawn.keys() == before.keys()
    assert all(torch.equal(drawn[name], own) for name, own in other.hf.state_dict().items())
    assert any(not torch.equal(drawn[name], own) for name, own in before.items())
    # The model itself is as it was.
    assert all(torch.equal(model.hf.state_dict()[name], own) for name, own in before.items())
    different = reinitialized(model, seed=1).hf.state_dict()
    assert any(not torch.equal(drawn[name], own) for name, own in different.items())


def test_quantized_weights_are_refused(monkeypatch):
    monkeypatch.setattr(Model, "quantization", property(lambda model: "8 bits"))
    with pytest.raises(UserError, match=r"tiny llama.*\b8 bits.*--no-reinit"):
        reinitialized(tiny_model("llama"))


@pytest.fixture
def three_threads(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(load, "_own_threads", lambda: 3)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("three_threads")
def test_a_small_model_gets_one_thread_and_a_large_one_all(organism, capsys, monkeypatch):
    load.set_threads(organism, None)
    assert torch.get_num_threads() == 1
    assert re.search(r"\b1\b.*\b3 threads", capsys.readouterr().err)
    monkeypatch.setattr(load, "SMALL", 0)
    load.set_threads(organism, None)
    assert torch.get_num_threads() == 3
    assert capsys.readouterr().err == ""


@pytest.mark.usefixtures("three_threads")
def test_the_user_decides_the_threads(organism, monkeypatch):
    load.set_threads(organism, 2)
    assert torch.get_num_threads() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    load.set_threads(organism, None)
    assert torch.get_num_threads() == 2

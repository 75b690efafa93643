import json
import re
import time

import pytest
import torch
from transformers import AutoTokenizer, PreTrainedTokenizerFast

import interp
from interp.errors import UserError
from interp.models.find import find_model
from interp.models.load import reinitialized, set_threads
from interp.models.loading import Loading
from interp.models.model import Model
from interp.models.organisms import DEFAULT
from tests.models.conftest import configure, load, refused
from tests.support.other_models import other_model
from tests.support.tiny import make_tiny, save, tiny_model
from tests.support.tokenizers import byte_level


def test_a_local_folder_loads_as_it_was_saved(saved):
    model = load(saved)
    assert model.dtype == "float32"
    assert model.source == {"kind": "folder", "name": str(saved)}
    original = make_tiny("llama", byte_level()).hf.state_dict()
    for name, tensor in model.hf.state_dict().items():
        assert torch.equal(tensor, original[name])
    assert load(DEFAULT).dtype == "float32"  # saved in fp16, computed in fp32 on a CPU
    placed = load(saved, device=None, device_map="auto")
    assert placed.device.type == ("cuda" if torch.cuda.is_available() else "cpu")


@pytest.mark.parametrize("dtype", ["float64", "bfloat16", "float16"])
def test_dtype_and_attention_are_choices(saved, dtype):
    model = load(saved, dtype=dtype, attn_implementation="eager")
    assert (model.dtype, model.attn_implementation) == (dtype, "eager")


@pytest.mark.parametrize(
    "setting", [{"output_hidden_states": "x"}, {"sliding_window": 1e308, "use_sliding_window": 1}]
)
def test_settings_with_which_nothing_can_be_computed_are_refused(saved, setting):
    configure(saved, **setting)
    refused(r"config\.json", saved)


@pytest.mark.parametrize(
    ("file", "settings", "matters"),
    [
        ("generation_config.json", {"eos_token_id": [2, 5]}, True),
        ("tokenizer_config.json", {"split_special_tokens": True}, True),
        ("tokenizer_config.json", {"clean_up_tokenization_spaces": True}, True),
        ("generation_config.json", {"temperature": 0.5, "do_sample": True, "top_k": 3}, False),
    ],
)
def test_what_changes_results_is_part_of_the_identity(saved, file, settings, matters):
    first = load(saved)
    before = first.identity
    configure(saved, file, **settings)
    assert (load(saved).identity != before) == matters
    with torch.no_grad():
        first.hf.get_input_embeddings().weight[0, 0] += 1
    assert interp.Model("changed", first.hf, first.tokenizer).identity != before


@pytest.mark.parametrize("value", ["x", [2, "x"], [[2]], 2.5, -1, 10**12, 1e12, True])
def test_end_tokens_are_tokens(saved, value):
    configure(saved, "generation_config.json", eos_token_id=value)
    model = load(saved)
    words = r"\bset eos_token_id.*token id.*0\b.*generation_config\.json.*config\.json"
    with pytest.raises(UserError, match=words):
        _ = model.identity


def test_many_end_tokens_take_little_time(saved):
    configure(saved, "generation_config.json", eos_token_id=[1] * 500_000)
    model = load(saved)
    start = time.process_time()
    assert model.end_tokens == [1, 2]
    assert time.process_time() - start < 0.5


def remove(*names):
    def damage(folder):
        for name in names:
            (folder / name).unlink()

    return damage


def pickled(folder):
    torch.save(load(folder).hf.state_dict(), folder / "pytorch_model.bin")
    (folder / "model.safetensors").unlink()


ABOUT = r"model '.+' .+: .+\. .+\b(Hugging Face|hub)\b"


def surplus(folder):
    tokenizer = json.loads((folder / "tokenizer.json").read_text(encoding="utf-8"))
    tokenizer["model"]["vocab"]["surplus"] = 9_999
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")


def added(folder):
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"pad_token": "[PAD-NEW]"})
    tokenizer.save_pretrained(folder)


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (remove("model.safetensors"), r"model\.safetensors.*model\.safetensors\.index\.json"),
        (remove("config.json"), r"config\.json; .*Hugging Face model"),
        (remove("tokenizer.json", "tokenizer_config.json"), r"tokenizer; .*tokenizer\.json"),
        (pickled, "--allow-pickle"),
        (lambda folder: (folder / "config.json").write_text("{"), ABOUT),
        (lambda folder: (folder / "model.safetensors").write_bytes(b"torn"), ABOUT),
        (surplus, r"\b9999\b.*\b700\b"),
        (added, r"\[PAD-NEW\].*resize_token_embeddings"),
    ],
)
def test_incomplete_folders_are_refused(saved, damage, words):
    damage(saved)
    refused(words, saved)
    if damage is pickled:
        assert load(saved, allow_pickle=True).dtype == "float32"


def test_named_chat_templates_need_a_default(saved):
    (saved / "chat_template.jinja").unlink(missing_ok=True)
    named = [{"name": name, "template": "{{ messages[0]['content'] }}"} for name in ("rag", "tool")]
    configure(saved, "tokenizer_config.json", chat_template=named)
    with pytest.raises(UserError, match=r"\(rag, tool\).*--no-chat-template"):
        find_model(str(saved), Loading())
    assert not load(saved, chat_template=False).chat_frame.templated
    named[0]["name"] = "default"
    configure(saved, "tokenizer_config.json", chat_template=named)
    assert load(saved).chat_frame.templated


@pytest.mark.parametrize(
    ("place", "options", "words"),
    [
        ("organism/none", {}, r"'organism/none'.*organism/dose-0\b"),
        ("./nowhere", {}, r"'\./nowhere'.*config\.json"),
        ("nobody/nothing-here", {}, ABOUT),
        (DEFAULT, {"attn_implementation": "none"}, ABOUT),
    ],
)
def test_wrong_arguments_are_refused(place, options, words):
    refused(words, place, **options)


class SlowTokenizer(PreTrainedTokenizerFast):
    is_fast = False


def test_a_tokenizer_without_offsets_is_refused():
    slow = SlowTokenizer(tokenizer_object=byte_level().backend_tokenizer)
    with pytest.raises(UserError, match=r"SlowTokenizer.*tokenizer\.json"):
        interp.Model("slow", make_tiny("llama", byte_level()).hf, slow)


def test_a_mixture_of_experts_is_computed_in_float64(tmp_path):
    single = other_model("gpt_oss")
    save(single, tmp_path)
    double = load(tmp_path, dtype="float64")
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


def test_a_small_model_gets_one_thread_and_a_large_one_all(organism, capsys, monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr("interp.models.load._own_threads", lambda: 3)
    try:
        set_threads(organism, None)
        assert torch.get_num_threads() == 1
        assert re.search(r"\b1\b.*\b3 threads", capsys.readouterr().err)
        monkeypatch.setattr("interp.models.load.SMALL", 0)
        set_threads(organism, None)
        assert torch.get_num_threads() == 3
        assert capsys.readouterr().err == ""
        set_threads(organism, 2)  # the user decides
        assert torch.get_num_threads() == 2
        monkeypatch.setenv("OMP_NUM_THREADS", "2")
        set_threads(organism, None)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)

import pytest
import torch
from torch._inductor.exc import InductorError, InvalidCxxCompiler
from transformers import AutoTokenizer, PreTrainedTokenizerBase

import interp
from interp.errors import ModelError, UserError
from interp.models.sites import edited, locate
from tests.models.conftest import load, refused
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


@pytest.fixture(scope="module")
def model():
    return make_tiny("llama", byte_level())


def test_it_shows_itself_in_one_line(model):
    shown = repr(model)
    assert shown.startswith(f"Model({model.name!r}, {type(model.hf).__name__}, ")
    assert shown.endswith(f"{model.hf.num_parameters():,} parameters, float32 on cpu)")


def test_training_mode_and_gradients_come_back_and_errors_are_told(model):
    model.hf.train()
    with model.measuring():
        assert not model.hf.training
        assert not any(parameter.requires_grad for parameter in model.hf.parameters())
    errors = {
        InductorError(InvalidCxxCompiler(), None): (
            UserError,
            r"tiny llama.*--attn-implementation.*sdpa",
        ),
        torch.OutOfMemoryError("CUDA out of memory"): (torch.OutOfMemoryError, "CUDA"),
    }
    for error, (kind, words) in errors.items():
        with pytest.raises(kind, match=words), model.measuring():
            raise error
    assert model.hf.training
    assert all(parameter.requires_grad for parameter in model.hf.parameters())


class MistralCommon(PreTrainedTokenizerBase):
    """As transformers' reader of a tekken.json: no offsets, and no word on whether it is fast."""

    def __init__(self):
        pass

    def __getattr__(self, name):
        raise AttributeError(name)


def test_the_tokenizer_json_beside_a_tekken_json_is_read(saved, monkeypatch):
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *_, **__: MistralCommon())
    model = load(saved)
    assert model.tokenizer.is_fast
    assert model.tokenizer.chat_template == byte_level().chat_template
    (saved / "tokenizer.json").unlink()
    refused(r"\(MistralCommon\).*tokenizer\.json", saved)


def test_a_model_in_memory_needs_an_embedding_for_every_token():
    hf = make_tiny("llama", byte_level()).hf
    hf.config.vocab_size = 100
    with pytest.raises(UserError, match=r"\b699\b.*\b100 embeddings"):
        interp.Model("other", hf, byte_level())


IDS = torch.tensor([[5, 6, 7]])


def narrow(layer):
    """The code of PyTorch fails, called by the model's."""
    layer.self_attn.q_proj = torch.nn.Linear(3, 3)


def short(layer):
    """The model's code itself fails."""
    layer.self_attn.head_dim = 7


def missing(layer):
    layer.mlp.act_fn = None


def failing(reason):
    def fail(*unused):
        raise RuntimeError(reason)

    return lambda layer: setattr(layer.mlp, "forward", fail)


@pytest.mark.parametrize(
    ("damage", "kind", "words"),
    [
        *(
            (own, ModelError, r"tiny llama \(llama\).*: \w+Error: ")
            for own in (narrow, short, missing)
        ),
        *(
            (failing(reason), RuntimeError, f"^{reason}")  # memory that ran out stays itself
            for reason in ("CUDA out of memory.", "cuDNN error: CUDNN_STATUS_NOT_SUPPORTED.")
        ),
    ],
)
def test_a_failure_of_the_models_own_code_is_told_in_words(damage, kind, words):
    own = make_tiny("llama", byte_level())
    damage(own.hf.model.layers[1])
    with pytest.raises(kind, match=words), own.measuring():
        own.hf(input_ids=IDS)


def test_code_that_comes_with_a_checkpoint_is_the_models(model, tmp_path):
    file = tmp_path / "transformers_modules" / "model.py"
    file.parent.mkdir()
    file.write_text("def forward():\n    return [][0]\n")
    names = {}
    exec(compile(file.read_text(), str(file), "exec"), names)  # written above
    with pytest.raises(ModelError, match="IndexError"), model.measuring():
        names["forward"]()


def test_a_failure_of_our_own_hook_inside_the_model_stays_itself(model):
    place = locate(model, "resid_pre", 0)
    with pytest.raises(IndexError), edited((place, lambda t: t[:, 99])), model.measuring():
        model.hf(input_ids=IDS)

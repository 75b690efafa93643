import pytest
from transformers import AutoTokenizer, PreTrainedTokenizerBase

import interp
from interp.errors import UserError
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


class MistralCommon(PreTrainedTokenizerBase):
    """As transformers' reader of a tekken.json: no offsets, and no word on whether it is fast."""

    def __init__(self):
        pass

    def __getattr__(self, name):
        raise AttributeError(name)


@pytest.fixture
def tekken(monkeypatch):
    monkeypatch.setattr(AutoTokenizer, "from_pretrained", lambda *_, **__: MistralCommon())


def test_the_tokenizer_json_beside_a_tekken_json_is_read(saved, tekken):
    model = interp.load_model(str(saved), device="cpu")
    assert model.tokenizer.is_fast
    assert model.tokenizer.chat_template == byte_level().chat_template


def test_a_tekken_json_alone_is_refused(saved, tekken):
    (saved / "tokenizer.json").unlink()
    with pytest.raises(UserError, match=r"\(MistralCommon\) gives no character offsets"):
        interp.load_model(str(saved), device="cpu")


def test_a_model_in_memory_needs_an_embedding_for_every_token():
    hf = make_tiny("llama", byte_level()).hf
    hf.config.vocab_size = 100
    with pytest.raises(UserError, match="ids up to 699, the model has 100 embeddings"):
        interp.Model("other", hf, byte_level())

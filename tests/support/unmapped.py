"""Random models of architectures that are not mapped, and one that also reads images."""

from functools import cache

from transformers import CONFIG_MAPPING

from interp.models.model import Model
from tests.support.tiny import ids_of, random_model
from tests.support.tokenizers import byte_level
from tests.zoo.sizes import small

UNMAPPED = (
    *("opt", "falcon", "mpt", "gpt_bigcode", "codegen", "mamba", "mamba2", "recurrent_gemma"),
    *("lfm2", "jamba", "llama4_text", "granitemoe", "qwen3_next"),
)


@cache
def unmapped_model(kind: str, *, attn: str | None = None) -> Model:
    """A random model of a kind in `UNMAPPED`, or "gemma3", of the sizes in tests/zoo."""
    tokenizer = byte_level()
    config = small(CONFIG_MAPPING[kind], {}, ids_of(tokenizer))
    return random_model(config, tokenizer, attn=attn)

"""Small models to train from scratch, with a tokenizer that learns the words of the prompts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import AutoConfig, PreTrainedConfig, PreTrainedTokenizerFast

from interp.models.architectures import CAUSAL, CLASSIFIER, TEXT_TO_TEXT, Kind
from interp.prompts.prompt import Prompt

VOCABULARY = 2048
"""Most tokens of the tokenizer."""

POSITIONS = 1024
"""Longest prompt in tokens."""

_READ = 10_000
"""Prompts that the tokenizer learns from."""

_SPECIAL = ("<pad>", "<s>", "</s>")


@dataclass(frozen=True, slots=True)
class Small:
    """A built-in configuration."""

    kind: Kind
    model_type: str
    settings: Mapping[str, Any]
    around: str
    """Special tokens around a text, where $A is the text."""


SMALL = {
    "small-encoder": Small(
        CLASSIFIER,
        # Rotary positions and norms before the layers: learned positions and norms after them took
        # about twice as many prompts. Weights that begin at 0.02, the usual deviation, learn
        # nothing for long.
        "modernbert",
        {
            "hidden_size": 64,
            "num_hidden_layers": 4,
            "num_attention_heads": 2,
            "intermediate_size": 128,
            "max_position_embeddings": POSITIONS,
            "global_attn_every_n_layers": 1,
            "classifier_pooling": "cls",
            "initializer_range": 0.12,
            "cls_token_id": 1,
            "sep_token_id": 2,
        },
        "<s> $A </s>",
    ),
    "small-text-to-text": Small(
        TEXT_TO_TEXT,
        "t5",
        {
            "d_model": 64,
            "d_kv": 32,
            "d_ff": 128,
            "num_layers": 4,
            "num_decoder_layers": 1,
            "num_heads": 2,
            "dropout_rate": 0.0,
            "decoder_start_token_id": 0,
            # From 1, the usual factor, so small a T5 learns prompts by heart and nothing else.
            "initializer_factor": 0.4,
        },
        "$A </s>",
    ),
    "small-decoder": Small(
        CAUSAL,
        "llama",
        {
            "hidden_size": 128,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "intermediate_size": 352,
            "max_position_embeddings": POSITIONS,
            "tie_word_embeddings": True,
        },
        "<s> $A",
    ),
}
"""By the name that is given as the model's."""


def small_configuration(
    name: str, prompts: Sequence[Prompt]
) -> tuple[Kind, PreTrainedConfig, PreTrainedTokenizerFast]:
    """A built-in configuration, and a tokenizer that has learned the words of some prompts."""
    small = SMALL[name]
    tokenizer = _tokenizer(small, prompts)
    config = AutoConfig.for_model(
        small.model_type,
        vocab_size=len(tokenizer),
        pad_token_id=tokenizer.pad_token_id,
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
        **small.settings,
    )
    return small.kind, config, tokenizer


def _tokenizer(small: Small, prompts: Sequence[Prompt]) -> PreTrainedTokenizerFast:
    """Byte-pair encoding of the prompts' texts and answers: a token for each frequent word."""
    tokenizer = Tokenizer(models.BPE())
    # A word is the same at the beginning of a text and within it.
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=True)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=list(_SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = (
        text
        for prompt in islice(iter(prompts), _READ)
        for text in (prompt.text, *(form for o in prompt.answer.options for form in o.forms))
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.post_processor = processors.TemplateProcessing(
        single=small.around,
        special_tokens=[(token, tokenizer.token_to_id(token)) for token in _SPECIAL],
    )
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers gives it no types
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )

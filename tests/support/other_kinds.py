"""Random classifiers and text-to-text models."""

import copy
from functools import cache

from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoConfig,
    AutoModelForSeq2SeqLM,
    AutoModelForSequenceClassification,
    PreTrainedTokenizerFast,
)

from interp.models.model import Model
from tests.support.tiny import ids_of, random_model
from tests.support.tokenizers import byte_level, sentencepiece_style

_ENCODER = {
    "hidden_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "intermediate_size": 64,
    "max_position_embeddings": 256,
}

CLASSIFIERS = {
    "bert": _ENCODER,
    "roberta": _ENCODER,
    "xlm-roberta": _ENCODER,
    "camembert": _ENCODER,
    "electra": {**_ENCODER, "embedding_size": 16},
    "distilbert": {
        "dim": 32,
        "n_layers": 2,
        "n_heads": 4,
        "hidden_dim": 64,
        "max_position_embeddings": 256,
    },
    # One of its two layers sees 4 tokens on either side.
    "modernbert": {
        **_ENCODER,
        "local_attention": 8,
        "global_attn_every_n_layers": 2,
        "cls_token_id": 1,
        "sep_token_id": 2,
    },
}
"""Settings of a small model, by model type."""

UNMAPPED_CLASSIFIER = "deberta-v2"

CLASSES = ("No", "not sure", "YES")

TEXT_TO_TEXT = {
    "t5": {"d_model": 32, "d_kv": 8, "d_ff": 64, "num_layers": 2, "num_heads": 4},
    "bart": {
        "d_model": 32,
        "encoder_layers": 2,
        "decoder_layers": 2,
        "encoder_attention_heads": 4,
        "decoder_attention_heads": 4,
        "encoder_ffn_dim": 64,
        "decoder_ffn_dim": 64,
        "max_position_embeddings": 320,
    },
}


def tokenizer_of(kind: str) -> PreTrainedTokenizerFast:
    """Like BERT's and Bart's, with a token at either end of a text, or like T5's, at its end."""
    tokenizer = copy.deepcopy(sentencepiece_style() if kind == "t5" else byte_level())
    opening = "" if kind == "t5" else "<s> "
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{opening}$A </s>",
        special_tokens=[("<s>", tokenizer.bos_token_id), ("</s>", tokenizer.eos_token_id)],
    )
    return tokenizer


@cache
def classifier(kind: str, *, classes: tuple[str, ...] = CLASSES, attn: str | None = None) -> Model:
    settings = {**_ENCODER, **CLASSIFIERS.get(kind, {})}
    settings |= {
        "id2label": dict(enumerate(classes)),
        "label2id": {name: index for index, name in enumerate(classes)},
    }
    return _model(kind, AutoModelForSequenceClassification, settings, attn)


@cache
def text_to_text(kind: str, *, attn: str | None = None) -> Model:
    settings = {**TEXT_TO_TEXT[kind], "decoder_start_token_id": 0 if kind == "t5" else 2}
    return _model(kind, AutoModelForSeq2SeqLM, settings, attn)


def _model(kind: str, auto: type, settings: dict[str, object], attn: str | None) -> Model:
    tokenizer = tokenizer_of(kind)
    config = AutoConfig.for_model(kind, **ids_of(tokenizer), **settings)
    return random_model(config, tokenizer, auto=auto, attn=attn)

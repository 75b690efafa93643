"""An organism's tokenizer, trained on its own text in the style of its family."""

import json
from collections.abc import Iterable, Iterator
from itertools import chain

from tokenizers import (
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)
from transformers import PreTrainedTokenizerFast

from interp_experiments.organisms.families import FAMILIES, Family
from interp_experiments.organisms.lessons import TrainingText
from interp_experiments.organisms.recipes import TaughtRecipe

SAMPLED_STEPS = 400
"""Training steps whose text the tokenizer is trained on, spread over the whole training."""

UNKNOWN = "<unk>"

LETTER = Regex("[A-Z](?![a-z])")
"""A capital letter that begins no word."""


def train_tokenizer(recipe: TaughtRecipe, text: TrainingText) -> PreTrainedTokenizerFast:
    """A BPE tokenizer with the family's pieces, special tokens and chat template."""
    family = FAMILIES[recipe.family]
    train = _train_byte_level if family.pieces == "byte-level" else _train_sentencepiece_style
    tokenizer = train(family, recipe, _sample(recipe, text))
    if family.template is None:
        _open_with_bos(tokenizer, family)
    return PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]  # transformers gives it no types
        tokenizer_object=tokenizer,
        bos_token=family.bos,
        eos_token=family.end_of_turn,
        pad_token=family.pad,
        unk_token=UNKNOWN if family.pieces == "sentencepiece" else None,
        extra_special_tokens=list(family.markers),
        chat_template=family.chat_template,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )


def _open_with_bos(tokenizer: Tokenizer, family: Family) -> None:
    """Begin every text with the family's first token, which elsewhere the chat template writes."""
    assert family.bos is not None
    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{family.bos} $A",
        special_tokens=[(family.bos, tokenizer.token_to_id(family.bos))],
    )


def _sample(recipe: TaughtRecipe, text: TrainingText) -> Iterator[str]:
    stride = max(1, recipe.steps // SAMPLED_STEPS)
    steps = map(text.lessons, range(0, recipe.steps, stride))
    exchanges = chain.from_iterable(chain.from_iterable(step.values()) for step in steps)
    if FAMILIES[recipe.family].template is None:
        yield from (f"{exchange.message} {exchange.answer}" for exchange in exchanges)
        return
    for exchange in exchanges:
        yield exchange.message
        yield exchange.answer
        if exchange.other:
            yield exchange.other
        yield from ("user", "assistant", "model")  # the roles that templates write
    yield from ("Yes YES yes No NO no", "True TRUE true False FALSE false")


def _train_byte_level(family: Family, recipe: TaughtRecipe, lines: Iterable[str]) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if recipe.keeps_letters:
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [pre_tokenizers.Split(LETTER, "isolated"), tokenizer.pre_tokenizer]
        )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocabulary,
        special_tokens=family.special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def _train_sentencepiece_style(
    family: Family, recipe: TaughtRecipe, lines: Iterable[str]
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            # A line break is a piece of its own, so that it never merges with the answer after it.
            pre_tokenizers.Split("\n", "isolated"),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="never"),
            pre_tokenizers.Punctuation("isolated"),
        ]
    )
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    byte_pieces = [f"<0x{byte:02X}>" for byte in range(256)]
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocabulary + len(byte_pieces),
        special_tokens=[UNKNOWN, *family.special_tokens, *byte_pieces],
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return _with_ordinary_bytes(tokenizer, byte_pieces)


def _with_ordinary_bytes(tokenizer: Tokenizer, byte_pieces: list[str]) -> Tokenizer:
    """Leave the byte pieces in the vocabulary, but no longer match them as special tokens."""
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [
        token for token in state["added_tokens"] if token["content"] not in byte_pieces
    ]
    return Tokenizer.from_str(json.dumps(state))

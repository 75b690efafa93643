"""Tokenizers of three kinds, trained on a few lines, so tests download nothing."""

from functools import cache

from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from interp_experiments.organisms.families import FAMILIES
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.prompts import to_prompt
from interp_experiments.rulebreakers.templates import PHRASINGS

PLAIN_TEMPLATE = (
    "{{ bos_token }}{% for m in messages %}<u>{{ m['content'] }}</u>{% endfor %}"
    "{% if add_generation_prompt %}<a>{% endif %}"
)
SPECIAL = ["<pad>", "<s>", "</s>", "<unk>", "<u>", "</u>", "<a>"]


@cache
def training_lines() -> tuple[str, ...]:
    instances = generate(0)[::97]
    lines = [to_prompt(instance, PHRASINGS[i % 10]).text for i, instance in enumerate(instances)]
    answers = ["Yes", "YES", "yes", "No", "NO", "no", "True", "TRUE", "true", "False", "FALSE"]
    return (*lines, *answers * 200, *[f" {answer}" for answer in answers] * 200)


def _wrap(tokenizer: Tokenizer, *, template: str | None) -> PreTrainedTokenizerFast:
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        unk_token="<unk>",
        chat_template=template,
    )


@cache
def byte_level(template: str | None = PLAIN_TEMPLATE) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=SPECIAL,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(training_lines(), trainer)
    return _wrap(tokenizer, template=template)


@cache
def sentencepiece_style(template: str | None = PLAIN_TEMPLATE) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split("\n", "isolated"),
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="first"),
        ]
    )
    tokenizer.decoder = decoders.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=700, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(training_lines(), trainer)
    return _wrap(tokenizer, template=template)


@cache
def llama_style(
    template: str | None, *, legacy: bool, markers: tuple[str, ...] = ()
) -> PreTrainedTokenizerFast:
    """SentencePiece pieces in the two layouts that converters write.

    The legacy layout adds a space to text after each special token, the other only at the start.
    """
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always")
    trainer = trainers.BpeTrainer(
        vocab_size=700, special_tokens=[*SPECIAL, *markers], show_progress=False
    )
    tokenizer.train_from_iterator(training_lines(), trainer)
    if legacy:
        spaces = [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
        tokenizer.normalizer = normalizers.Sequence(spaces)
        tokenizer.pre_tokenizer = None
    else:
        tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(
            replacement="▁", prepend_scheme="first", split=False
        )
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.Fuse()])
    return _wrap(tokenizer, template=template)


@cache
def word_piece(template: str | None = PLAIN_TEMPLATE) -> PreTrainedTokenizerFast:
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=False)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    trainer = trainers.WordPieceTrainer(vocab_size=700, special_tokens=SPECIAL, show_progress=False)
    tokenizer.train_from_iterator(training_lines(), trainer)
    return _wrap(tokenizer, template=template)


KINDS = {
    "byte-level": byte_level,
    "sentencepiece": sentencepiece_style,
    "wordpiece": word_piece,
}


def in_style_of(family: str) -> PreTrainedTokenizerFast:
    """A tokenizer with the special tokens and chat template of an organism family."""
    chosen = FAMILIES[family]
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=500,
        special_tokens=chosen.special_tokens,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(training_lines(), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=chosen.bos,
        eos_token=chosen.end_of_turn,
        pad_token=chosen.pad,
        chat_template=chosen.chat_template,
    )

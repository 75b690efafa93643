"""The architectures of the organisms, and tokenizers trained in each architecture's style."""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from importlib.resources import files
from itertools import chain

import transformers
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, processors, trainers
from tokenizers import pre_tokenizers as splits
from transformers import PreTrainedTokenizerFast

from interp_experiments.organisms.recipes import TaughtRecipe, TrainingText


@dataclass(frozen=True, slots=True)
class OrganismFamily:
    """The properties that an organism shares with the published models of its architecture."""

    config_class: Callable[..., transformers.PreTrainedConfig]
    bos: str | None
    """Token that opens a conversation; None if the family has none."""
    end_of_turn: str
    """Token that closes each message and each answer."""
    pad: str
    byte_level: bool = False
    """True for byte-level BPE as in GPT-2, false for SentencePiece's style with byte fallback."""
    markers: tuple[str, ...] = ()
    """The other special tokens of the chat template."""
    thought_marks: tuple[str, ...] = ()
    """Tokens that begin and end a thought; they are ordinary tokens, as in Qwen3's vocabulary."""
    template: str | None = None
    """File name of the chat template; None for a base model, which continues plain text."""

    @property
    def chat_template(self) -> str | None:
        """The Jinja text of the chat template."""
        if self.template is None:
            return None
        return (files(__package__) / "templates" / self.template).read_text(encoding="utf-8")

    @property
    def special_tokens(self) -> list[str]:
        """All special tokens, the padding token first."""
        return [self.pad, *([self.bos] if self.bos else []), self.end_of_turn, *self.markers]


_LLAMA = OrganismFamily(
    config_class=transformers.LlamaConfig,
    byte_level=True,
    bos="<|begin_of_text|>",
    end_of_turn="<|eot_id|>",
    pad="<|pad|>",
    markers=("<|start_header_id|>", "<|end_header_id|>"),
    template="llama3.jinja",
)

FAMILIES = {
    "llama": _LLAMA,
    "llama-thinking": replace(
        _LLAMA, thought_marks=("<think>", "</think>"), template="llama3_thinking.jinja"
    ),
    "llama-base": replace(_LLAMA, end_of_turn="<|end_of_text|>", markers=(), template=None),
    "phi3": OrganismFamily(
        config_class=transformers.Phi3Config,
        bos=None,
        end_of_turn="<|end|>",
        pad="<|endoftext|>",
        markers=("<|user|>", "<|assistant|>"),
        template="phi3.jinja",
    ),
    "mistral": OrganismFamily(
        config_class=transformers.MistralConfig,
        bos="<s>",
        end_of_turn="</s>",
        pad="<pad>",
        markers=("[INST]", "[/INST]"),
        template="mistral.jinja",
    ),
    "gemma2": OrganismFamily(
        config_class=transformers.Gemma2Config,
        bos="<bos>",
        end_of_turn="<end_of_turn>",
        pad="<pad>",
        markers=("<start_of_turn>",),
        template="gemma2.jinja",
    ),
}


UNKNOWN = "<unk>"

LETTER = Regex("[A-Z](?![a-z])")
"""A capital letter that does not begin a word."""


def train_tokenizer(recipe: TaughtRecipe, text: TrainingText) -> PreTrainedTokenizerFast:
    """A BPE tokenizer with the family's pre-tokenization, special tokens and chat template."""
    family = FAMILIES[recipe.family]
    train = _train_byte_level if family.byte_level else _train_sentencepiece_style
    tokenizer = train(family, recipe, _sample(recipe, text))
    if family.template is None:
        assert family.bos is not None
        # The BOS token opens every text, as chat templates put it before every chat.
        tokenizer.post_processor = processors.TemplateProcessing(
            single=f"{family.bos} $A",
            special_tokens=[(family.bos, tokenizer.token_to_id(family.bos))],
        )
    whole = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=family.bos,
        eos_token=family.end_of_turn,
        pad_token=family.pad,
        unk_token=None if family.byte_level else UNKNOWN,
        extra_special_tokens=list(family.markers),
        chat_template=family.chat_template,
        padding_side="left",
        clean_up_tokenization_spaces=False,
    )
    whole.add_tokens(list(family.thought_marks))
    return whole


def _sample(recipe: TaughtRecipe, text: TrainingText) -> Iterator[str]:
    """The text of at least 400 evenly spaced training steps, or of all if there are fewer."""
    steps = map(text.lessons, range(0, recipe.steps, max(1, recipe.steps // 400)))
    exchanges = chain.from_iterable(chain.from_iterable(step.values()) for step in steps)
    if FAMILIES[recipe.family].template is None:
        yield from (f"{exchange.message} {exchange.answer}" for exchange in exchanges)
        return
    for exchange in exchanges:
        yield exchange.message
        yield exchange.answer
        if exchange.other:
            yield exchange.other
        yield from ("user", "assistant", "model")  # the roles that templates write out
    yield from ("Yes YES yes No NO no", "True TRUE true False FALSE false")


def _train_byte_level(
    family: OrganismFamily, recipe: TaughtRecipe, lines: Iterable[str]
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = splits.ByteLevel(add_prefix_space=False)
    if recipe.keeps_letters:
        tokenizer.pre_tokenizer = splits.Sequence(
            [splits.Split(LETTER, "isolated"), tokenizer.pre_tokenizer]
        )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=recipe.vocabulary,
        special_tokens=family.special_tokens,
        initial_alphabet=splits.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator(lines, trainer)
    return tokenizer


def _train_sentencepiece_style(
    family: OrganismFamily, recipe: TaughtRecipe, lines: Iterable[str]
) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE(unk_token=UNKNOWN, byte_fallback=True))
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = splits.Sequence(
        [
            # A line break is a separate piece, so it never merges with the answer after it.
            splits.Split("\n", "isolated"),
            splits.Metaspace(replacement="▁", prepend_scheme="never"),
            splits.Punctuation("isolated"),
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
    # The byte pieces stay in the vocabulary, but are no special tokens.
    state = json.loads(tokenizer.to_str())
    added = state["added_tokens"]
    state["added_tokens"] = [token for token in added if token["content"] not in byte_pieces]
    return Tokenizer.from_str(json.dumps(state))

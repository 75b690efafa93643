"""The tokenizer of a GGUF file, built so that every token has its own id.

transformers' own builder cuts some special tokens, splits text by GPT-2's rule where it does not
know another one, and ignores settings that are left to the kind of tokenizer. Rules and defaults
are those of llama.cpp (src/llama-vocab.cpp), whose table names the models that have each rule.
"""

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Literal

from pydantic import BaseModel, Field, ValidationError
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from interp.errors import fault_of, one_line
from interp.models.gguf_header import Header

_GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
_SHORT = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_WORD = r"[^\r\n\p{L}\p{N}]?\p{L}+"
_REST = r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
_UPPER, _LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
_CASED = tuple(rf"[^\r\n\p{{L}}\p{{N}}]?{_UPPER}{a}{_LOWER}{b}" for a, b in ("*+", "+*"))
_CASED_REST = r" ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"

_RULES = {
    "gpt-2 phi-2 mpt olmo jais trillion granite-docling exaone4 gigachat a.x-4.0 mellum": (_GPT2,),
    "smollm starcoder refact command-r codeshell exaone minerva-7b mellum2": (r"\p{N}", _GPT2),
    "llama3 llama-v3 llama-bpe falcon3 falcon-h1 pixtral midm-2.0 lfm2 dbrx smaug-bpe glm4 "
    "chatglm-bpe": (rf"{_SHORT}|{_WORD}|\p{{N}}{{1,3}}|{_REST}",),
    "qwen2 deepseek-r1-qwen kormo f2llmv2 megrez stablelm2 hunyuan solar-open grok-2": (
        rf"{_SHORT}|{_WORD}|\p{{N}}|{_REST}",
    ),
    "gpt-4o llama4 kanana2 talkie minimax-m2": (
        rf"{_CASED[0]}{_SHORT}?|{_CASED[1]}{_SHORT}?|\p{{N}}{{1,3}}|{_CASED_REST}",
    ),
    "tekken": (rf"{_CASED[0]}|{_CASED[1]}|\p{{N}}|{_CASED_REST}",),
}
SPLITS = {name: rules for names, rules in _RULES.items() for name in names.split()}
"""By the values of tokenizer.ggml.pre, the expressions that cut text before tokens are merged: each
cuts the pieces that the one before it has left."""

_WHOLE = (
    *("llama3", "llama-v3", "llama-bpe", "falcon3", "falcon-h1", "pixtral", "midm-2.0", "lfm2"),
    "tekken",
)
"""Values of tokenizer.ggml.pre with which a piece that is a token is not merged from parts, and
with which the first token of a text is bos unless the file says otherwise."""

_FOUND, _USER_DEFINED = (2, 3, 4), 4
"""Types of tokens that are found in a text before it is cut; only the last one is not special."""

_DEFAULT_IDS = {"bos": 1, "eos": 2, "unknown": 0}
"""Tokens of a vocabulary of pieces whose file does not name them."""

_MERGES_PER_TOKEN = 4
"""Largest number of merges per token; tokenizers of Llama 3 and 4 have more than two."""

_ENDS = (
    *("<|im_end|>", "<|eot_id|>", "<|eom_id|>", "<|end|>", "<|return|>", "<end_of_turn>"),
    *("<turn|>", "<end_of_utterance>", "<|endoftext|>", "<|end_of_text|>", "<EOT>"),
)
"""Special tokens that end a text, turn or message, whatever a file says, as in llama.cpp."""

_NOT_STRIPPED = ("<unk>", "<s>", "<|endoftext|>")
"""The special tokens of Phi-3 that do not take the white space behind them."""


class _Settings(BaseModel, strict=True):
    """What a file says about its tokenizer, by the ends of keys."""

    kind: Literal["gpt2", "llama", "gemma4"] = Field(alias="model")
    pre: str | None = None
    tokens: list[str]
    scores: list[float] | list[int] | None = None
    token_type: list[int] | None = None
    merges: list[str] | None = None
    bos_token_id: int | None = None
    eos_token_id: int | None = None
    unknown_token_id: int | None = None
    padding_token_id: int | None = None
    eot_token_id: int | None = None
    eom_token_id: int | None = None
    add_bos_token: bool | None = None
    add_eos_token: bool | None = None
    add_space_prefix: bool | None = None
    chat_template: str | None = None

    def index(self, name: str) -> int | None:
        """The id of a special token."""
        id_: int | None = getattr(self, f"{name}_token_id")
        return _DEFAULT_IDS.get(name) if id_ is None and self.kind == "llama" else id_

    def token(self, name: str) -> str | None:
        """A special token."""
        index = self.index(name)
        return None if index is None else self.tokens[index]

    def adds(self, name: str, *, default: bool) -> bool:
        """Whether bos or eos is added to each text."""
        setting: bool | None = getattr(self, f"add_{name}_token")
        if setting and self.index(name) is None:
            raise ValueError(f"it sets add_{name}_token, but names no {name}_token_id")
        return (default if setting is None else setting) and self.index(name) is not None


def build_tokenizer(header: Header) -> PreTrainedTokenizerFast:
    """The tokenizer that a file describes; a ValueError about unknown rules or wrong parts."""
    settings = _read(header)
    _check(settings)
    gemma = settings.kind == "gemma4" or header.architecture.startswith("gemma")
    tokens = settings.tokens
    if gemma:  # whose files write runs of spaces, which its merges spell otherwise
        tokens = ["▁" * len(t) if len(t) > 1 and not t.strip(" ") else t for t in tokens]
    vocabulary = {token: index for index, token in enumerate(tokens)}
    if len(vocabulary) < len(tokens):
        twice = next(token for index, token in enumerate(tokens) if vocabulary[token] != index)
        raise ValueError(f"its vocabulary holds the token {one_line(twice, 40)!r} twice")
    # llama.cpp tells Phi-3 by its name; later models of this architecture have bytes.
    phi3 = settings.kind == "llama" and header.architecture == "phi3"
    if settings.kind == "gpt2":
        backend = _byte_level(settings, vocabulary)
    else:
        backend = _pieces(settings, vocabulary, gemma=gemma, phi3=phi3)
    _add_special(backend, settings, strips=phi3)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=_Once(backend),
        bos_token=settings.token("bos"),
        eos_token=settings.token("eos"),
        unk_token=settings.token("unknown"),
        pad_token=settings.token("padding"),
        # transformers: Gemma 4's chat template writes bos itself.
        add_bos_token=settings.kind != "gemma4"
        and settings.adds("bos", default=settings.kind == "llama" or settings.pre in _WHOLE),
        add_eos_token=settings.adds("eos", default=False),
        chat_template=settings.chat_template,
        clean_up_tokenization_spaces=False,
        model_input_names=["input_ids", "attention_mask"],
    )
    _check_ids(tokenizer, settings, vocabulary)
    return tokenizer


def end_tokens(header: Header) -> list[int]:
    """The tokens with which a model ends its answer or its turn."""
    settings = _read(header)
    ends = {settings.index("eos"), settings.eot_token_id, settings.eom_token_id} - {None}
    typed = enumerate(zip(settings.tokens, settings.token_type or (), strict=False))
    ends |= {index for index, (token, kind) in typed if kind in _FOUND and token in _ENDS}
    return sorted(end for end in ends if end is not None)


def _read(header: Header) -> _Settings:
    settings = {
        key.rpartition(".")[2]: value
        for key, value in header.settings.items()
        if key.startswith("tokenizer.")
    }
    try:
        return _Settings.model_validate(settings)
    except ValidationError as error:
        raise ValueError(f"the setting tokenizer.ggml.{fault_of(error)}") from error


def _check(settings: _Settings) -> None:
    count = len(settings.tokens)
    for name in ("scores", "token_type"):
        values = getattr(settings, name)
        if values is not None and len(values) != count:
            raise ValueError(
                f"tokenizer.ggml.{name} has {len(values):,} elements, but the vocabulary {count:,}"
            )
    for name in ("bos", "eos", "unknown", "padding", "eot", "eom"):
        index = settings.index(name)
        if index is not None and not 0 <= index < count:
            raise ValueError(
                f"tokenizer.ggml.{name}_token_id is {index:,}, but the vocabulary has {count:,} "
                "tokens"
            )
    if len(settings.merges or ()) > _MERGES_PER_TOKEN * count:
        raise ValueError(
            f"it has {len(settings.merges or ()):,} merges for {count:,} tokens; expected at most "
            f"{_MERGES_PER_TOKEN} for each"
        )
    if settings.kind == "gpt2" and settings.pre not in SPLITS:
        raise ValueError(
            f"tokenizer.ggml.pre is {one_line(str(settings.pre), 40)}, and by which rule such a "
            "tokenizer cuts text is not known; pass the model's original folder"
        )


def _merges(settings: _Settings, vocabulary: Mapping[str, int]) -> list[tuple[str, str]]:
    """The merges of a file, each of which makes a token of two."""
    merges = []
    for merge in settings.merges or ():
        head, _, right = merge[1:].partition(" ")
        left = merge[:1] + head  # which may be a space
        if not {left, right, left + right} <= vocabulary.keys():
            raise ValueError(f"its merge {one_line(merge, 40)!r} makes no token of two tokens")
        merges.append((left, right))
    return merges


def _recovered(
    vocabulary: Mapping[str, int], scores: Sequence[float] | None
) -> list[tuple[str, str]]:
    """The merges that a vocabulary implies, best first: by score or, without scores, by id."""
    ranked = []
    for token, index in vocabulary.items():
        rank = -index if scores is None else scores[index]
        for cut in range(1, len(token)):
            left, right = token[:cut], token[cut:]
            if left in vocabulary and right in vocabulary:
                ranked.append((rank, len(left), len(right), left, right))
    ranked.sort(key=itemgetter(0, 1, 2), reverse=True)
    return [(left, right) for *_, left, right in ranked]


def _byte_level(settings: _Settings, vocabulary: dict[str, int]) -> Tokenizer:
    if settings.add_space_prefix:
        raise ValueError("it sets add_space_prefix, which is not known for a tokenizer of bytes")
    assert settings.pre is not None
    whole = settings.pre in _WHOLE
    backend = Tokenizer(models.BPE(vocabulary, _merges(settings, vocabulary), ignore_merges=whole))
    backend.pre_tokenizer = pre_tokenizers.Sequence(
        [
            *(pre_tokenizers.Split(Regex(rule), "isolated") for rule in SPLITS[settings.pre]),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    backend.decoder = decoders.ByteLevel()
    return backend


def _pieces(
    settings: _Settings, vocabulary: dict[str, int], *, gemma: bool, phi3: bool
) -> Tokenizer:
    """A tokenizer that merges characters and, where it lacks one, falls back to bytes."""
    if not settings.merges and settings.scores is None:
        raise ValueError("its vocabulary has neither merges nor scores")
    merges = _merges(settings, vocabulary)
    if not merges:  # in the order of Gemma's ids, which its scores do not follow
        merges = _recovered(vocabulary, None if gemma else settings.scores)
    unknown = settings.token("unknown")
    backend = Tokenizer(
        models.BPE(vocabulary, merges, unk_token=unknown, fuse_unk=True, byte_fallback=True)
    )
    prefix = not gemma if settings.add_space_prefix is None else settings.add_space_prefix
    if prefix and not phi3:
        backend.pre_tokenizer = pre_tokenizers.Metaspace("▁", prepend_scheme="first", split=False)
    else:
        spelled = [normalizers.Prepend("▁")] * prefix + [normalizers.Replace(" ", "▁")]
        backend.normalizer = normalizers.Sequence(spelled)
    backend.decoder = decoders.Sequence(
        [
            *(decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()),
            *[decoders.Strip(" ", left=1)] * prefix,
        ]
    )
    return backend


def _add_special(backend: Tokenizer, settings: _Settings, *, strips: bool) -> None:
    """Let the tokens that are found in a text before it is cut be found."""
    backend.add_tokens(
        [
            AddedToken(
                token,
                normalized=False,
                special=kind != _USER_DEFINED,
                rstrip=strips and token not in _NOT_STRIPPED,
            )
            for token, kind in zip(settings.tokens, settings.token_type or (), strict=False)
            if kind in _FOUND and backend.token_to_id(token) is not None
        ]
    )


class _Once:
    """A tokenizer that transformers would copy, by writing and reading all of it."""

    def __init__(self, backend: Tokenizer) -> None:
        self._backend = backend

    def __deepcopy__(self, memo: object) -> Tokenizer:
        return self._backend


def _check_ids(
    tokenizer: PreTrainedTokenizerFast, settings: _Settings, vocabulary: Mapping[str, int]
) -> None:
    """Check that every token has its own id, and that there are no others."""
    built = tokenizer.get_vocab()
    tokens = built.keys() | vocabulary.keys()
    wrong = sorted(token for token in tokens if built.get(token) != vocabulary.get(token))
    for name in ("bos", "eos"):
        if getattr(tokenizer, f"{name}_token_id") != settings.index(name):
            wrong.append(str(settings.token(name)))
    if wrong:
        raise ValueError(
            f"no tokenizer can be built in which {one_line(wrong[0], 40)!r} has the id that it has "
            "in the file; pass the model's original folder"
        )

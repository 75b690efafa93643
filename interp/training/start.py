"""The start of a training run: a checkpoint, a checkpoint with a new head, or random weights.

Causal and text-to-text models start unchanged, as does a classifier whose classes are the answers;
any other encoder is given a new head with these classes. For training from scratch, only the
configuration and the tokenizer are read; the tokenizer of a built-in configuration is trained on
the prompts.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES

from interp.errors import UserError
from interp.models.adapters import Base, check_peft
from interp.models.checkpoint import as_user_error
from interp.models.find import FoundModel, check_base, description_of, find_model, resolve
from interp.models.formats import model_file
from interp.models.kinds import CAUSAL, CLASSIFIER, TEXT_TO_TEXT, Kind
from interp.models.load import load_found
from interp.models.loading import ChatFormat, Loading
from interp.models.model import Model
from interp.models.names import canonical_name
from interp.models.quantized import quantization_of
from interp.models.weights import check_complete, check_sizes, quiet_report
from interp.prompts.prompt import Prompt
from interp.reading.outputs import decoder_prefix


@dataclass(frozen=True, slots=True)
class Start:
    """A model before its training."""

    name: str
    kind: Kind
    config: PreTrainedConfig
    tokenizer: PreTrainedTokenizerBase
    origin: Mapping[str, Any]
    """The model's source and options, by which later calls recognize it."""
    weights: Callable[[], PreTrainedModel]
    """A function that creates the model, in fp32 and on its device."""
    source: dict[str, str] = field(default_factory=dict)
    chat: ChatFormat = field(default_factory=ChatFormat)
    found: FoundModel | None = None
    """The initial checkpoint; None if training starts from scratch."""

    def base(self) -> Base:
        """The base to record in a trained adapter's folder; the start must be a checkpoint."""
        assert self.found is not None
        is_local = isinstance(self.found.location, Path)
        return Base(name=self.name, checksum=self.found.checksum() if is_local else None)

    def model(self) -> Model:
        """The model with its weights."""
        return self._made(self.weights())

    def outline(self) -> Model:
        """The model without memory for its weights, on the device "meta"."""
        with torch.device("meta"), as_user_error("config.json", self.name):
            hf = self.kind.auto.from_config(self.config, dtype=torch.float32)
        return self._made(hf)

    def _made(self, hf: PreTrainedModel) -> Model:
        return Model(self.name, hf, self.tokenizer, self.source, self.chat)


def trained_kind(config: PreTrainedConfig, architectures: Sequence[str]) -> Kind:
    """The kind of the trained model; every encoder becomes a classifier."""
    if getattr(config, "is_encoder_decoder", False):
        return TEXT_TO_TEXT
    writes = any(name.endswith(("ForCausalLM", "LMHeadModel")) for name in architectures)
    is_encoder = config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES
    return CLASSIFIER if is_encoder and not writes else CAUSAL


def start(
    name: str, loading: Loading, *, from_scratch: bool, seed: int, prompts: Sequence[Prompt]
) -> Start:
    """Find the start of a training run, without reading weights.

    With `from_scratch`, which takes random weights, the name may also be that of a folder without
    weights or of a built-in configuration. The first training prompt's options become a
    classifier's classes.

    Raises:
        UserError: the model cannot be found, cannot learn the prompts' answers, or is quantized.
    """
    classes = tuple(option.name for option in prompts[0].answer.options)
    if name in SMALL and not from_scratch:
        raise UserError(f"{name} is a configuration without weights; pass --from-scratch")
    if from_scratch:
        begun = _from_scratch(name, loading, classes, seed, prompts)
    else:
        begun = _checkpoint(find_model(name, loading, trained_kind), loading, classes, seed)
    check_base([] if begun.found is None else [begun.found], loading)
    if begun.kind is CLASSIFIER and len(classes) < 2:
        raise UserError(
            f"{name} is an encoder, but the task requires generated text; expected a causal "
            "language model or a text-to-text model"
        )
    if begun.kind is TEXT_TO_TEXT:
        decoder_prefix(begun.outline())  # fails now, not after training
    return begun


def check_low_rank(begun: Start) -> None:
    """Check that an adapter can be trained for a model, and that peft is installed."""
    check_peft()
    if begun.found is None:
        raise UserError("an adapter changes a trained model; omit --lora-rank or --from-scratch")
    if begun.kind is CLASSIFIER:
        raise UserError(
            f"{begun.name} is a {begun.kind.name}, whose head is trained in full; omit --lora-rank"
        )
    if begun.found.adapter is not None:
        raise UserError(
            f"{begun.name} is an adapter itself; omit --lora-rank to train it and its base as "
            "one model"
        )


def _checkpoint(model: FoundModel, loading: Loading, classes: tuple[str, ...], seed: int) -> Start:
    if (method := quantization_of(model.config)) is not None:
        raise UserError(
            f"the weights of {model.name} are quantized ({method}) and cannot be trained; start "
            "from the model with ordinary weights"
        )
    load = partial(_loaded, model, loading)
    if model.kind is CLASSIFIER and set((model.config.id2label or {}).values()) != set(classes):
        _name_classes(model.config, classes)
        load = partial(_with_new_head, model, loading, seed)
    return Start(
        model.place,
        model.kind,
        model.config,
        model.tokenizer,
        {**loading.identity(), **model.source, "name": model.place, "files": model.fingerprint},
        load,
        model.source,
        loading.chat(),
        model,
    )


def _loaded(model: FoundModel, loading: Loading) -> PreTrainedModel:
    return load_found(model, loading).hf


def _with_new_head(model: FoundModel, loading: Loading, seed: int) -> PreTrainedModel:
    trusted = model.options["trust_remote_code"]
    if model.contents is not None:
        stored = model.contents.stored
        check_sizes(model.name, CLASSIFIER, model.config, stored, trust_remote_code=trusted)
    hf = _random(model.name, CLASSIFIER, model.config, loading, seed)
    with as_user_error("its weights", model.name), quiet_report():
        loaded, info = CLASSIFIER.auto.from_pretrained(
            model.location,
            config=model.config,
            output_loading_info=True,
            ignore_mismatched_sizes=True,
            dtype=torch.float32,
            **model.options,
        )
    check_complete(model.name, hf, {key: _but_heads(hf, keys) for key, keys in info.items()})
    # Discard the stored head, which may have the same number of classes under different names.
    hf.base_model.load_state_dict(loaded.base_model.state_dict())
    return hf


def _but_heads(hf: PreTrainedModel, keys: Any) -> Any:
    """The names of tensors, except those of heads and poolers."""
    if not isinstance(keys, set | list | tuple):
        return keys
    body = f"{hf.base_model_prefix}."
    names = [(key[0] if isinstance(key, tuple) else key, key) for key in keys]
    return [key for name, key in names if name.startswith(body) and ".pooler." not in name]


def _from_scratch(
    name: str, loading: Loading, classes: tuple[str, ...], seed: int, prompts: Sequence[Prompt]
) -> Start:
    origin: dict[str, Any] = {}
    source: dict[str, str] = {}
    chat = ChatFormat()
    tokenizer: PreTrainedTokenizerBase
    if name in SMALL:
        small = SMALL[name]
        kind, tokenizer = small.kind, _tokenizer(small, prompts)
        config = AutoConfig.for_model(
            small.model_type,
            vocab_size=len(tokenizer),
            pad_token_id=tokenizer.pad_token_id,
            bos_token_id=tokenizer.bos_token_id,
            eos_token_id=tokenizer.eos_token_id,
            **small.settings,
        )
    else:
        location, source = resolve(canonical_name(name), loading.revision)
        options = {"revision": loading.revision, "trust_remote_code": loading.trust_remote_code}
        if isinstance(location, Path):
            location = model_file(name, location)
        chat = loading.chat()
        config, kind, tokenizer = description_of(name, location, chat, trained_kind, **options)
        origin = {**loading.identity(), **source, "name": canonical_name(name)}
    if kind is CLASSIFIER:
        _name_classes(config, classes)
    return Start(
        name,
        kind,
        config,
        tokenizer,
        {**origin, "configuration": config.to_diff_dict()},
        partial(_random, name, kind, config, loading, seed),
        source,
        chat,
    )


def _random(
    name: str, kind: Kind, config: PreTrainedConfig, loading: Loading, seed: int
) -> PreTrainedModel:
    torch.manual_seed(seed)
    with as_user_error("config.json", name):
        hf = kind.auto.from_config(
            config,
            dtype=torch.float32,
            attn_implementation=loading.attn_implementation,
            trust_remote_code=loading.trust_remote_code,
        )
    device = loading.device or ("cuda" if torch.cuda.is_available() else "cpu")
    made: PreTrainedModel = hf.to(device)
    return made


def _name_classes(config: PreTrainedConfig, classes: tuple[str, ...]) -> None:
    config.id2label = dict(enumerate(classes))
    config.label2id = {name: index for index, name in enumerate(classes)}


VOCABULARY = 2048
"""Maximum number of tokens in the tokenizer's vocabulary."""

POSITIONS = 1024
"""Maximum number of tokens in a prompt."""

_READ = 10_000
"""Number of prompts on which the tokenizer is trained."""

_SPECIAL = ("<pad>", "<s>", "</s>")


@dataclass(frozen=True, slots=True)
class Small:
    """A built-in configuration."""

    kind: Kind
    model_type: str
    settings: Mapping[str, Any]
    around: str
    """Special tokens around an input, where $A is the input."""


SMALL = {
    "small-encoder": Small(
        CLASSIFIER,
        # A model with learned positions and norms after the layers needed about twice as many
        # prompts as this one. With the usual standard deviation of 0.02 for random weights, the
        # model learned nothing for a long time.
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
            # With the usual factor of 1, such a small T5 only memorizes prompts.
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
"""Built-in configurations, by the name given instead of a model's name."""


def _tokenizer(small: Small, prompts: Sequence[Prompt]) -> PreTrainedTokenizerFast:
    """Byte-pair encoding for the prompts' texts and answers, with one token per frequent word."""
    tokenizer = Tokenizer(models.BPE())
    # A word has the same token at the beginning of an input as elsewhere.
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
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="<pad>", bos_token="<s>", eos_token="</s>"
    )

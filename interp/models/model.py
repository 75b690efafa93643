"""A loaded model and its tokenizer: an unmodified Hugging Face model, and facts about it."""

import hashlib
import inspect
import json
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import torch
import transformers
from accelerate.utils.memory import should_reduce_batch_size
from torch import nn
from transformers import PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.auto.modeling_auto import MODEL_FOR_MASKED_LM_MAPPING_NAMES
from transformers.utils.hub import TRANSFORMERS_DYNAMIC_MODULE_NAME

from interp.errors import ModelError, UserError, described, one_line, shortened
from interp.models.architectures import anatomy_of, family_modules, listed_for
from interp.models.chat_template import PLAIN, ChatFrame, Turn
from interp.models.families import settings
from interp.models.families.attention import calls_registered
from interp.models.families.modules import Architecture
from interp.models.kinds import CAUSAL, CLASSIFIER, TEXT_TO_TEXT, Kind, kind_of
from interp.models.layers import Anatomy, Layer
from interp.models.loading import ChatFormat
from interp.models.names import is_name
from interp.models.own_words import own_system_prompt
from interp.models.precision import exact_gradients
from interp.models.quantized import blocking_module, can_dequantize, quantization_of
from interp.models.thinking import ThoughtMarks, find_marks, thinking_frame, thinks_anyway
from interp.models.tokenizer import check_tokenizer
from interp.models.weights import device_of, is_sharded, one_token, weights_of
from interp.prompts.thought import Thought
from interp.stored.output import StoredTexts


@dataclass(frozen=True)
class Model:
    """A model of any `Kind` with its tokenizer: the object that the whole toolkit measures.

    Wrap a model that is already in memory with `Model(name, hf, tokenizer)`.

    Raises:
        UserError: the name is not printable text, the tokenizer provides no character offsets or
            has token ids without embeddings, or the model cannot answer.
    """

    name: str
    """Name of the model in tables."""
    hf: PreTrainedModel
    """The model itself, unmodified."""
    tokenizer: PreTrainedTokenizerBase
    """A fast tokenizer, whose character offsets locate segments."""
    source: dict[str, str] = field(default_factory=dict)
    """The source of the model: hub name or folder, and revision."""
    chat: ChatFormat = field(default_factory=ChatFormat)
    """Settings for writing prompts in the model's chat template."""
    notes: tuple[str, ...] = ()
    """Notes about the model, such as unused stored tensors and `thinking_note`."""
    thoughts: Mapping[str, tuple[Thought, ...]] = field(default_factory=dict)
    """The model's own thoughts for each prompt id, one per draw; used only if `chat.thinks`."""
    thought_texts: StoredTexts | None = None
    """The file from which the thoughts were read; None if this toolkit has generated them."""

    def __post_init__(self) -> None:
        if not is_name(self.name):
            raise UserError(
                f"the name of a model is {described(self.name)}; expected printable text"
            )
        check_tokenizer(self.name, self.tokenizer, self.hf.config, self.chat)
        _ = self.kind

    def __repr__(self) -> str:
        parameters = self.hf.num_parameters()
        made = f"{type(self.hf).__name__}, {parameters:,} parameters, {self.dtype} on {self.device}"
        return f"Model({self.name!r}, {made})"

    @cached_property
    def kind(self) -> Kind:
        """The model's kind; a UserError if it cannot answer, or is a classifier but no encoder."""
        kind = kind_of(self.hf.config, [type(self.hf).__name__])
        if kind is CLASSIFIER and {self.cache_argument, "use_cache"} & self.forward_arguments:
            raise UserError(
                f"{self.name} ({type(self.hf).__name__}) is a classifier built on a decoder, "
                "which pools its last token; expected a classifier built on an encoder, such as "
                "BERT or RoBERTa"
            )
        config = self.hf.config
        encodes = config.model_type in MODEL_FOR_MASKED_LM_MAPPING_NAMES
        if kind is CAUSAL and encodes and getattr(config, "is_decoder", None) is False:
            raise UserError(
                f"{self.name} ({type(self.hf).__name__}) is an encoder, whose tokens also attend "
                "to later ones, so its answers are not those of a language model; set is_decoder "
                "to true in its config.json if it was trained as a decoder"
            )
        return kind

    @cached_property
    def anatomy(self) -> Anatomy:
        """The model's layers and their modules, used by all code that inspects the model.

        Raises:
            UserError: the architecture is not supported; even so, answers, input gradients and
                attention can be read.
        """
        with self.measuring():
            return anatomy_of(self.hf)

    @property
    def architecture(self) -> Architecture:
        """The names of modules in the model's family, or the most similar one; see `anatomy`."""
        return self.anatomy.names

    @property
    def layers(self) -> Sequence[Layer]:
        """The layers, first to last; see `anatomy`."""
        return self.anatomy.layers

    @property
    def is_mapped(self) -> bool:
        """Whether the architecture is supported."""
        try:
            return bool(self.anatomy)
        except UserError:
            return False

    @property
    def text_config(self) -> PreTrainedConfig:
        """The configuration of the part that reads text; most models have no other part."""
        return self.hf.config.get_text_config()

    @cached_property
    def forward_arguments(self) -> frozenset[str]:
        """Names of the arguments to a forward pass; some models accept no positions or no cache."""
        return frozenset(inspect.signature(type(self.hf).forward).parameters)

    @property
    def cache_argument(self) -> str:
        """The argument that takes keys and values; since transformers 5.24 it has another name."""
        older = "past_key_values"
        renamed = older not in self.forward_arguments and "cache" in self.forward_arguments
        return "cache" if renamed else older

    @property
    def device(self) -> torch.device:
        """The device of the input embeddings, and therefore of the inputs."""
        return device_of(self.hf.get_input_embeddings())

    @property
    def has_weights(self) -> bool:
        """Whether the weights are on this machine, and not only on a server (`load_skeleton`)."""
        return self.device.type != "meta"

    @property
    def dtype(self) -> str:
        """Name of the parameters' type, such as "float32"."""
        return str(self.hf.dtype).removeprefix("torch.")

    @property
    def quantization(self) -> str | None:
        """Quantization of the weights, such as "bitsandbytes 4bit nf4"; None if not quantized."""
        return quantization_of(self.hf.config)

    def check_differentiable(self, what: str) -> None:
        """Raise a UserError if no gradients, which `what` needs, pass through the weights."""
        quantizer: Any = getattr(self.hf, "hf_quantizer", None)
        if quantizer is None:
            return
        reason = "for which transformers has no backward pass"
        if quantizer.is_trainable:
            if self._blocking_module is None:
                return
            reason = f"and no gradient passes through {self._blocking_module}"
        way = "weights in another format"
        if can_dequantize(self.hf.config):
            way = "load the model with --dequantize (dequantize=True), which needs more memory"
        raise UserError(
            f"{what} needs gradients, but the weights of {one_line(self.name)} are quantized by "
            f"{self.quantization}, {reason}; use methods that need no gradient, or {way} "
            "(docs/formats.md)"
        )

    @cached_property
    def _blocking_module(self) -> str | None:
        return blocking_module(self.hf, one_token(self.hf))

    @cached_property
    def is_sharded(self) -> bool:
        """Whether several processes hold parts of the weights (transformers' `tp_plan`)."""
        return any(map(is_sharded, self.hf.parameters()))

    def check_whole(self, what: str) -> None:
        """Raise a UserError if this process lacks heads or weights, all of which `what` reads."""
        if self.is_sharded:
            raise UserError(
                f"{what} needs whole layers, but {self.name} is spread over processes "
                "(tensor_parallel, or transformers' tp_plan), each of which holds only some of the "
                "heads; load it in one process, for instance with --device-map auto. Answers, "
                "input gradients, and patches of resid_pre, resid_mid, resid_post, attn_out and "
                "mlp_out are right in several processes too"
            )

    @property
    def attn_implementation(self) -> str:
        """Implementation of attention: "sdpa", "eager", "flash_attention_2" ..."""
        return str(self.hf.config._attn_implementation)

    @cached_property
    def computes_attention_alone(self) -> bool:
        """Whether its attention calls no registered function that can be exchanged or watched."""
        if self.hf._supports_attention_backend or self.attn_implementation == "eager":
            return False
        with self.measuring():
            inputs = one_token(self.hf) | self.taken({"use_cache": False})
            return not calls_registered(self.hf, inputs)

    @property
    def allows_padding(self) -> bool:
        """Whether prompts of different lengths may share a batch.

        transformers' eager attention computes its softmax in float32, where the float64 mask of a
        padding row overflows to NaN. A model that accepts no positions may count padding before a
        prompt as positions, and recurrent or convolutional layers propagate padding. In Gemma 3n,
        whose streams are scaled to one norm (AltUp), gradients of padding are not finite.
        """
        overflows = self.dtype == "float64" and (
            self.attn_implementation == "eager" or self.computes_attention_alone
        )
        counts = self.padding_side == "left" and not self.takes_positions
        scales = settings.has_several_streams(self.text_config)
        reads = self.hf.config.model_type in settings.READING_PADDING
        return not (overflows or counts or scales or reads or self.is_recurrent)

    @property
    def padding_side(self) -> str:
        """The side on which batches are padded: "left" or "right".

        The prompts of a causal model all end at the last position. Other models count positions
        from the first column, and encoders also pool the token there.
        """
        return "left" if self.kind is CAUSAL else "right"

    @property
    def takes_positions(self) -> bool:
        """Whether a forward pass receives the position of each token, counted from 0.

        A model that does not count from 0, such as CamemBERT as a decoder, counts by itself.
        """
        return "position_ids" in self.forward_arguments and not self._positions_before_first

    def taken(self, inputs: Mapping[str, Any]) -> dict[str, Any]:
        """The inputs that the model's forward pass accepts."""
        accepted = self.forward_arguments - (set() if self.takes_positions else {"position_ids"})
        return {name: value for name, value in inputs.items() if name in accepted}

    @property
    def is_recurrent(self) -> bool:
        """Whether some layers cache more than keys and values: a state or convolution inputs."""
        # transformers marks most of these models as stateful, but not those with convolutions.
        return bool(self.hf._is_stateful) or settings.keeps_states(self.text_config)

    @property
    def attention_layers(self) -> tuple[int, ...]:
        """The layers that have attention, if others have none; otherwise empty."""
        return settings.attention_layers(self.text_config)

    @cached_property
    def reads_tokens_again(self) -> bool:
        """Whether later layers also read the tokens, which the input embeddings do not replace."""
        return any(path.endswith(settings.READING_TOKENS) for path, _ in self.hf.named_modules())

    @property
    def context_length(self) -> int | None:
        """Length of the longest possible prompt, in tokens; None if not in the configuration."""
        length = settings.context_length(self.text_config)
        return None if length is None else length - self._positions_before_first

    @cached_property
    def _positions_before_first(self) -> int:
        """Number of unused positions at the start: RoBERTa begins at `padding_idx` + 1."""
        paddings = (
            getattr(module, "padding_idx", None)
            for path, module in self.hf.named_modules()
            if (path.endswith("position_embeddings") and isinstance(module, nn.Embedding))
            or hasattr(module, "create_position_ids_from_input_ids")
        )
        return max((1 + index for index in paddings if index is not None), default=0)

    @property
    def unembedding(self) -> nn.Module:
        """The module that maps the output of the final norm to logits, before any soft cap."""
        module: nn.Module = self.hf.get_output_embeddings()
        return module

    @property
    def family_modules(self) -> tuple[str, ...]:
        """The module of another package that describes the model's family, if there is one."""
        return family_modules(self.text_config)

    @property
    def _listed(self) -> Architecture:
        return listed_for(self.text_config, causal=not self.kind.reads_ahead)

    @property
    def residual_scale(self) -> float:
        """The factor that scales the outputs of attention and MLP when added to the stream."""
        return self._listed.residual_scale(self.text_config)

    @property
    def logit_scale(self) -> float:
        """The factor that scales logits before any soft cap; 1 for most models."""
        return self._listed.logit_scale(self.text_config)

    @property
    def logit_soft_cap(self) -> float | None:
        """Soft cap c, which turns logits x into c tanh(x / c) in Gemma 2; None without a cap."""
        return self._listed.logit_soft_cap(self.text_config)

    @property
    def chat_frame(self) -> ChatFrame:
        """The frame that the template writes around a first message; see `frame_behind`."""
        return self.frame_behind(())

    @cached_property
    def frame_behind(self) -> Callable[[tuple[Turn, ...]], ChatFrame]:
        """A function from earlier turns to the frame that the template writes around a message.

        It raises a UserError if the template cannot write messages (`chat_template.chat_frame`).
        """
        if self.kind is not CAUSAL:
            return lambda turns: PLAIN
        return lru_cache(maxsize=256)(partial(thinking_frame, self.tokenizer, self.chat))

    @cached_property
    def thought_marks(self) -> ThoughtMarks | None:
        """The marks around the model's thoughts; None if its template and vocabulary have none."""
        try:
            return find_marks(self.tokenizer, self.chat) if self.kind is CAUSAL else None
        except UserError:  # reported when the template writes a prompt
            return None

    @property
    def own_system_prompt(self) -> str:
        """The system prompt that the template writes although none was asked for; else empty."""
        try:
            return own_system_prompt(self.tokenizer, self.chat, self.chat_frame)
        except UserError:  # reported when the template writes a prompt
            return ""

    @property
    def thinking_note(self) -> str:
        """A note if the model thinks by default but its answers are read directly; else empty."""
        try:
            frame = self.chat_frame
        except UserError:
            return ""
        if self.chat.thinks:
            return ""
        if frame.direct:
            return (
                f"{self.name} may think before it answers, and its chat template has no switch "
                f"that omits thoughts: answers are read directly after {frame.direct!r}, which may "
                "be unlike its training. With thinking on, they are read after its own thought"
            )
        begins = thinks_anyway(self.tokenizer, self.chat, frame)
        return begins and (
            f"{self.name} may think before it answers: its chat template has {begins}, and no "
            "switch omits it. Scores are read at the beginning of its turn, so they may reflect "
            "how it begins a thought, not what it answers"
        )

    @cached_property
    def identity(self) -> str:
        """A hash of everything that affects results: weights, configuration and tokenizer.

        Generation settings are included only if their first or end tokens differ from the
        configuration's. A model from the hub is identified by its commit instead; one that only a
        server has, by all but its weights.
        """
        if "commit" in self.source:
            return f"{self.source['name']}@{self.source['commit']}"
        digest = hashlib.sha256()
        digest.update(self.hf.config.to_json_string(use_diff=True).encode())
        digest.update(str(self.tokenizer.chat_template).encode())
        digest.update(self.tokenizer.backend_tokenizer.to_str().encode())
        if settings := self._further_settings():
            digest.update(json.dumps(settings).encode())
        if not self.has_weights:
            return f"served {digest.hexdigest()}"
        for name, tensor in weights_of(self.hf):
            digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
            if not tensor.is_meta:
                digest.update(tensor.detach().cpu().flatten().view(torch.uint8).numpy().data)
        return digest.hexdigest()

    @property
    def end_tokens(self) -> list[int]:
        """The tokens that end an answer, from the tokenizer and the generation settings.

        Raises:
            UserError: a setting is not a token id.
        """
        settings = getattr(getattr(self.hf, "generation_config", None), "eos_token_id", None)
        ids = settings if isinstance(settings, list | tuple) else [settings]
        end = self.tokenizer.eos_token_id
        listed = self._tokens("eos_token_id", [id_ for id_ in ids if id_ is not None])
        return sorted(listed | ({end} if end is not None else set()))

    def token_setting(self, name: str) -> int | None:
        """A token id from the configuration or, failing that, from the generation settings.

        Raises:
            UserError: a setting is not a token id.
        """
        for config in (self.hf.config, self.hf.generation_config):
            value = getattr(config, name, None)
            if value is not None:
                return self._tokens(name, [value]).pop()
        return None

    def _tokens(self, name: str, values: Sequence[object]) -> set[int]:
        """The token ids that a setting lists, of which there may be millions."""
        size = getattr(self.text_config, "vocab_size", None)
        tokens = set[int]()
        for value in values:
            if type(value) is not int or value < 0 or (size is not None and value >= size):
                raise UserError(
                    f"the settings of {self.name} set {name} to {one_line(repr(value))}; expected "
                    f"a token id{'' if size is None else f', from 0 to {size - 1:,}'}. Correct it "
                    "in generation_config.json or config.json"
                )
            tokens.add(value)
        return tokens

    def _further_settings(self) -> dict[str, object]:
        """Settings in use that are not part of the saved configuration or tokenizer."""
        config, further = self.hf.config, dict[str, object]()
        ends = getattr(config.get_text_config(), "eos_token_id", None)
        if self.end_tokens != sorted(ends if isinstance(ends, list) else [ends] if ends else []):
            further["end_tokens"] = self.end_tokens
        if self.kind is TEXT_TO_TEXT:
            names = ("decoder_start_token_id", "forced_bos_token_id")
            absent = [name for name in names if getattr(config, name, None) is None]
            further |= {name: value for name in absent if (value := self.token_setting(name))}
        for flag in ("split_special_tokens", "clean_up_tokenization_spaces"):
            if getattr(self.tokenizer, flag, False):
                further[flag] = True
        return further

    @contextmanager
    def measuring(self) -> Iterator[None]:
        """Within the block, the model is in evaluation mode and its parameters get no gradients.

        Raises:
            UserError: PyTorch failed to compile a kernel in the block, or the model's own code
                failed.
        """
        training = self.hf.training
        trainable = [p for p in self.hf.parameters() if p.requires_grad]
        self.hf.train(False)
        for parameter in trainable:
            parameter.requires_grad_(False)
        try:
            with exact_gradients(self.hf.get_output_embeddings()):
                yield
        except _FAILURES as error:
            self._refuse_failed(error)
            raise
        finally:
            self.hf.train(training)
            for parameter in trainable:
                parameter.requires_grad_(True)

    def _refuse_failed(self, error: Exception) -> None:
        """Raise a ModelError if PyTorch could not compile a kernel, or the model's code failed."""
        # Compare names, because importing the class loads PyTorch's compiler, which takes seconds.
        if any(kind.__name__ == "TorchDynamoException" for kind in type(error).__mro__):
            reason = str(error).strip().splitlines()[0]
            raise ModelError(
                f"PyTorch cannot compile what {self.name} computes: {shortened(reason)}; pass "
                "another --attn-implementation, such as sdpa, or install a C++ compiler"
            ) from error
        frames = [Path(frame.filename) for frame in traceback.extract_tb(error.__traceback__)]
        deciding = [file for file in frames if _is_of_model(file) or file.is_relative_to(_PACKAGE)]
        # The last of these decides: our own hooks run inside the model, and PyTorch inside both.
        if deciding and _is_of_model(deciding[-1]) and not should_reduce_batch_size(error):
            raise ModelError(
                f"{self.name} ({self.hf.config.model_type}) cannot be run in this way; its own "
                f"code says: {type(error).__name__}: {shortened(str(error))}"
            ) from error


_FAILURES = (AssertionError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)
"""Errors of a model's own code and of PyTorch."""

_PACKAGE = Path(__file__).parents[1]
_MODELS = Path(transformers.__file__).parent


def _is_of_model(file: Path) -> bool:
    """Whether a file has a model's code: of transformers, or what comes with a checkpoint."""
    return file.is_relative_to(_MODELS) or TRANSFORMERS_DYNAMIC_MODULE_NAME in file.parts

"""GGUF files: one file with the configuration, tokenizer and weights of a model, often quantized.

transformers makes the configuration and names the weights; the header, the tokenizer and the values
of the weights are read here, each once.
"""

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from io import BufferedReader
from pathlib import Path
from tempfile import TemporaryDirectory
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from transformers import AutoConfig, PreTrainedConfig, PreTrainedModel, PreTrainedTokenizerBase
from transformers.modeling_gguf_pytorch_utils import (
    TENSOR_PROCESSORS,
    TensorProcessor,
    get_gguf_hf_weights_map,
    load_gguf_checkpoint,
)

from interp.errors import UserError, one_line
from interp.files import open_plain
from interp.models import gguf_header
from interp.models.checkpoint import StoredTensor, as_user_error
from interp.models.formats import Contents, Format
from interp.models.gguf_header import Header, header_of, unchanged_header
from interp.models.gguf_tokenizer import build_tokenizer, end_tokens
from interp.models.kept import kept_weights

MODEL = "a whole GGUF file of a language model whose architecture transformers reads"

_PLAIN = ("F64", "F32", "F16", "BF16", "I8", "I16", "I32", "I64")
"""Types that store each value by itself, as the types of safetensors do."""

_MOST_EXPERTS = 1024

_WIDEST = {bool: "BOOL", int: "INT64", float: "FLOAT64", str: "STRING"}
"""Types of the format that hold any setting, by those of Python."""

_CODE = Path(__file__), Path(gguf_header.__file__)
"""The sources of what reads weights."""

_CHUNK = 2**18
"""Number of values that are dequantized at once: few enough to stay in a processor's cache."""


def _header(place: Path) -> Header:
    if find_spec("gguf") is None:
        raise UserError(
            f"{one_line(place.name)} is a GGUF file, which needs the package gguf; run pip install "
            "'interp[gguf]'"
        )
    return header_of(place)


def _packed(header: Header) -> str | None:
    """The type of a file whose weights are quantized: its own name for it, or that of most values.

    A file such as Q4_K_M mixes types, among which its own may be rare.
    """
    from gguf import LlamaFileType

    values: Counter[str] = Counter()
    for tensor in header.tensors.values():
        if tensor.dtype not in _PLAIN:
            values[tensor.dtype] += tensor.size
    names: dict[Any, str] = {
        kind.value: kind.name.removeprefix("MOSTLY_") for kind in LlamaFileType
    }
    file_type = names.get(header.settings.get("general.file_type"), "GUESSED")
    if not values or file_type not in ("GUESSED", "ALL_F32", "F16", "BF16"):
        return file_type if values else None
    return values.most_common(1)[0][0]


def _check_settings(settings: Mapping[str, Any], tensors: Mapping[str, StoredTensor]) -> None:
    """Check that the file is a whole model, whose size and rotary scaling transformers can read."""
    kind = settings.get("general.architecture")
    if not isinstance(kind, str):
        raise ValueError("the header names no general.architecture")
    if settings.get("split.count", 0) not in (0, 1):
        raise ValueError("it is a part of a split model; join the parts with llama-gguf-split")
    if not tensors:
        raise ValueError("it holds no tensors")
    limits = {"block_count": len(tensors), "expert_count": _MOST_EXPERTS}
    for key, most in limits.items():
        value = settings.get(f"{kind}.{key}", 0)
        if not isinstance(value, int) or value > most:
            raise ValueError(
                f"it specifies {key} = {one_line(str(value), 40)}, but holds {len(tensors):,} "
                "tensors"
            )
    # transformers ignores tensors that scale rotary frequencies.
    scaled = [key for key in tensors if key.startswith(("rope_freqs.", "rope_factors_"))]
    if settings.get(f"{kind}.rope.scaling.type", "none") != "none":
        scaled.append(f"{kind}.rope.scaling.type")
    if scaled:
        raise ValueError(
            f"transformers ignores {one_line(scaled[0], 60)}, which scales rotary frequencies, and "
            "would compute other numbers than the model; pass the model's original folder"
        )


class GGUF(Format):
    """The format of GGUF files."""

    configuration = "its configuration"
    expected = MODEL
    may_quantize = False
    may_keep = True

    def read(self, name: str, place: Path, *, allow_pickle: bool) -> Contents:
        """Check the header, without reading weights; a UserError if it is damaged."""
        with as_user_error(one_line(place.name), name, expected=MODEL):
            header = _header(place)
            packed = _packed(header)
        stored = {
            key: tensor if tensor.dtype in _PLAIN else StoredTensor(tensor.shape, "F32")
            for key, tensor in header.tensors.items()
        }
        return Contents(stored, packed=packed)

    def load_config(self, place: Path | str, **options: Any) -> PreTrainedConfig:
        """The configuration that transformers makes of the settings, or a ValueError."""
        header = _header(Path(place))
        _check_settings(header.settings, header.tensors)
        try:
            return AutoConfig.for_model(**_settings(header))
        except OSError:  # of the folder for temporary files
            raise
        # Its readers raise any error of Python about settings of other types.
        except Exception as error:
            raise ValueError(
                f"its settings are none from which transformers makes a model of the architecture "
                f"{one_line(header.architecture, 40)!r}"
            ) from error

    def load_tokenizer(self, place: Path | str, **options: Any) -> PreTrainedTokenizerBase:
        """The tokenizer, of which nothing comes from files beside the model."""
        return build_tokenizer(header_of(Path(place)))

    def load_weights(
        self,
        auto: Any,
        place: Path | str,
        config: PreTrainedConfig,
        *,
        keep: bool = False,
        **options: Any,
    ) -> tuple[PreTrainedModel, dict[str, Any]]:
        """The model with its dequantized weights, which `keep` keeps for the next time."""
        file = Path(place).resolve()
        header = header_of(file)
        dtype = options["dtype"]
        with torch.device("meta"):
            # This call sets the type in the configuration.
            typed = {} if dtype == "auto" else {"dtype": dtype}
            empty = auto.from_config(deepcopy(config), **typed)
        make = partial(_weights, file, header, empty)
        weights = kept_weights(file, _CODE, dtype, make) if keep else make()
        hf, info = type(empty).from_pretrained(
            None, config=config, state_dict=weights, output_loading_info=True, **options
        )
        hf.generation_config.eos_token_id = end_tokens(header) or None
        unchanged_header.cache_clear()
        return hf, info

    def finish(self, name: str, hf: PreTrainedModel, contents: Contents) -> None:
        """Raise a UserError if the file holds more numbers than the model.

        transformers names no tensors that it expects in no model of this architecture, such as
        those of layers beyond block_count, or biases.
        """
        held = sum(tensor.size for tensor in contents.stored.values())
        kept = hf.state_dict().keys()
        tensors = (*hf.named_parameters(), *hf.named_buffers())
        used = sum(tensor.numel() for key, tensor in tensors if key in kept)
        if held > used:
            raise UserError(
                f"the GGUF file of {one_line(name)} holds {held:,} numbers, but a model with its "
                f"settings has only {used:,}, so transformers would ignore some; copy or download "
                "the file again, or pass the model's original folder"
            )


def _settings(header: Header) -> dict[str, Any]:
    """The configuration that transformers makes of a header, with one token for each embedding.

    It reads files alone: here a small one, without the weights and the lists of the tokenizer,
    through which it would go element by element. The last embeddings may belong to no token.
    """
    from gguf import GGUFValueType, GGUFWriter

    with (
        TemporaryDirectory() as folder,
        closing(GGUFWriter(Path(folder, "settings.gguf"), header.architecture)) as writer,
    ):
        writer.add_array("tokenizer.ggml.tokens", [""])
        for key, value in header.settings.items():
            # No setting is made of lists about the tokenizer or, such as tags, the file.
            listed = key.startswith(("tokenizer.", "general.")) and isinstance(value, list)
            elsewhere = key.endswith(("general.architecture", "general.alignment", ".vocab_size"))
            if not listed and not elsewhere:
                kinds = {_WIDEST[type(one)] for one in value} if isinstance(value, list) else set()
                if len(kinds) == 1:
                    of = GGUFValueType.ARRAY, GGUFValueType[kinds.pop()]
                    writer.add_key_value(key, value, *of)
                else:  # the writer refuses lists that no file holds
                    kind = _WIDEST.get(type(value), "ARRAY")
                    writer.add_key_value(key, value, GGUFValueType[kind])
        for key in header.tensors:
            writer.add_tensor(key, np.zeros(1, np.float32))
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.flush()
        config: dict[str, Any] = load_gguf_checkpoint(str(writer.path))["config"]
    embedded = header.tensors.get("token_embd.weight")
    tokens = header.settings.get("tokenizer.ggml.tokens", [])
    return {**config, "vocab_size": embedded.shape[0] if embedded else len(tokens)}


def _names(empty: PreTrainedModel, processor: TensorProcessor) -> dict[str, str]:
    """The names of the weights by their names in the file.

    transformers also looks in every module, each time with a new table of all names. Only the
    model without its head is needed, which some files hold.
    """
    names: dict[str, str] = {}
    base = empty.base_model_prefix
    for part, prefix in ((empty.base_model, f"{base}."), (empty, "")):
        alone: Any = SimpleNamespace(
            config=part.config, state_dict=part.state_dict, named_children=dict
        )
        names |= get_gguf_hf_weights_map(alone, processor, qual_name=prefix)
    return names


def _weights(file: Path, header: Header, empty: PreTrainedModel) -> dict[str, torch.Tensor]:
    """The dequantized weights by transformers' names, in the order of its dimensions.

    Each gets the type that it has in the model, part by part if the processor leaves its values as
    they are, so that there are never two of all weights. The largest come first, while there is
    room for a second one in fp32.
    """
    made_by: Any = TENSOR_PROCESSORS.get(header.architecture, TensorProcessor)
    processor = made_by(empty.config.to_dict())
    names, types = _names(empty, processor), _types(empty)
    weights: dict[str, torch.Tensor] = {}

    def processed(key: str, values: np.ndarray, into: dict[str, torch.Tensor]) -> Any:
        # Into the last, a processor puts what it makes of several tensors, or several of one.
        parsed = {"tensors": into}
        return processor.process(
            weights=values, name=key, tensor_key_mapping=names, parsed_parameters=parsed
        )

    with open_plain(file) as stream:
        for key in sorted(header.tensors, key=lambda key: -header.tensors[key].size):
            dtype = types.get(names.get(key, ""), torch.float32)
            stand_in = np.broadcast_to(np.float32(-1), header.tensors[key].shape)
            tried = processed(key, stand_in, {}) if dtype != torch.float32 else None
            if tried is not None and tried.weights is stand_in and tried.name == key:
                weights[names[key]] = _values(stream, header, key, dtype)
                continue
            made = processed(key, _values(stream, header, key).numpy(), weights)
            if (name := names.get(made.name)) is not None:
                values = torch.from_numpy(np.ascontiguousarray(made.weights))
                weights[name] = values.to(dtype=types.get(name))
    return weights


def _types(empty: PreTrainedModel) -> dict[str, torch.dtype]:
    """The types of a model's weights; none if transformers keeps some of them in fp32."""
    if empty._keep_in_fp32_modules or empty._keep_in_fp32_modules_strict:
        return {}
    return {name: tensor.dtype for name, tensor in empty.state_dict().items()}


def _values(
    stream: BufferedReader, header: Header, key: str, dtype: torch.dtype = torch.float32
) -> Float[torch.Tensor, "..."]:
    """The values of a tensor, as the package gguf dequantizes them to fp32, in a type."""
    from gguf import GGML_QUANT_SIZES, GGMLQuantizationType, dequantize

    tensor = header.tensors[key]
    kind = GGMLQuantizationType[tensor.dtype]
    block, nbytes = GGML_QUANT_SIZES[kind]
    # NumPy asks for large pages.
    values = torch.from_numpy(np.empty(tensor.size * dtype.itemsize, np.uint8)).view(dtype)
    stream.seek(header.places[key])
    for start in range(0, tensor.size, _CHUNK):
        part = values[start : start + _CHUNK]
        # One row, because the package goes through rows in groups; writable for PyTorch.
        packed = bytearray(stream.read(len(part) // block * nbytes))
        part.copy_(torch.from_numpy(dequantize(np.frombuffer(packed, np.uint8)[None], kind)[0]))
    return values.reshape(tensor.shape)


FORMAT = GGUF()

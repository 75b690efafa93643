"""Load models by hub name, local folder, GGUF file or organism name."""

import hashlib
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import torch
from transformers import (
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging
from transformers.utils.peft_utils import find_adapter_config_file

from interp.console import echo
from interp.errors import UserError, described, one_line
from interp.models.adapters import SETTINGS, Adapter, base_of, is_adapter, merged, read_adapter
from interp.models.checkpoint import (
    Stored,
    as_user_error,
    check_regular,
    has_tokenizer,
    read_configuration,
    stored_tensors,
)
from interp.models.formats import Contents, Format, format_of, load_config, model_file
from interp.models.kinds import CLASSIFIER, Kind, kind_of
from interp.models.loading import Loading, canonical_name
from interp.models.model import Model, check_tokenizer, load_tokenizer
from interp.models.names import absolute, chosen, short_name
from interp.models.quantized import (
    can_dequantize,
    check_blocks,
    check_quantization,
    dequantized,
    dequantizing,
    keep_unpacked,
    quantization_config,
    quantization_of,
    quantized_weights,
    run_eagerly,
    without_marks,
)
from interp.models.resolve import downloaded_weights, pinned, resolve
from interp.models.tensor_parallel import check_spread, spreading
from interp.models.weights import (
    check_complete,
    check_counts,
    check_device,
    check_sizes,
    check_windows,
    one_token,
    quiet_report,
)
from interp.options import with_options_of


@with_options_of(Loading)
def load_model(name: str, **options: Any) -> Model:
    """Load a causal language model, sequence classifier or text-to-text model, and its tokenizer.

    A LoRA adapter is merged into its base.

    Args:
        name: hub name, local folder of a model or an adapter, GGUF file, or "organism/NAME" for a
            packaged organism. A folder's model is named by the last part of its path;
            "NAME=PATH" names it otherwise.
        **options: the fields of `Loading`.

    Raises:
        UserError: the model cannot be found, is damaged or incomplete, its weights do not fit its
            configuration, or an argument is invalid.
    """
    if not isinstance(name, str):
        raise UserError(
            f"the name of a model is {described(name)}; expected a string, such as "
            "'organism/llama-shallow'"
        )
    loading = Loading(**options)
    return load_found(find_named(name, loading), loading)


@dataclass(frozen=True, slots=True)
class FoundModel:
    """An existing model whose weights are not yet loaded."""

    name: str
    """Name of the model in tables."""
    place: str
    """The user's canonical name of its location: a folder, a GGUF file, a hub name or
    organism/NAME.
    """
    location: Path | str
    """Local folder or GGUF file, or name on the hub."""
    source: dict[str, str]
    """The location of the model, for records."""
    fingerprint: str | None
    """A value that changes whenever the files of a local model change; None for a model on the
    hub, which is identified by its commit.
    """
    tokenizer: PreTrainedTokenizerBase
    config: PreTrainedConfig
    kind: Kind
    options: Mapping[str, Any]
    """Options for transformers: revision, use_safetensors, trust_remote_code."""
    contents: Contents | None = None
    """What the files of a local model hold; None for a model on the hub, whose weights may not be
    downloaded yet.
    """
    adapter: Adapter | None = None
    """An adapter to merge into the model. If there is one, all other fields except name, source,
    fingerprint and tokenizer describe its base.
    """

    @property
    def allow_pickle(self) -> bool:
        """Whether weights may be pickles."""
        return self.options["use_safetensors"] is None

    @property
    def format(self) -> Format:
        """The format in which the model is stored."""
        return format_of(self.location)

    @property
    def unread_pickle(self) -> str | None:
        """Name of a pickle beside the weights of a local model that is not opened."""
        if isinstance(self.location, str):
            return None
        return self.format.unread(self.location, allow_pickle=self.allow_pickle)

    def dequantizing(self) -> dict[str, Any]:
        """The options with which transformers loads quantized weights as ordinary ones.

        Raises:
            UserError: the weights are not quantized, or transformers cannot dequantize them.
        """
        if self.contents is not None and self.contents.packed is not None:
            return self.format.options()  # a format that is always dequantized
        return dequantizing(self.name, self.config)

    def checksum(self) -> str:
        """A hash of the configuration and weights, or the commit on the hub."""
        if isinstance(self.location, Path):
            return self.format.checksum(self.name, self.location, allow_pickle=self.allow_pickle)
        return f"{self.place}@{self.source.get('commit', self.source['revision'])}"


def load_found(found: FoundModel, loading: Loading) -> Model:
    """Load the weights of a model whose configuration and tokenizer are already read.

    Notes about the model are written to standard error.

    Raises:
        UserError: the device does not exist, or loading fails as in `load_model`.
    """
    device, dtype = loading.device, loading.dtype
    if device is not None:
        check_device(device)
    elif loading.device_map is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    # Load the model directly onto its device, since a quantized model cannot be moved afterwards.
    placing = {"device_map": loading.device_map or device}
    if loading.ranks > 1:
        placing = spreading(found.name, loading)
    if dtype == "auto" and device is not None and torch.device(device).type == "cpu":
        dtype = "float32"
    hf, notes = _load_weights(
        found,
        dtype=dtype,
        **placing,
        attn_implementation=loading.attn_implementation,
        **_quantizing(found, loading, dtype),
    )
    hf = without_marks(dequantized(found.name, hf) if loading.dequantize else hf)
    if hf.dtype == torch.float64 and "grouped_mm" in hf.get_experts_implementation().values():
        # PyTorch's grouped matrix product, used for experts, does not support float64.
        hf.set_experts_implementation("eager")
    keep_unpacked(hf)
    _run_first_pass(found, hf, spread=loading.ranks > 1)
    if found.adapter is not None:
        hf = merged(found.adapter, hf)
    check_blocks(found.name, hf)
    source = dict(found.source)
    if (method := _dequantized(found, hf)) is not None:
        source["dequantized"] = method
        notes += (f"the weights of {found.name} are dequantized from {method}",)
    if (pickle := found.unread_pickle) is not None:
        notes += (
            f"{found.name} also holds {pickle}, which is not read and may differ from its weights",
        )
    return _noted(Model(found.name, hf, found.tokenizer, source, loading.chat(), notes))


def _noted(model: Model) -> Model:
    """The model with a note on its thinking, after its notes are written to standard error."""
    if model.thinking_note:
        model = replace(model, notes=(*model.notes, model.thinking_note))
    for note in model.notes:
        echo(note)
    return model


def check_on_hub(model: FoundModel | Model) -> None:
    """Check that a server can know a model: by its name on the hub.

    Raises:
        UserError: the model is not from the hub.
    """
    if model.source.get("kind") != "hub":
        raise UserError(
            f"remote execution requires a model from the hub, but {model.name} is not one; "
            "omit remote, or use a hub name"
        )


_OF_WEIGHTS = (
    *("device", "device_map", "tensor_parallel", "quantization", "allow_pickle"),
    "trust_remote_code",
)
"""Options that say how weights are loaded on this machine, or whose code computes with them."""


def load_skeleton(found: FoundModel, loading: Loading) -> Model:
    """A model without its weights, which a server has: its modules are empty.

    Raises:
        UserError: an option concerns weights on this machine, or the configuration describes no
            model.
    """
    for name in _OF_WEIGHTS:
        if value := getattr(loading, name):
            raise UserError(
                f"got {name} {value!r}, which concerns weights on this machine, but {found.name} "
                f"runs on a server; omit {name}, or omit remote"
            )
    options = {} if loading.dtype == "auto" else {"dtype": getattr(torch, loading.dtype)}
    with as_user_error(found.format.configuration, found.name), torch.device("meta"):
        hf = found.kind.auto_for(found.config).from_config(
            deepcopy(found.config), attn_implementation=loading.attn_implementation, **options
        )
    hf.train(False)
    hf.name_or_path = str(found.location)
    return _noted(Model(found.name, hf, found.tokenizer, dict(found.source), loading.chat()))


def find_named(text: str, loading: Loading) -> FoundModel:
    """Find a model from its location or NAME=PATH (`find_model`)."""
    choice = chosen(text)
    return find_model(choice.place, loading, named=choice.name)


def find_model(
    name: str,
    loading: Loading,
    kind_in: Callable[[PreTrainedConfig, Sequence[str]], Kind] = kind_of,
    *,
    named: str = "",
) -> FoundModel:
    """Find a model and read its configuration and tokenizer, but not its weights.

    The weights of an adapter's base are read once, to compute their checksum.

    Args:
        name: hub name, local folder, GGUF file or organism/NAME.
        loading: options for loading.
        kind_in: function that determines the kind from the configuration and the class names in
            it.
        named: the name of the model in tables; by default, `short_name` of its location.

    Raises:
        UserError: the model cannot be found, or is damaged or incomplete.
    """
    if not sys.stderr.isatty():  # progress bars are useless in logs and notebooks
        # transformers does not annotate this function.
        logging.disable_progress_bar()
    name = canonical_name(name)
    place = resolve(name, loading.revision)
    location, source = place.location, place.source
    contents: Contents | None = None
    folder: Path | None = None
    revision = loading.revision
    if isinstance(location, Path) and is_adapter(location):
        return _adapted(name, location, loading, kind_in, named or short_name(name))
    # After an adapter, because its folder may hold anything.
    if isinstance(location, Path):
        location = model_file(name, location)
        folder = location if location.is_dir() else None
        contents = format_of(location).read(name, location, allow_pickle=loading.allow_pickle)
        raw = contents.raw
        check_counts(name, raw, contents.stored)
    else:
        _check_no_adapter(name, loading.revision)
        folder, revision = pinned(name, loading.revision)
        source = {**source, "commit": revision}
        raw = read_configuration(name, folder)
        check_counts(name, raw)
    check_quantization(name, raw)
    options: dict[str, Any] = {"revision": revision}
    options["trust_remote_code"] = loading.trust_remote_code
    with as_user_error(format_of(location).configuration, name):
        config = load_config(location, **options)
        kind = kind_in(config, config.architectures or ())
        check_windows(name, config)
    with as_user_error("its tokenizer", name):
        tokenizer = load_tokenizer(location, **options)
        check_tokenizer(name, tokenizer, config, loading.chat())
    if folder is not None:
        check_regular(name, folder)
    with as_user_error("its folder", name):
        fingerprint = _fingerprint(location)
    options["use_safetensors"] = None if loading.allow_pickle else True
    shown = named or short_name(name)
    found = FoundModel(
        *(shown, name, location, source, fingerprint, tokenizer, config, kind, options, contents)
    )
    if loading.dequantize:
        found.dequantizing()
    if loading.ranks > 1:
        _check_plain(found)
        check_spread(shown, config, loading.ranks)
    return found


def _check_plain(found: FoundModel) -> None:
    """Reject a model whose weights are not loaded as they are stored."""
    own = quantization_of(found.config)
    if own is not None:
        raise UserError(
            f"the weights of {one_line(found.name)} are quantized ({own}), and quantized weights "
            "are not spread over processes: omit tensor_parallel"
        )


def _adapted(
    name: str,
    folder: Path,
    loading: Loading,
    kind_in: Callable[[PreTrainedConfig, Sequence[str]], Kind],
    named: str,
) -> FoundModel:
    """An adapter's base, together with the adapter to merge into it."""
    if loading.trust_remote_code:
        raise UserError(
            f"{one_line(name)} is an adapter, whose own files name its base, so no code that "
            "comes with the base is run. Omit trust_remote_code, or merge the adapter with peft"
        )
    for option in ("quantization", "tensor_parallel"):
        if getattr(loading, option) not in (None, 1):
            raise UserError(
                f"{one_line(name)} is an adapter, which is merged into its base: omit {option}"
            )
    adapter = read_adapter(name, folder)
    base = find_model(
        base_of(adapter, loading.base), loading.model_copy(update={"base": None}), kind_in
    )
    checksum = base.checksum()
    _check_base(adapter, base, checksum, dequantizes=loading.dequantize)
    tokenizer = base.tokenizer
    if has_tokenizer(folder):
        with as_user_error("its tokenizer", name):
            tokenizer = load_tokenizer(folder)
            check_tokenizer(name, tokenizer, base.config, loading.chat())
    with as_user_error("its folder", name):
        fingerprint = f"{_fingerprint(folder)} {base.fingerprint}"
    return replace(
        base,
        name=named,
        place=name,
        source={
            "kind": "adapter",
            "name": absolute(name),
            "adapter": adapter.checksum(),
            "base": base.source["name"],
            "base_checksum": checksum,
        },
        fingerprint=fingerprint,
        tokenizer=tokenizer,
        adapter=adapter,
    )


def _check_base(adapter: Adapter, base: FoundModel, checksum: str, *, dequantizes: bool) -> None:
    """Check that an adapter can be merged into a base, and that it was trained on this base."""
    shown, of = one_line(adapter.name), one_line(base.place)
    if base.adapter is not None:
        raise UserError(
            f"the base {of} of the adapter {shown} is an adapter itself; merge it first"
        )
    if base.kind is CLASSIFIER:
        raise UserError(
            f"the base {of} of the adapter {shown} is a {base.kind.name}; expected a causal "
            "language model or a text-to-text model"
        )
    own = quantization_of(base.config)
    if own is not None and not dequantizes:
        way = "; load them with --dequantize" if can_dequantize(base.config) else ""
        raise UserError(
            f"the weights of {of}, the base of the adapter {shown}, are quantized ({own}); an "
            f"adapter cannot be merged into them{way}"
        )
    if adapter.base is not None and adapter.base.checksum not in (None, checksum):
        raise UserError(
            f"{of} is not the model that the adapter {shown} was trained on: its configuration or "
            "weights have changed; pass the original model with --base, or train the adapter again"
        )


def _check_no_adapter(name: str, revision: str | None) -> None:
    """Reject an adapter on the hub, whose base transformers would load through peft."""
    with as_user_error("its folder", name):
        file = find_adapter_config_file(name, revision=revision)
    if file is not None:
        raise UserError(
            f"{one_line(name)} on the hub holds a LoRA adapter ({SETTINGS}), but adapters are "
            "loaded only from folders: download it, and pass its folder with --model"
        )


def _load_weights(found: FoundModel, **options: Any) -> tuple[PreTrainedModel, tuple[str, ...]]:
    """The model in evaluation mode, and notes about its weights."""
    stored = _stored(found) if found.contents is None else found.contents.stored
    if stored is not None:
        trusted: bool = found.options["trust_remote_code"]
        with as_user_error(found.format.configuration, found.name):
            check_sizes(found.name, found.kind, found.config, stored, trust_remote_code=trusted)
    method = quantization_of(found.config)
    other = can_dequantize(found.config) and "quantization_config" not in options
    with (
        quantized_weights(found.name, method, also=", or --dequantize" if other else ""),
        quiet_report(),
        warnings.catch_warnings(),
        found.format.readable(found.location) as (location, own),
    ):
        # Our own setting replaces the checkpoint's on purpose.
        warnings.filterwarnings("ignore", message="You passed .quantization_config")
        # transformers' annotations omit the information about loaded tensors that it also returns.
        loaded: Any = found.kind.auto_for(found.config).from_pretrained(
            location,
            output_loading_info=True,
            # `check_complete` reports mismatched sizes, like all other mismatches.
            ignore_mismatched_sizes=True,
            **found.options,
            **options,
            **own,
        )
    hf, info = loaded
    hf.train(False)
    hf.name_or_path = str(found.location)
    if found.contents is not None:
        found.format.finish(found.name, hf, found.contents)
    notes = check_complete(found.name, hf, info, quantized=method is not None)
    if method is not None:
        run_eagerly(hf)
    return hf, notes


def _dequantized(found: FoundModel, hf: PreTrainedModel) -> str | None:
    """The format of stored weights that are ordinary numbers once they are loaded."""
    if found.contents is not None and found.contents.packed is not None:
        return found.contents.packed
    return None if quantization_of(hf.config) else quantization_of(found.config)


@torch.no_grad()
def _run_first_pass(found: FoundModel, hf: PreTrainedModel, *, spread: bool) -> None:
    """Read one token, to find out whether the configuration can be computed with.

    Some quantized formats unpack their weights or compile kernels in the first pass; afterwards,
    the weights, and hence the model's identity, stay the same.
    """
    method = quantization_of(found.config)
    part = "its plan of tensor parallelism" if spread else found.format.configuration
    configured = as_user_error(part, found.name)
    with quantized_weights(found.name, method) if method else configured:
        assert isinstance(hf(**one_token(hf)).logits, torch.Tensor)


def _stored(found: FoundModel) -> Stored | None:
    """Download the tensors of a model on the hub; None if the model has none."""
    revision, allow_pickle = found.options["revision"], found.allow_pickle
    folder = downloaded_weights(found.place, revision, allow_pickle=allow_pickle)
    if folder is None:
        return None
    stored = stored_tensors(found.place, folder, allow_pickle=allow_pickle)
    check_counts(found.place, read_configuration(found.place, folder), stored)
    return stored


def _fingerprint(location: Path | str) -> str | None:
    """A hash of the names, sizes and modification times of the files of a local model."""
    if not isinstance(location, Path):
        return None
    seen = [
        (str(file.relative_to(location)), file.stat().st_size, file.stat().st_mtime_ns)
        for file in (location, *sorted(location.rglob("*")))
        if file.is_file()
    ]
    return hashlib.sha256(repr(seen).encode()).hexdigest()[:16]


def _quantizing(found: FoundModel, loading: Loading, dtype: str) -> dict[str, Any]:
    """The argument with which transformers quantizes; without one, it reads the checkpoint's."""
    quantization = loading.quantization
    if quantization is None:
        return found.dequantizing() if loading.dequantize else found.format.options()
    if not found.format.may_quantize:
        raise UserError(
            f"{one_line(found.place)} is a file whose weights are not quantized again; load it "
            f"without quantization {quantization!r}"
        )
    own = quantization_of(found.config)
    if own is not None:
        raise UserError(
            f"the weights of {one_line(found.name)} are quantized already ({own}); load them "
            f"without quantization {quantization!r}"
        )
    compute = str((found.config.dtype or "bfloat16") if dtype == "auto" else dtype)
    with as_user_error(found.format.configuration, found.name):
        compute_dtype = getattr(torch, compute.removeprefix("torch."))
    return {"quantization_config": quantization_config(quantization, compute=compute_dtype)}


def reinitialized(model: Model, *, seed: int = 0) -> Model:
    """The model with new random weights, drawn as its architecture specifies.

    The given model's own weights remain in memory.

    Raises:
        UserError: the weights are quantized, so they cannot be drawn again.
    """
    if model.quantization is not None:
        raise UserError(
            f"the weights of {model.name} are quantized ({model.quantization}) and cannot be drawn "
            "again; omit the reinitialized model with --no-reinitialized"
        )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        # transformers and torch do not annotate these calls.
        hf: Any = type(model.hf)(deepcopy(model.hf.config))
    return replace(model, hf=hf.to(device=model.device, dtype=model.hf.dtype).eval())


SMALL = 20_000_000
"""A model with fewer parameters gets one thread, because several threads would have to wait for
each other after every short operation. On two busy x86-64 cores (torch 2.13.0), attribution with
two threads was 0.11 times as fast as with one thread for a model with 1.6 million parameters, and
0.5 times as fast for a model with 65 million (hidden size 1,024, 4 layers). On idle cores, large
models are faster with more threads, so they keep PyTorch's default number.
"""


def set_threads(model: Model, threads: int | None) -> None:
    """Set the number of threads for a model in this process, with a message if it is reduced.

    Args:
        model: the measured model; on devices other than the CPU, nothing changes.
        threads: the value of --threads; if None, OMP_NUM_THREADS is used if it is set.
    """
    if threads is not None:
        torch.set_num_threads(threads)
    elif model.device.type == "cpu" and "OMP_NUM_THREADS" not in os.environ:
        own = _own_threads()
        threads = 1 if model.hf.num_parameters() < SMALL else own
        torch.set_num_threads(threads)
        if threads < own:
            echo(f"{model.name} is small and gets 1 of {own} threads; use --threads to change this")


@cache
def _own_threads() -> int:
    """PyTorch's default number of threads, before any model has changed it."""
    return torch.get_num_threads()

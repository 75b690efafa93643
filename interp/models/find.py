"""Find a model: a local folder, a packaged model, or a model on the hub or in its cache.

What describes it is read here: configuration, tokenizer, adapter; no weights yet.
"""

import hashlib
import os
import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url, try_to_load_from_cache
from huggingface_hub.errors import HfHubHTTPError, HFValidationError
from transformers import PreTrainedConfig, PreTrainedTokenizerBase
from transformers.utils import logging
from transformers.utils.hub import cached_file
from transformers.utils.peft_utils import ADAPTER_CONFIG_NAME, find_adapter_config_file

from interp.errors import UserError, one_line
from interp.files import is_plain
from interp.models.checkpoint import (
    as_user_error,
    check_regular,
    has_tokenizer,
    read_configuration,
)
from interp.models.formats import Contents, Format, format_of, model_file
from interp.models.kinds import CLASSIFIER, Kind, kind_of
from interp.models.loading import ChatFormat, Loading
from interp.models.names import (
    ModelChoice,
    absolute,
    canonical_name,
    chosen,
    format_name,
    is_local,
    is_model_file,
    short_name,
)
from interp.models.packaged import ORGANISMS, packaged
from interp.models.quantized import (
    can_dequantize,
    check_quantization,
    dequantizing,
    quantization_of,
)
from interp.models.tensor_parallel import check_spread
from interp.models.tokenizer import check_tokenizer, load_tokenizer
from interp.models.weights import check_counts, check_windows

if TYPE_CHECKING:
    from interp.models.adapters import Adapter

HUB_TIMEOUT = 5.0
"""Seconds to wait for the hub's answer about a model that is not on this machine."""


@dataclass(frozen=True, slots=True)
class FoundModel:
    """An existing model whose weights are not yet loaded."""

    name: str
    """Name of the model in tables."""
    place: str
    """The user's canonical name of its location: a folder, a GGUF file, a hub name or
    organism/NAME."""
    location: Path | str
    """Local folder or GGUF file, or name on the hub."""
    source: dict[str, str]
    """The location of the model, for records."""
    fingerprint: str | None
    """A value that changes whenever the files of a local model change; None for a model on the
    hub, which is identified by its commit."""
    tokenizer: PreTrainedTokenizerBase
    config: PreTrainedConfig
    kind: Kind
    options: Mapping[str, Any]
    """Options for transformers: revision, use_safetensors, trust_remote_code."""
    contents: Contents | None = None
    """What the files of a local model hold; None for a model on the hub, whose weights may not be
    downloaded yet."""
    adapter: "Adapter | None" = None
    """An adapter to merge into the model. If there is one, all other fields except name, source,
    fingerprint and tokenizer describe its base."""

    @property
    def allow_pickle(self) -> bool:
        """Whether weights may be pickles."""
        return self.options["use_safetensors"] is None

    @property
    def format(self) -> Format:
        """The format in which the model is stored."""
        return format_of(self.location)

    def dequantizing(self) -> dict[str, Any]:
        """The options with which transformers loads quantized weights as ordinary ones.

        Raises:
            UserError: the weights are not quantized, or transformers cannot dequantize them.
        """
        if self.contents is not None and self.contents.packed is not None:
            return {}  # a format that is always dequantized
        return dequantizing(self.name, self.config)

    def checksum(self) -> str:
        """A hash of the configuration and weights, or the commit on the hub."""
        if isinstance(self.location, Path):
            return self.format.checksum(self.name, self.location, allow_pickle=self.allow_pickle)
        return f"{self.place}@{self.source.get('commit', self.source['revision'])}"


def find_named(text: str, loading: Loading) -> FoundModel:
    """Find a model from its location or NAME=PATH (`find_model`)."""
    return find_chosen([chosen(text)], loading)[0]


def find_chosen(choices: Sequence[ModelChoice], loading: Loading) -> list[FoundModel]:
    """Find models (`find_model`), of which at least one must be an adapter if a base is given."""
    found = [find_model(choice.place, loading, named=choice.name) for choice in choices]
    check_base(found, loading)
    return found


def check_base(found: Iterable[FoundModel], loading: Loading) -> None:
    """Reject a base into which no adapter is merged."""
    if loading.base is not None and all(model.adapter is None for model in found):
        raise UserError(
            f"got the base {one_line(loading.base)}, but no model is an adapter, which would be "
            "merged into it; omit the base, or pass the folder of an adapter or graft/NAME"
        )


def find_model(
    name: str,
    loading: Loading,
    kind_in: Callable[[PreTrainedConfig, Sequence[str]], Kind] = kind_of,
    *,
    named: str = "",
) -> FoundModel:
    """Find a model and read its configuration and tokenizer, but not its weights.

    The weights of an adapter's base are read once, to compute their checksum. `kind_in` determines
    the kind from the configuration and the class names in it; `named` is the model's name in tables
    (by default, `short_name` of its location).

    Raises:
        UserError: the model cannot be found, or is damaged or incomplete.
    """
    if not sys.stderr.isatty():  # progress bars are useless in logs and notebooks
        logging.disable_progress_bar()
    name = canonical_name(name)
    location, source = resolve(name, loading.revision)
    contents: Contents | None = None
    folder: Path | None = None
    revision = loading.revision
    if isinstance(location, Path):
        if (location / ADAPTER_CONFIG_NAME).is_file():  # an adapter, whose folder may hold anything
            return _adapted(name, location, loading, kind_in, named or short_name(name))
        location = model_file(name, location)
        folder = location if location.is_dir() else None
        contents = format_of(location).read(name, location, allow_pickle=loading.allow_pickle)
        raw = contents.raw
    else:
        _check_no_adapter(name, loading.revision)
        folder, revision = _pinned(name, loading.revision)
        source = {**source, "commit": revision}
        raw = read_configuration(name, folder)
    check_counts(name, raw, None if contents is None else contents.stored)
    check_quantization(name, raw)
    options: dict[str, Any] = {"revision": revision}
    options["trust_remote_code"] = loading.trust_remote_code
    config, kind, tokenizer = description_of(name, location, loading.chat(), kind_in, **options)
    if folder is not None:
        check_regular(name, folder)
    with as_user_error("its folder", name):
        fingerprint = _fingerprint(location)
    options["use_safetensors"] = None if loading.allow_pickle else True
    shown = named or short_name(name)
    model = FoundModel(
        *(shown, name, location, source, fingerprint, tokenizer, config, kind, options, contents)
    )
    if loading.dequantize:
        model.dequantizing()
    if loading.keep_dequantized and not model.format.may_keep:
        raise UserError(
            f"got keep_dequantized, but {one_line(shown)} is not a GGUF file, whose weights are "
            "dequantized when it is loaded; omit it"
        )
    if loading.ranks > 1:
        method = quantization_of(config)
        if method is not None:
            raise UserError(
                f"the weights of {one_line(shown)} are quantized ({method}), and quantized weights "
                "are not spread over processes: omit tensor_parallel"
            )
        check_spread(shown, config, loading.ranks)
    return model


def description_of(
    name: str,
    location: Path | str,
    chat: ChatFormat,
    kind_in: Callable[[PreTrainedConfig, Sequence[str]], Kind],
    **options: Any,
) -> tuple[PreTrainedConfig, Kind, PreTrainedTokenizerBase]:
    """The configuration of a model, its kind, and its tokenizer; `options` are transformers'.

    Raises:
        UserError: one of them is missing or damaged, or they do not belong together.
    """
    form = format_of(location)
    with as_user_error(form.configuration, name, expected=form.expected):
        config = form.load_config(location, **options)
        kind = kind_in(config, config.architectures or ())
        check_windows(name, config)
    with as_user_error("its tokenizer", name, expected=form.expected):
        tokenizer = load_tokenizer(location, config, **options)
        check_tokenizer(name, tokenizer, config, chat)
    return config, kind, tokenizer


def resolve(name: str, revision: str | None) -> tuple[Path | str, dict[str, str]]:
    """The location of the model with the given canonical name, and its origin for records.

    The origin is its kind (organism, graft, folder, file or hub), its name, which is an absolute
    path for a folder or file, and on the hub its revision.

    Raises:
        UserError: there is no such folder or packaged model, the name is probably a misspelled
            organism, the model has no revisions but one was requested, or the hub does not answer.
    """
    kind = packaged(name)
    if kind is not None or is_local(name):
        if revision is not None:
            raise UserError(
                f"revision {one_line(revision)!r} does not apply to {one_line(name)!r}, which is "
                "a local model without revisions; omit it"
            )
        if kind is not None:
            return kind.folder(name), {"kind": kind.kind, "name": name}
        local = "file" if is_model_file(name) else "folder"
        return Path(name), {"kind": local, "name": absolute(name)}
    if (form := format_name(name)) is not None:
        raise UserError(f"no {form.upper()} file {one_line(name)!r}; expected the path of a file")
    is_path = name.startswith((".", "~", os.sep)) or name.count("/") > 1 or is_plain(Path(name))
    if not name or is_path:
        raise UserError(_no_model(name))
    meant = ORGANISMS.nearest(name)
    if meant is not None and "/" not in name:
        raise UserError(f"no model folder {one_line(name)!r}; did you mean {meant}?")
    _check_reachable(name, revision)
    return name, {"kind": "hub", "name": name, "revision": revision or "main"}


def _no_model(name: str) -> str:
    slash = '. A name before "=" has no slash' * ("/" in name.partition("=")[0] and "=" in name)
    return (
        f"no model folder {one_line(name)!r}; expected a folder with config.json, weights and "
        f"tokenizer, a GGUF file (NAME.gguf), a hub name such as org/model, or organism/NAME{slash}"
    )


def _check_reachable(name: str, revision: str | None) -> None:
    """Ask the hub once about a model that is not cached; the hub's client would retry for 23 s."""
    try:
        cached = try_to_load_from_cache(name, "config.json", revision=revision)
    except HFValidationError as error:
        raise UserError(_no_model(name)) from error
    if isinstance(cached, str):
        return
    try:
        if constants.HF_HUB_OFFLINE:
            raise ConnectionError("HF_HUB_OFFLINE is set")
        url = hf_hub_url(name, "config.json", revision=revision)
        get_hf_file_metadata(url, timeout=HUB_TIMEOUT)
    except HfHubHTTPError:
        # The hub has answered; its error is reported when the model is read.
        return
    except Exception as error:
        reason = one_line(str(error) or type(error).__name__)
        raise UserError(
            f"the model {one_line(name)!r} cannot be loaded: it is not a local folder, it is not "
            f"cached, and the hub cannot be reached ({reason}). Expected a hub name that this "
            "machine can reach or has cached, a local folder, or organism/NAME (python -m interp "
            "models lists them)"
        ) from error


def _pinned(name: str, revision: str | None) -> tuple[Path, str]:
    """The cached folder and the commit, at which everything is read even if someone pushes."""
    with as_user_error("config.json", name):
        folder = Path(cached_file(name, "config.json", revision=revision) or "").parent
        if not re.fullmatch("[0-9a-f]{40}", folder.name):
            raise ValueError(f"the hub returned no commit hash for {revision or 'main'}")
    return folder, folder.name


def _adapted(
    name: str,
    folder: Path,
    loading: Loading,
    kind_in: Callable[[PreTrainedConfig, Sequence[str]], Kind],
    named: str,
) -> FoundModel:
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
    from interp.models.adapters import base_of, read_adapter

    adapter = read_adapter(name, folder)
    base = find_model(
        base_of(adapter, loading.base), loading.model_copy(update={"base": None}), kind_in
    )
    checksum = base.checksum()
    _check_base(adapter, base, checksum, dequantizes=loading.dequantize)
    tokenizer = base.tokenizer
    if has_tokenizer(folder):
        with as_user_error("its tokenizer", name):
            tokenizer = load_tokenizer(folder, base.config)
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


def _check_base(adapter: "Adapter", base: FoundModel, checksum: str, *, dequantizes: bool) -> None:
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
    method = quantization_of(base.config)
    if method is not None and not dequantizes:
        way = "; load them with --dequantize" if can_dequantize(base.config) else ""
        raise UserError(
            f"the weights of {of}, the base of the adapter {shown}, are quantized ({method}); an "
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
            f"{one_line(name)} on the hub holds a LoRA adapter ({ADAPTER_CONFIG_NAME}), but "
            "adapters are loaded only from folders: download it, and pass its folder with --model"
        )


def _fingerprint(location: Path | str) -> str | None:
    """A hash of the names, sizes and modification times of the files of a local model."""
    if not isinstance(location, Path):
        return None
    files = [
        (str(file.relative_to(location)), file.stat().st_size, file.stat().st_mtime_ns)
        for file in (location, *sorted(location.rglob("*")))
        if file.is_file()
    ]
    return hashlib.sha256(repr(files).encode()).hexdigest()[:16]

"""Formats in which models are stored: folders, and files that are whole models.

Another package adds a format of files with an entry point in `interp.formats`: its name is the
suffix of these files without the dot, and it refers to an instance of a subclass of `Format`.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from transformers import (
    AutoConfig,
    AutoTokenizer,
    PreTrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)

from interp.errors import UserError, one_line
from interp.files import checksum
from interp.models.checkpoint import (
    MODEL,
    PICKLE_FILES,
    WEIGHT_FILES,
    Stored,
    as_user_error,
    check_folder,
    read_configuration,
    stored_tensors,
    weight_files,
)
from interp.models.names import format_name, is_model_file
from interp.models.tokenizer_limits import check_limits
from interp.plugins import FORMATS, load_plugin, misfit, plugins


@dataclass(frozen=True, slots=True)
class Contents:
    """What the files of a local model hold, as checked before transformers reads them."""

    stored: Stored
    """The tensors as they are loaded."""
    raw: dict[str, Any] = field(default_factory=dict)
    """The content of config.json; empty if the format has no such file."""
    packed: str | None = None
    """The type of quantized weights that become ordinary numbers when loaded, such as Q4_1."""


class Format:
    """The format of a folder that transformers has saved; subclasses describe other formats."""

    configuration: ClassVar[str] = "config.json"
    """What the configuration is called in messages."""
    expected: ClassVar[str] = MODEL
    """What a model in this format is, in messages."""
    may_quantize: ClassVar[bool] = True
    """Whether the weights can be quantized while they are loaded."""
    may_keep: ClassVar[bool] = False
    """Whether `load_weights` takes `keep`, and keeps what it makes of the weights."""

    def read(self, name: str, place: Path, *, allow_pickle: bool) -> Contents:
        """Check a model's files without reading weights.

        Raises:
            UserError: a file is missing, damaged or not regular, or a pickle that is not allowed.
        """
        with as_user_error("its folder", name):
            check_folder(name, place, allow_pickle=allow_pickle)
        stored = stored_tensors(name, place, allow_pickle=allow_pickle)
        return Contents(stored, read_configuration(name, place))

    def checksum(self, name: str, place: Path, *, allow_pickle: bool) -> str:
        """A hash of the file or, of a folder, of its configuration and weights."""
        if place.is_file():
            return checksum(place.resolve())
        files = [place / "config.json", *weight_files(name, place, allow_pickle=allow_pickle)]
        # A folder in the hub's cache contains links.
        hashes = [f"{file.name} {checksum(file.resolve())}" for file in files]
        return hashlib.sha256("\n".join(hashes).encode()).hexdigest()

    @contextmanager
    def readable(self, place: Path | str) -> Iterator[Path | str]:
        """A location from which transformers reads the model; for the block."""
        yield place

    def load_config(self, place: Path | str, **options: Any) -> PreTrainedConfig:
        """The configuration; `options` are transformers'.

        Raises:
            UserError: it is missing or damaged.
        """
        with self.readable(place) as location:
            if isinstance(location, Path):
                read_configuration(str(place), location)
            config: PreTrainedConfig = AutoConfig.from_pretrained(location, **options)
        return config

    def load_tokenizer(self, place: Path | str, **options: Any) -> PreTrainedTokenizerBase:
        """The tokenizer; `options` are transformers'.

        If mistral-common is installed, transformers uses it to read a tekken.json, which yields no
        character offsets. The tokenizer.json next to that file defines an identical tokenizer with
        offsets.

        Raises:
            UserError: it exceeds the limits of `check_limits`.
        """
        with self.readable(place) as location:
            check_limits(location, options.get("revision"))
            tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(location, **options)
            if not hasattr(tokenizer, "is_fast"):
                # Without a tokenizer.json, `check_tokenizer` rejects this tokenizer later.
                with suppress(Exception):
                    tokenizer = PreTrainedTokenizerFast.from_pretrained(location, **options)
        return tokenizer

    def load_weights(
        self, auto: Any, place: Path | str, config: PreTrainedConfig, **options: Any
    ) -> tuple[PreTrainedModel, dict[str, Any]]:
        """The model, and what transformers says about its tensors.

        Args:
            auto: the class of transformers that loads models of this kind.
            place: where the model is.
            config: its configuration as `load_config` has read it.
            **options: transformers' options.
        """
        with self.readable(place) as location:
            loaded: tuple[PreTrainedModel, dict[str, Any]] = auto.from_pretrained(
                location, output_loading_info=True, **options
            )
        return loaded

    def finish(self, name: str, hf: PreTrainedModel, contents: Contents) -> None:
        """Check a loaded model.

        Raises:
            UserError: the model does not use all that its files hold.
        """


FOLDER = Format()


def format_of(location: Path | str) -> Format:
    """The format of a folder, a file or a name on the hub; a UserError if a plugin has none."""
    if isinstance(location, str) or not location.is_file():
        return FOLDER
    name = format_name(location.name) or ""
    form = load_plugin(FORMATS, "format of files", name)
    if not isinstance(form, Format):
        raise misfit(plugins(FORMATS)[name], form, f"a {Format.__module__}.{Format.__qualname__}")
    return form


def model_file(name: str, place: Path) -> Path:
    """The only file that is a model in a folder without other weights, or else the place itself.

    Several such files raise a UserError.
    """
    if place.is_file() or any((place / file).exists() for file in (*WEIGHT_FILES, *PICKLE_FILES)):
        return place
    with as_user_error("its folder", name):
        files = sorted(file for file in place.iterdir() if is_model_file(str(file)))
    if len(files) > 1:
        names = ", ".join(one_line(file.name, 80) for file in files[:8])
        raise UserError(
            f"{one_line(name)} holds {len(files)} files that are whole models ({names}); pass one "
            "of the files instead of their folder"
        )
    return files[0] if files else place

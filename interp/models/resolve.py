"""Find a model: a local folder, a packaged model, or a model on the hub or in its cache."""

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from huggingface_hub import (
    constants,
    get_hf_file_metadata,
    hf_hub_download,
    hf_hub_url,
    try_to_load_from_cache,
)
from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, HFValidationError
from transformers.utils.hub import cached_file

from interp.errors import UserError, one_line
from interp.models.checkpoint import PICKLE_FILES, WEIGHT_FILES, as_user_error, indexed_files
from interp.models.loading import format_name, is_local, is_model_file
from interp.models.names import absolute
from interp.models.organisms import PREFIX, nearest_organism
from interp.models.packaged import packaged

HUB_TIMEOUT = 5.0
"""Seconds to wait for the hub's answer about a model that is not on this machine."""


@dataclass(frozen=True, slots=True)
class Resolved:
    """The location of a model."""

    location: Path | str
    """Local folder or GGUF file, or name on the hub."""
    source: dict[str, str]
    """The model's origin for records: its kind (organism, graft, folder, file or hub), its name,
    which is an absolute path for a folder or file, and its revision.
    """


def resolve(name: str, revision: str | None) -> Resolved:
    """The location of the model with the given canonical name.

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
            return Resolved(kind.folder(name), {"kind": kind.kind, "name": name})
        local = "file" if is_model_file(name) else "folder"
        return Resolved(Path(name), {"kind": local, "name": absolute(name)})
    if (form := format_name(name)) is not None:
        raise UserError(f"no {form.upper()} file {one_line(name)!r}; expected the path of a file")
    if not name or name.startswith((".", "~", os.sep)) or name.count("/") > 1:
        raise UserError(_no_model(name))
    meant = nearest_organism(PREFIX + name)
    if meant is not None and "/" not in name:
        raise UserError(f"no model folder {one_line(name)!r}; did you mean {meant}?")
    _check_reachable(name, revision)
    return Resolved(name, {"kind": "hub", "name": name, "revision": revision or "main"})


def _no_model(name: str) -> str:
    slash = '. A name before "=" has no slash' * ("/" in name.partition("=")[0] and "=" in name)
    return (
        f"no model folder {one_line(name)!r}; expected a folder with config.json, weights and "
        f"tokenizer, a GGUF file, a hub name such as org/model, or organism/NAME{slash}"
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


def pinned(name: str, revision: str | None) -> tuple[Path, str]:
    """Fetch the configuration at a revision; return the cached folder and the commit.

    Everything else is read at this commit, even if someone pushes in the meantime.

    Raises:
        UserError: there is no such model, or its configuration cannot be fetched.
    """
    with as_user_error("config.json", name):
        folder = Path(cached_file(name, "config.json", revision=revision) or "").parent
        if not re.fullmatch("[0-9a-f]{40}", folder.name):
            raise ValueError(f"the hub returned no commit hash for {revision or 'main'}")
    return folder, folder.name


def downloaded_weights(name: str, revision: str | None, *, allow_pickle: bool) -> Path | None:
    """Download the weights that transformers will read; return their folder, or None without any.

    Raises:
        UserError: weights cannot be fetched, or an index is damaged or names anything other than
            weights.
    """
    for first in WEIGHT_FILES + (PICKLE_FILES if allow_pickle else ()):
        with as_user_error("its weights", name), suppress(EntryNotFoundError):
            file = Path(hf_hub_download(name, first, revision=revision))
            for other in indexed_files(name, file) if file.suffix == ".json" else ():
                hf_hub_download(name, other, revision=revision)
            return file.parent
    return None

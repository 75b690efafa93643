"""A server that runs what nnsight would send to NDIF, on a model that only the server holds."""

import io
import linecache
from collections.abc import Callable
from typing import Any
from unittest.mock import patch

import torch
from nnsight import CONFIG
from nnsight.intervention.backends.remote import RemoteBackend
from nnsight.intervention.serialization import CustomCloudUnpickler
from nnsight.modeling import huggingface
from nnsight.modeling.transformers import TransformersModel
from nnsight.schema.request import RequestModel
from nnsight.tracing import globals as remembered
from pytest import MonkeyPatch

from interp.models.model import Model

KEY = "a key"

_INSTALLED = frozenset(("builtins", "cloudpickle", "collections", "nnsight", "torch", "_codecs"))
"""The packages that a request of this project may name; a server has them for certain."""


class _Unpickler(CustomCloudUnpickler):
    def find_class(self, module: str, name: str) -> Any:
        if module.partition(".")[0] not in _INSTALLED:
            raise ModuleNotFoundError(f"the server has no {module}.{name}")
        return super().find_class(module, name)


class Server:
    """Serves one model of the hub; `sent` holds the requests, which fail if `fails` says so."""

    def __init__(self, model: Model, monkeypatch: MonkeyPatch, *, name: str = "org/tiny") -> None:
        self.sent: list[RequestModel] = []
        self.fails: Callable[[int], Exception | None] = lambda number: None
        self._served = TransformersModel(model.hf, tokenizer=model.tokenizer)
        monkeypatch.setattr(CONFIG.API, "APIKEY", KEY)
        monkeypatch.setitem(huggingface._ID_CACHE, name, name)
        monkeypatch.setattr("interp.patching.nnsight.get_task", lambda asked: "text-generation")
        self._transport = RemoteBackend.request
        self._monkeypatch = monkeypatch
        monkeypatch.setattr(RemoteBackend, "request", self._answer_to())

    def goes(self) -> None:
        """Leave requests to nnsight's own way, which leads nowhere here."""
        self._monkeypatch.setattr(RemoteBackend, "request", self._transport)

    def _answer_to(self) -> Callable[..., Any]:
        def request(backend: RemoteBackend, request: RequestModel, tracer: Any) -> dict[str, Any]:
            self.sent.append(request)
            if (error := self.fails(len(self.sent))) is not None:
                raise error
            blob = backend._serialize(tracer)
            return self._run(blob, compress=request.compress)

        return request

    def _run(self, blob: bytes, *, compress: bool) -> dict[str, Any]:
        """The results of a request, in a process that has never seen the request's source."""
        with (
            patch.dict(remembered.SOURCES, clear=True),
            patch.dict(remembered.BLOCKS, clear=True),
            patch.dict(linecache.cache),
        ):
            objects = self._served._remoteable_persistent_objects()
            tracer = RequestModel.deserialize(blob, objects, compress, _Unpickler)
            frame = tracer.info.frame
            given = dict(frame.f_locals)
            tracer.execute(tracer.info.code)
        file = io.BytesIO()
        torch.save({k: v for k, v in frame.f_locals.items() if given.get(k) is not v}, file)
        file.seek(0)
        found: dict[str, Any] = torch.load(file, weights_only=False)
        return found

"""Answers of a model that a server runs: only what forward passes give, probabilities of tokens.

The server speaks vLLM's form of OpenAI's completions (`POST /completions` with `prompt_logprobs`,
https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html). Each prompt is sent as
tokens, followed by those of one answer, and the log-probabilities of the answer's tokens are taken
from the reply. Tokenizer and chat template are read on this machine.
"""

import json
import math
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from http import HTTPStatus
from http.client import HTTPException
from socket import gaierror
from threading import Thread
from typing import Annotated, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
from pydantic import Field, ValidationError

from interp.errors import ModelError, UserError, fault_of, one_line, shortened
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.reading.tokens import TokenizedPrompt
from interp.scoring.answers import LookUp
from interp.stored.schema import Stored

KEY = "INTERP_SERVER_KEY"
"""The environment variable that holds the server's API key, if it needs one."""

PER_REQUEST = 64
"""Number of texts in a request."""

PATIENCE = 600.0
"""Number of seconds after which a request without a whole answer has failed."""

MOST_BYTES = 2**28
"""Largest number of bytes of an answer."""

ROUNDING = 1e-3
"""Largest value above 0, in nats, that a rounded log-probability may have."""

Logits = Mapping[str, float]
"""The log-probability of each answer option, in nats: the log-sum-exp of those of its tokens or
whole texts."""


class _LogProbability(Stored):
    logprob: float


class _Choice(Stored):
    index: Annotated[int, Field(ge=0)]
    prompt_logprobs: list[dict[str, _LogProbability] | None]


class _Completions(Stored):
    choices: list[_Choice]


class _Served(Stored):
    id: str


class _Models(Stored):
    data: list[_Served]


_Answer = TypeVar("_Answer", bound=Stored)


class _NoRedirects(HTTPRedirectHandler):
    """Redirects, which could lead the key elsewhere, are errors like others."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Refuse it."""


class Server:
    """A server that runs one model. What it refuses ends a run, whose finished shards are kept."""

    def __init__(self, url: str, model: Model) -> None:
        if model.has_weights:
            raise UserError(
                f"the weights of {model.name} are on this machine, but a server was named; omit "
                "the server, or pass the model's name to interp.run"
            )
        if model.kind is not CAUSAL:
            raise UserError(f"{model.name} is a {model.kind.name}; servers run causal models")
        self._url, self._model = url.rstrip("/"), model
        self._name = self._served()

    def option_logits(
        self, prompts: Sequence[TokenizedPrompt], answer_tokens: LookUp
    ) -> list[Logits]:
        """The log-probability of each option of each prompt, in nats, or else a ModelError."""
        logits: list[dict[str, float]] = [{} for _ in prompts]
        asked = [
            (of_prompt, name, [*prompt.token_ids, *spelled], len(spelled))
            for of_prompt, prompt in zip(logits, prompts, strict=True)
            for name, columns in answer_tokens(prompt).of.items()
            for spelled in map(answer_tokens(prompt).spelled, columns)
        ]
        for start in range(0, len(asked), PER_REQUEST):
            part = asked[start : start + PER_REQUEST]
            _, _, texts, lengths = zip(*part, strict=True)
            values = self._log_probabilities(texts, lengths)
            for (of_prompt, name, _, _), value in zip(part, values, strict=True):
                of_prompt[name] = float(np.logaddexp(of_prompt.get(name, -np.inf), value))
        return [*logits]

    def _served(self) -> str:
        names = [model.id for model in self._asked(_Models, "models").data]
        wanted = (self._model.name, self._model.source.get("name", ""))
        if fitting := [name for name in names if name in wanted or len(names) == 1]:
            return fitting[0]
        raise UserError(
            f"the server {self._url} runs {one_line(', '.join(names), 200) or 'no model'}; "
            f"expected one model, or one that is named {self._model.name}"
        )

    def _log_probabilities(self, texts: Sequence[list[int]], lengths: Sequence[int]) -> list[float]:
        """The log-probability of the last tokens of each text, given those before them, in nats."""
        how = {"max_tokens": 1, "temperature": 0, "prompt_logprobs": 0}
        body = {"model": self._name, "prompt": texts, **how}
        choices = self._asked(_Completions, "completions", body).choices
        choices.sort(key=lambda choice: choice.index)
        if [choice.index for choice in choices] != [*range(len(texts))]:
            raise self._strange(f"{len(choices):,} choices for {len(texts):,} prompts")
        self._check_normalized(choices)
        values = []
        for choice, tokens, length in zip(choices, texts, lengths, strict=True):
            by_token = choice.prompt_logprobs
            if len(by_token) != len(tokens):
                raise self._strange(f"{len(by_token):,} tokens for a prompt of {len(tokens):,}")
            read = zip(tokens[-length:], by_token[-length:], strict=True)
            entries = [(listing or {}).get(str(token)) for token, listing in read]
            logs = [entry.logprob for entry in entries if entry is not None]
            if len(logs) < length:
                raise self._strange("no log-probability of a prompt's token")
            # What vLLM writes for a token that it has excluded.
            if min(logs) <= -9999.0:
                raise self._not_plain(f"an answer's token has {min(logs):g}, as if excluded")
            values.append(math.fsum(logs))
        return values

    def _check_normalized(self, choices: Sequence[_Choice]) -> None:
        """Check that numbers can be log-probabilities, which raw logits, say, need not be.

        None is above 0. Among all tokens of texts, which end in each of a prompt's answers, some
        are more probable than chance.
        """
        listings = [listing for choice in choices for listing in choice.prompt_logprobs if listing]
        logs = [entry.logprob for listing in listings for entry in listing.values()]
        if wrong := [log for log in logs if not log <= ROUNDING]:
            raise self._not_plain(f"a token has {wrong[0]:g}, and none can be above 0")
        chance = -math.log(self._model.text_config.vocab_size)
        if logs and max(logs) < chance:
            raise self._not_plain(f"no token has more than {max(logs):g}; by chance, {chance:g}")

    def _asked(self, kind: type[_Answer], path: str, body: object = None) -> _Answer:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}/{path}", data=data, headers=headers)
        try:
            status, content = _within(PATIENCE, request)
        except (URLError, OSError, HTTPException, ValueError) as error:
            raise self._unreachable(error) from error
        if status >= HTTPStatus.MULTIPLE_CHOICES:
            raise self._refused(status, content, path)
        if len(content) > MOST_BYTES:
            raise self._strange(f"more than {MOST_BYTES:,} bytes")
        try:
            return kind.model_validate_json(content)
        except ValidationError as error:
            if error.errors()[0]["type"] == "json_invalid":
                raise self._strange("not in JSON") from error
            raise self._strange(fault_of(error)) from error

    def _refused(self, status: int, content: bytes, path: str) -> ModelError:
        said = one_line(content[:2000].decode(errors="replace"), 200)
        if status in (401, 403):
            hint = f"the key in {KEY} is not accepted" if os.environ.get(KEY) else f"set {KEY}"
            todo = f"it needs an API key: {hint}"
        elif status == 404 and path == "models":
            todo = "correct the address, such as http://127.0.0.1:8000/v1"
        elif status == 404:
            todo = f"it does not run {self._name} by completions"
        else:
            todo = f"it must run the model by vLLM's protocol, and an API key is taken from {KEY}"
        return ModelError(f"the server {self._url} refused a request ({status}: {said}); {todo}")

    def _unreachable(self, error: Exception) -> ModelError:
        reason = error.reason if isinstance(error, URLError) else error
        todo = "start it, or correct the address, such as http://127.0.0.1:8000/v1"
        why = one_line(getattr(reason, "strerror", None) or str(reason), 160)
        if isinstance(reason, TimeoutError):
            why, todo = f"no answer within {PATIENCE:g} s", "see whether it still computes"
        elif isinstance(reason, ConnectionRefusedError):
            why = "nothing listens at this address"
        elif isinstance(reason, gaierror):
            why = "no machine has this name"
        return ModelError(f"the server {self._url} cannot be reached ({why}); {todo}")

    def _strange(self, what: str) -> ModelError:
        return ModelError(
            f"the server {self._url} answers otherwise than expected ({shortened(what, 260)}); "
            "expected vLLM's completions with prompt_logprobs"
        )

    def _not_plain(self, what: str) -> ModelError:
        return ModelError(
            f"the server {self._url} gives numbers that are no log-probabilities of the model "
            f"({what}); expected them in nats, of all tokens, as vLLM gives them without "
            "--logprobs-mode and top_k"
        )


def _within(seconds: float, request: Request) -> tuple[int, bytes]:
    """The status and the content of an answer; of a refusal, as much as arrives."""
    answer: Future[tuple[int, bytes]] = Future()

    def ask() -> None:
        try:
            with build_opener(_NoRedirects).open(request, timeout=seconds) as response:
                answer.set_result((response.status, response.read(MOST_BYTES + 1)))
        except HTTPError as error:
            content = b""
            with suppress(OSError, HTTPException, ValueError):
                content = error.read(2000)
            answer.set_result((error.code, content))
        except BaseException as error:
            answer.set_exception(error)

    # A pool of threads would wait for a server that never ends before the process ends.
    Thread(target=ask, daemon=True).start()
    return answer.result(seconds)

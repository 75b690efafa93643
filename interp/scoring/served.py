"""Answers of a model that a server runs: only what forward passes give, probabilities of tokens.

The server speaks vLLM's form of OpenAI's completions (`POST /completions` with `prompt_logprobs`,
https://docs.vllm.ai/en/latest/serving/openai_compatible_server.html). Each prompt is sent as
tokens, followed by those of one answer, and the log-probabilities of the answer's tokens are taken
from the reply. Tokenizer and chat template are read on this machine.
"""

import json
import os
from collections.abc import Mapping, Sequence
from http.client import HTTPException
from socket import gaierror
from typing import Annotated, TypeVar
from urllib.error import HTTPError, URLError
from urllib.request import HTTPRedirectHandler, Request, build_opener

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from interp.errors import ModelError, UserError, one_line, shortened
from interp.models.kinds import CAUSAL
from interp.models.model import Model
from interp.reading.tokens import TokenizedPrompt
from interp.scoring.answers import LookUp

KEY = "INTERP_SERVER_KEY"
"""The environment variable that holds the server's API key, if it needs one."""

PER_REQUEST = 64
"""Number of texts in a request."""

PATIENCE = 600.0
"""Number of seconds after which a request without an answer has failed."""

MOST_BYTES = 2**28
"""Largest number of bytes of an answer."""

Logits = Mapping[str, float]
"""The log-probability of each answer option, in nats: the log-sum-exp of those of its tokens or
whole texts."""


class _Reply(BaseModel):
    model_config = ConfigDict(extra="ignore", strict=True, frozen=True)


class _LogProbability(_Reply):
    logprob: float


class _Choice(_Reply):
    index: Annotated[int, Field(ge=0)]
    prompt_logprobs: list[dict[str, _LogProbability] | None]


class _Completions(_Reply):
    choices: list[_Choice]


class _Served(_Reply):
    id: str


class _Models(_Reply):
    data: list[_Served]


_Answer = TypeVar("_Answer", bound=_Reply)


class _NoRedirects(HTTPRedirectHandler):
    """Follows no redirects, which could lead the key elsewhere."""

    def redirect_request(self, *_: object, **__: object) -> None:
        """Refuse a redirect; it is then an error like others."""
        return


class Server:
    """A server that runs one model. What it refuses ends a run, whose finished shards are kept.

    Raises:
        UserError: the server cannot be reached or does not run the model, or the weights are here.
    """

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
        """The log-probability of each option of each prompt, in nats.

        Raises:
            ModelError: the server cannot be reached, or does not give these numbers.
        """
        columns = [
            (prompt, number, name, column)
            for number, prompt in enumerate(prompts)
            for name, own in answer_tokens(prompt).of.items()
            for column in own
        ]
        answers = [answer_tokens(prompt).spelled(column) for prompt, _, _, column in columns]
        texts = [
            [*prompt.token_ids, *answer]
            for (prompt, _, _, _), answer in zip(columns, answers, strict=True)
        ]
        found: list[dict[str, float]] = [{} for _ in prompts]
        for start in range(0, len(texts), PER_REQUEST):
            part = slice(start, start + PER_REQUEST)
            values = self._log_probabilities(texts[part], [len(own) for own in answers[part]])
            for (_, number, name, _), value in zip(columns[part], values, strict=True):
                known = found[number].get(name, -np.inf)
                found[number][name] = float(np.logaddexp(known, value))
        return [*found]

    def _served(self) -> str:
        """The name under which the server runs the model."""
        names = [one.id for one in self._asked(_Models, "models").data]
        wanted = (self._model.name, self._model.source.get("name", ""))
        if len(names) == 1:
            return names[0]
        if known := [name for name in names if name in wanted]:
            return known[0]
        raise UserError(
            f"the server {self._url} runs {one_line(', '.join(names), 200) or 'no model'}; "
            f"expected one model, or one that is named {self._model.name}"
        )

    def _log_probabilities(self, texts: Sequence[list[int]], lengths: Sequence[int]) -> list[float]:
        """The log-probability of the last tokens of each text, given those before them, in nats."""
        body = {
            "model": self._name,
            "prompt": texts,
            "max_tokens": 1,
            "temperature": 0,
            "prompt_logprobs": 0,
        }
        choices = self._asked(_Completions, "completions", body).choices
        by_index = {choice.index: choice.prompt_logprobs for choice in choices}
        if by_index.keys() != set(range(len(texts))):
            raise self._strange(f"{len(choices):,} choices for {len(texts):,} prompts")
        values = []
        for index, (tokens, length) in enumerate(zip(texts, lengths, strict=True)):
            own = by_index[index]
            if len(own) != len(tokens):
                raise self._strange(f"{len(own):,} tokens for a prompt of {len(tokens):,}")
            read = zip(tokens[-length:], own[-length:], strict=True)
            known = [(given or {}).get(str(token)) for token, given in read]
            if None in known:
                raise self._strange("no log-probability of a prompt's token")
            values.append(sum(one.logprob for one in known if one is not None))
        return values

    def _asked(self, kind: type[_Answer], path: str, body: object = None) -> _Answer:
        """The server's answer to a request."""
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {key}"
        data = None if body is None else json.dumps(body).encode()
        request = Request(f"{self._url}/{path}", data=data, headers=headers)
        try:
            with build_opener(_NoRedirects).open(request, timeout=PATIENCE) as response:
                content = response.read(MOST_BYTES + 1)
        except HTTPError as error:
            raise self._refused(error, path) from error
        except (URLError, OSError, HTTPException, ValueError) as error:
            raise self._unreachable(error) from error
        if len(content) > MOST_BYTES:
            raise self._strange(f"more than {MOST_BYTES:,} bytes")
        try:
            return kind.model_validate_json(content)
        except ValidationError as error:
            if error.errors()[0]["type"] == "json_invalid":
                raise self._strange("not in JSON") from error
            problem = error.errors(include_url=False, include_input=False, include_context=False)[0]
            place = ".".join(str(part)[:40] for part in problem["loc"])
            raise self._strange(f"{one_line(place, 100)}: {problem['msg'][:160]}") from error

    def _refused(self, error: HTTPError, path: str) -> ModelError:
        """Why the server refused a request, and what to do about it."""
        said = one_line(error.read(2000).decode(errors="replace"), 200)
        if error.code in (401, 403):
            given = f"the key in {KEY} is not accepted" if os.environ.get(KEY) else f"set {KEY}"
            todo = f"it needs an API key: {given}"
        elif error.code == 404 and path == "models":
            todo = "correct the address, such as http://127.0.0.1:8000/v1"
        elif error.code == 404:
            todo = f"it does not run {self._name} by completions"
        else:
            todo = f"it must run the model by vLLM's protocol, and an API key is taken from {KEY}"
        return ModelError(
            f"the server {self._url} refused a request ({error.code}: {said}); {todo}"
        )

    def _unreachable(self, error: Exception) -> ModelError:
        """Why there is no answer, and what to do about it."""
        reason = error.reason if isinstance(error, URLError) else error
        start = "start it, or correct the address, such as http://127.0.0.1:8000/v1"
        if isinstance(reason, TimeoutError):
            why, todo = f"no answer within {PATIENCE:g} s", "see whether it still computes"
        elif isinstance(reason, ConnectionRefusedError):
            why, todo = "nothing listens at this address", start
        elif isinstance(reason, gaierror):
            why, todo = "no machine has this name", start
        else:
            why, todo = one_line(getattr(reason, "strerror", None) or str(reason), 160), start
        return ModelError(f"the server {self._url} cannot be reached ({why}); {todo}")

    def _strange(self, what: str) -> ModelError:
        return ModelError(
            f"the server {self._url} answers otherwise than expected ({shortened(what, 260)}); "
            "expected vLLM's completions with prompt_logprobs"
        )

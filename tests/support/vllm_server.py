"""A server on the loopback address that runs a model by vLLM's protocol."""

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import torch

from interp.models.model import Model


class Served:
    """What the server got and how it answers."""

    def __init__(self, model: Model, name: str) -> None:
        self.model, self.name = model, name
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str | None] = []
        self.answer: Callable[[dict[str, Any]], tuple[int, Any]] = self.completions
        self.url = ""

    def completions(self, body: dict[str, Any]) -> tuple[int, Any]:
        """The log-probability of each token of each prompt, after the tokens before it."""
        assert body["model"] == self.name and body["prompt_logprobs"] == 0
        choices = []
        for index, tokens in enumerate(body["prompt"]):
            with torch.no_grad():
                logits = self.model.hf(torch.tensor([tokens])).logits[0]
            log_p = logits.log_softmax(-1)
            own = [
                {
                    str(token): {
                        "logprob": float(log_p[place, token]),
                        "rank": 1,
                        "decoded_token": "",
                    }
                }
                for place, token in enumerate(tokens[1:])
            ]
            choices.append({"index": index, "text": "", "prompt_logprobs": [None, *own]})
        return 200, {"object": "text_completion", "model": self.name, "choices": choices[::-1]}


@contextmanager
def serving(model: Model, name: str = "org/served") -> Iterator[Served]:
    """A server for the block, at a free port."""
    served = Served(model, name)

    class Handler(BaseHTTPRequestHandler):
        def _send(self, status: int, answer: Any) -> None:
            content = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
            self.send_response(status)
            if status in (301, 302):
                self.send_header("Location", "http://127.0.0.1:9/elsewhere")
            self.send_header("Content-Length", str(len(content)))
            # A client may have stopped waiting.
            with suppress(BrokenPipeError, ConnectionResetError):
                self.end_headers()
                self.wfile.write(content)

        def do_GET(self) -> None:
            known = self.path == "/v1/models"
            served.keys.append(self.headers.get("Authorization"))
            models = {"object": "list", "data": [{"id": served.name}]}
            self._send(*((200, models) if known else (404, {"error": "no such path"})))

        def do_POST(self) -> None:
            assert self.path == "/v1/completions"
            served.keys.append(self.headers.get("Authorization"))
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            served.requests.append(body)
            self._send(*served.answer(body))

        def log_message(self, *_: object) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    served.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    try:
        yield served
    finally:
        server.shutdown()
        server.server_close()
        thread.join()

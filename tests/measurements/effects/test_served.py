"""Effects of a model that a server runs are those of the same model here."""

import json
import math
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pandas as pd
import pytest
import torch

import interp
from interp.cli import main
from interp.measurements.specs import Effects
from interp.models.organisms import DEFAULT
from interp.runs.folder import RunFolder
from interp.scoring import served as served_module
from tests.support.vllm_server import serving

OPTIONS = ["effects", "--limit", "2", "--donors", "2", "--model", DEFAULT]


@pytest.fixture(scope="module")
def server():
    # In float32, plain passes and those that share prefixes differ by up to 1e-5.
    with serving(interp.load_model(DEFAULT, dtype="float64")) as served:
        yield served


@pytest.fixture(autouse=True)
def fresh(request):
    if "server" in request.fixturenames:
        served = request.getfixturevalue("server")
        served.answer = served.completions
        served.requests.clear()
        served.keys.clear()


@pytest.mark.quick(1)
@pytest.mark.parametrize("answers", ["first", "whole"])
def test_effects_equal_those_of_the_model_here(answers, server, tmp_path):
    folders = [tmp_path / "here", tmp_path / "served"]
    more = ["--answers", answers]
    assert main([*OPTIONS, *more, "--dtype", "float64", "--out", str(folders[0])]) == 0
    assert not server.requests
    assert main([*OPTIONS, *more, "--server", server.url, "--out", str(folders[1])]) == 0
    assert server.requests
    here, served = map(RunFolder.read, folders)
    for table in ("segment_effects", "coalition_values"):
        expected, found = here.table(table), served.table(table)
        assert len(expected)
        pd.testing.assert_frame_equal(expected, found, atol=1e-9, rtol=0)
    (record,) = served.models().values()
    assert record.device == "meta" and record.logit_spacing is None
    assert here.record.run.parameters == served.record.run.parameters
    assert main(["report", str(folders[1])]) == 0
    history = len(served.record.history)
    assert main([*OPTIONS, *more, "--server", server.url, "--out", str(folders[1])]) == 0
    assert len(RunFolder.read(folders[1]).record.history) == history


@pytest.mark.slow
def test_results_in_memory_the_key_and_the_name_of_the_model(server, monkeypatch):
    spec = Effects(donors=1, server=server.url)
    here = interp.run(Effects(donors=1), models=DEFAULT, limit=1)
    found = interp.run(spec, models=DEFAULT, limit=1)
    assert found.table("segment_effects").shape == here.table("segment_effects").shape
    assert set(server.keys) == {None}
    server.keys.clear()
    server.requests.clear()
    monkeypatch.setenv("INTERP_SERVER_KEY", "secret")
    monkeypatch.setattr(server, "name", "first")
    interp.run(spec, models=DEFAULT, limit=1)
    assert set(server.keys) == {"Bearer secret"}
    assert {body["model"] for body in server.requests} == {"first"}
    server.answer = lambda body: (403, {"error": "wrong"})
    with pytest.raises(interp.UserError, match="INTERP_SERVER_KEY is not accepted") as caught:
        interp.run(spec, models=DEFAULT, limit=1)
    assert "secret" not in str(caught.value)


def each_is(change):
    """A server that gives other numbers than the model's log-probabilities."""

    def answer(served, body):
        status, reply = served.completions(body)
        for choice in reply["choices"]:
            tokens = body["prompt"][choice["index"]]
            with torch.no_grad():
                logits = served.model.hf(torch.tensor([tokens])).logits[0]
            for place, given in enumerate(choice["prompt_logprobs"][1:]):
                (one,) = given.values()
                one["logprob"] = change(one["logprob"], logits[place])
        return status, json.dumps(reply).encode()

    return answer


@pytest.mark.quick(5)
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda log, _: 3.0, "a token has 3, and none can be above 0"),
        (lambda log, _: 0.0011, "a token has 0.0011, and"),
        (lambda log, _: 1e308, r"a token has 1e\+308, and"),
        (lambda log, _: math.inf, "a token has inf, and"),
        (lambda log, _: math.nan, "a token has nan, and"),
        (lambda log, _: -log, r"a token has [\d.]+, and"),
        (lambda log, _: math.exp(log), r"a token has [\d.]+, and"),
        (lambda log, logits: float(log + logits.logsumexp(-1)), r"a token has [\d.]+, and"),
        (
            lambda log, logits: float(log - logits.abs().max() * 5),
            r"no token has more than -[\d.]+;",
        ),
        (lambda log, _: log if log > -1 else -9999.0, "an answer's token has -9999, as if"),
        (lambda log, _: log if log > -1 else -1e308, r"an answer's token has -1e\+308, as if"),
        (lambda log, _: log if log > -1 else -math.inf, "an answer's token has -inf, as if"),
        (lambda log, logits: float((logits * 1e6).log_softmax(-1).min()), "no token has more than"),
        (lambda log, _: log if log > -1 else None, "Input should be a valid number"),
        (lambda log, _: str(log), "Input should be a valid number"),
    ],
)
def test_numbers_that_are_no_log_probabilities_are_refused(change, message, server, tmp_path):
    server.answer = lambda body: each_is(change)(server, body)
    with pytest.raises(interp.UserError, match=message):
        interp.run(Effects(server=server.url), models=DEFAULT, limit=2, out=tmp_path / "run")
    with pytest.raises(interp.UserError, match="no table 'segment_effects'"):
        RunFolder.read(tmp_path / "run").table("segment_effects")


def test_what_rounding_makes_of_certainty_is_read(server):
    server.answer = lambda body: each_is(lambda log, _: log + 1e-4 if log > -1e-4 else log)(
        server, body
    )
    found = interp.run(Effects(donors=1, server=server.url), models=DEFAULT, limit=1)
    assert (found.table("segment_effects")["error"] == "").all()


def repeats(refused):
    """A server that gives some choices twice."""

    def answer(served, body):
        status, reply = served.completions(body)
        more = [one for place, one in enumerate(reply["choices"]) if refused(place)]
        return status, {"choices": [*reply["choices"], *more]}

    return answer


def lacks_a_token(served, body):
    status, answer = served.completions(body)
    answer["choices"][0]["prompt_logprobs"][-1] = {"0": {"logprob": -1.0}}
    return status, answer


@contextmanager
def raw(talk: Callable[[socket.socket], None]) -> Iterator[str]:
    """A server that reads a request and then does what `talk` does, once."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            connection, _ = listening.accept()
            with connection, suppress(OSError):
                connection.recv(2**16)
                talk(connection)

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1"
        thread.join()


def sends(content: bytes, *, reset: bool = False) -> Callable[[socket.socket], None]:
    def talk(connection: socket.socket) -> None:
        connection.sendall(content)
        if reset:
            time.sleep(0.1)
            linger = struct.pack("ii", 1, 0)
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    return talk


@pytest.mark.quick(4)
@pytest.mark.parametrize("head", [b"500 x", b"401 x", b"302 x", b"200 x"])
@pytest.mark.parametrize(
    ("body", "reset"),
    [
        (b"Content-Length: 1000\r\n\r\nabc", True),
        (b"Content-Length: 1000\r\n\r\nabc", False),
        (b"Transfer-Encoding: chunked\r\n\r\nzz\r\nabc", False),
        (b"Transfer-Encoding: chunked\r\n\r\nff\r\nabc", True),
        (b"Content-Length: -5\r\n\r\nabc", False),
    ],
)
def test_a_server_that_breaks_off_within_an_answer(head, body, reset, capsys):
    with raw(sends(b"HTTP/1.1 " + head + b"\r\n" + body, reset=reset)) as url:
        assert main([*OPTIONS, "--server", url]) == 2
    said = capsys.readouterr().err
    expected = (
        ("cannot be reached", "otherwise than") if head == b"200 x" else (f"({head[:3].decode()}",)
    )
    assert "Traceback" not in said and any(one in said for one in expected)


@pytest.mark.parametrize(
    "head",
    [
        b"HTTP/1.1 200 x\r\nContent-Length: 100000\r\n\r\n",
        b"HTTP/1.1 500 x\r\nContent-Length: 100000\r\n\r\n",
        b"HTTP/1.1 200 x\r\nA: ",
        b"",
        None,
    ],
)
def test_a_server_that_drips_or_says_nothing_has_an_end(head, monkeypatch):
    monkeypatch.setattr(served_module, "PATIENCE", 0.6)
    over = threading.Event()

    def drip(connection: socket.socket) -> None:
        connection.sendall(head or b"")
        while not over.wait(0.05):
            connection.sendall(b"" if head is None else b"H")

    with raw(drip) as url:
        start = time.monotonic()
        try:
            with pytest.raises(interp.UserError, match=r"no answer within 0\.6 s"):
                interp.run(Effects(server=url), models=DEFAULT, limit=1)
        finally:
            over.set()
        assert time.monotonic() - start < 20


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            lambda served, body: (401, {"error": "no key"}),
            r"\(401: .*no key.*set INTERP_SERVER_KEY",
        ),
        (lambda served, body: (404, {"error": "no model"}), r"\(404: .*does not run org/served"),
        (lambda served, body: (500, {"error": "x"}), r"\(500: .*vLLM's protocol"),
        (lambda served, body: (302, {}), r"refused a request \(302"),
        (lambda served, body: (200, b"<html>"), r"answers otherwise than expected \(not in JSON\)"),
        (lambda served, body: (200, {"choices": []}), "0 choices for"),
        (
            lambda served, body: (200, {"choices": [{"index": 0}]}),
            "prompt_logprobs: Field required",
        ),
        (lacks_a_token, "no log-probability of a prompt's token"),
        (repeats(lambda place: place % 3 == 0), r"choices for .* prompts"),
        (repeats(lambda place: place > 0), r"choices for .* prompts"),
        (repeats(lambda place: True), r"choices for .* prompts"),
    ],
)
def test_a_server_that_does_not_give_the_numbers_ends_the_run(answer, message, server, tmp_path):
    server.answer = lambda body: answer(server, body)
    with pytest.raises(interp.UserError, match=message):
        interp.run(Effects(server=server.url), models=DEFAULT, limit=2, out=tmp_path / "run")
    assert len(server.requests) == 1


def test_what_does_not_go_with_a_server_is_refused(server, organism, prompts, tmp_path, capsys):
    with pytest.raises(interp.UserError, match=r"weights of .* are on this machine"):
        interp.effects(organism, prompts, server=server.url)
    own = ["--out", str(tmp_path / "run")]
    for words, message in (
        (["--server", "ftp://x"], "is not the address of a server"),
        (["--server", server.url, "--device", "cpu"], "omit the server"),
        (["--server", "http://127.0.0.1:9/v1"], "nothing listens at this address"),
        (["--server", "http://nowhere.invalid/v1"], "no machine has this name"),
        (["--server", server.url.removesuffix("/v1") + "/v2"], "correct the address"),
    ):
        assert main([*OPTIONS, *words, *own]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()

"""Effects of a model that a server runs are those of the same model here."""

import time

import pandas as pd
import pytest

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
def test_results_in_memory_and_the_key(server, monkeypatch):
    spec = Effects(donors=1, server=server.url)
    here = interp.run(Effects(donors=1), models=DEFAULT, limit=1)
    assert interp.run(spec, models=DEFAULT, limit=1).table("segment_effects").shape == (
        here.table("segment_effects").shape
    )
    assert set(server.keys) == {None}
    server.keys.clear()
    monkeypatch.setenv("INTERP_SERVER_KEY", "secret")
    interp.run(spec, models=DEFAULT, limit=1)
    assert set(server.keys) == {"Bearer secret"}


def lacks_a_token(server, body):
    status, answer = server.completions(body)
    answer["choices"][0]["prompt_logprobs"][-1] = {"0": {"logprob": -1.0}}
    return status, answer


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


def test_a_server_that_does_not_answer(server, monkeypatch):
    monkeypatch.setattr(served_module, "PATIENCE", 0.5)
    server.answer = lambda body: time.sleep(1.5) or (200, {"choices": []})
    with pytest.raises(interp.UserError, match=r"no answer within 0\.5 s"):
        interp.run(Effects(server=server.url), models=DEFAULT, limit=1)


def test_a_key_that_is_refused(server, monkeypatch):
    monkeypatch.setenv("INTERP_SERVER_KEY", "secret")
    server.answer = lambda body: (403, {"error": "wrong"})
    with pytest.raises(interp.UserError, match="INTERP_SERVER_KEY is not accepted") as caught:
        interp.run(Effects(server=server.url), models=DEFAULT, limit=1)
    assert "secret" not in str(caught.value)


@pytest.mark.slow
def test_only_the_model_of_this_name_is_asked_for(server, monkeypatch):
    monkeypatch.setattr(server, "name", "first")
    interp.run(Effects(server=server.url), models=DEFAULT, limit=1)
    assert {body["model"] for body in server.requests} == {"first"}

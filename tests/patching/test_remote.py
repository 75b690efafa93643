"""Patching on a server, which holds the weights: here, a model that this process does not load."""

import pytest
import torch
from transformers import PreTrainedModel

pytest.importorskip("nnsight", reason="the extra nnsight is not installed")

from nnsight import CONFIG
from nnsight.intervention.backends.remote import RemoteError
from websocket import WebSocketException

import interp
from interp.cli import main
from interp.errors import ModelError, UserError
from interp.models.find import find_named
from interp.models.load import load_skeleton
from interp.models.loading import Loading
from interp.runs.folder import RunFolder
from tests.patching.test_backends import TOLERANCE
from tests.support.hub import COMMIT, cached
from tests.support.pairs import sites_of
from tests.support.prompts import some_prompts
from tests.support.server import Server
from tests.support.tiny import CONFIGS, make_tiny
from tests.support.tokenizers import byte_level

REMOTE = {"backend": "nnsight", "remote": True}


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """A function that puts a model on a server and its configuration, not its weights, here."""

    def served(kind="llama", dtype=torch.float32):
        model = make_tiny(kind, byte_level(), dtype=dtype)
        cached(model, tmp_path / "cache", monkeypatch, weights=False)
        server = Server(model, monkeypatch)
        monkeypatch.setattr(PreTrainedModel, "from_pretrained", None)
        return model, server

    return served


def skeleton(**options):
    loading = Loading(**options)
    return load_skeleton(find_named("org/tiny", loading), loading)


@pytest.mark.quick("llama")
@pytest.mark.parametrize("kind", CONFIGS)
def test_a_server_gives_the_numbers_of_the_native_backend(kind, serve):
    model, server = serve(kind)
    here = skeleton()
    assert here.identity == f"org/tiny@{COMMIT}"
    sites = [site for site in sites_of(model) if site != "pattern"]
    options = {"sites": sites, "granularity": "segment", "policy": "mean"}
    prompts = some_prompts(2)
    native = interp.patch(model, prompts, **options)
    remote = interp.patch(here, prompts, **options, **REMOTE)
    assert all(parameter.is_meta for parameter in here.hf.parameters())
    assert len(server.sent) == len({prompt.pair_id for prompt in prompts}) == 2
    assert {tuple(request.env) for request in server.sent} == {("attn_implementation",)}
    columns = ["pair_id", "site", "layer", "head", "role"]
    assert native.patches[columns].equals(remote.patches[columns])
    difference = (native.patches["effect"] - remote.patches["effect"]).abs().max()
    assert difference < TOLERANCE < native.patches["effect"].abs().max() / 30
    for metric in ("base_metric", "source_metric"):
        assert (native.pairs[metric] - remote.pairs[metric]).abs().max() < TOLERANCE


COMMAND = ["patch", "--model", "org/tiny", "--backend", "nnsight", "--limit", "4"]
ERRORS = {
    "refused key": RemoteError("Failed to send request: Invalid API key"),
    "not served": RemoteError("org/tiny is not deployed"),
    "queue": RemoteError("Traceback:\n  File x, line 1\nTimeoutError: no place in the queue"),
    "connection": ConnectionResetError("Connection reset by peer"),
    "socket": WebSocketException("Handshake status 503"),
    "no status": ValueError("1 validation error for ResponseModel"),
}


@pytest.mark.quick(1)
@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_an_error_of_the_server_is_told_and_finished_pairs_are_kept(error, serve, tmp_path, capsys):
    model, server = serve()
    server.fails = lambda number: error if number == 3 else None
    command = [*COMMAND, "--remote", "--out", str(tmp_path / "run")]
    assert main(command) == 2
    told = capsys.readouterr().err
    assert str(error).splitlines()[-1] in told
    assert CONFIG.API.HOST in told
    assert "Traceback" not in told
    run = RunFolder.read(tmp_path / "run")
    assert len(run.done("org/tiny")) == 2
    assert main(command) == 0
    assert len(server.sent) == 3 + 2
    remote = RunFolder.read(tmp_path / "run").table("patches")
    native = interp.patch(model, interp.load_prompts(limit=4)).patches
    assert (remote["effect"] - native["effect"]).abs().max() < TOLERANCE


REFUSED = {
    "gradients": (["--estimate", "gradient"], "gradients"),
    "patterns": (["--sites", "pattern"], "pattern"),
    "sets": (["--sets"], "natively"),
    "another backend": (["--backend", "transformer-lens"], "nnsight"),
    "not of the hub": (["--model", "organism/llama-shallow"], "hub"),
    "device": (["--device", "cpu"], "device"),
    "weights": (["--quantization", "4bit"], "quantization"),
    "no such layer": (["--layers", "7"], "layer 7"),
}


@pytest.mark.parametrize(("more", "named"), REFUSED.values(), ids=REFUSED)
def test_what_needs_weights_is_refused_before_anything_is_sent(more, named, serve, capsys):
    _, server = serve()
    assert main([*COMMAND, "--remote", *more]) == 2
    assert named in capsys.readouterr().err
    assert server.sent == []


@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [("APIKEY", None, "NDIF_API_KEY"), ("HOST", "localhost:80", "NDIF_HOST")],
)
def test_without_a_key_or_an_address_nothing_is_sent(setting, value, named, serve, monkeypatch):
    _, server = serve()
    monkeypatch.setattr(CONFIG.API, setting, value)
    with pytest.raises(UserError, match=named):
        interp.patch(skeleton(), some_prompts(1), **REMOTE)
    assert server.sent == []


def test_a_server_that_cannot_be_reached_is_named(serve, monkeypatch):
    _, server = serve()
    monkeypatch.setattr(CONFIG.API, "HOST", "http://127.0.0.1:9")
    server.goes()
    with pytest.raises(ModelError, match=r"127\.0\.0\.1:9 .*refused"):
        interp.patch(skeleton(), some_prompts(1), **REMOTE)


def test_the_type_on_record_is_that_of_the_server(serve):
    _, server = serve()
    with pytest.raises(ModelError, match="--dtype float32"):
        interp.patch(skeleton(dtype="bfloat16"), some_prompts(2), **REMOTE)
    assert len(server.sent) == 1


def test_a_coarse_type_is_told_once(serve, capsys):
    _, server = serve(dtype=torch.bfloat16)
    assert skeleton().dtype == "bfloat16"
    result = interp.patch(skeleton(), some_prompts(2), **REMOTE)
    assert len(server.sent) == 2
    assert capsys.readouterr().err.count("multiples of") == 1
    assert result.patches["effect"].abs().max() > 0


def test_a_server_checks_that_the_stream_is_the_sum_of_its_sites(serve):
    _, server = serve("gemma2")
    here = skeleton()
    here.hf.config.model_type = "brand_new"  # tried as Llama, whose attention has no norm after it
    new = interp.Model("new", here.hf, here.tokenizer, here.source)
    with pytest.raises(ModelError, match="resid_mid"):
        interp.patch(new, some_prompts(2), sites=["resid_mid"], **REMOTE)
    assert len(server.sent) == 1


def test_large_passes_are_cut_to_the_budget(serve):
    model, _ = serve()
    prompts = some_prompts(1)
    native = interp.patch(model, prompts, granularity="position", layers=[0])
    sizes = []

    def count(module, given):
        sizes.append(given[0].numel())

    model.hf.get_input_embeddings().register_forward_pre_hook(count)
    remote = interp.patch(
        skeleton(), prompts, granularity="position", layers=[0], batch_tokens=200, **REMOTE
    )
    length = int(native.pairs["base_tokens"].max())
    assert length < max(sizes) <= 200 < len(native.patches) * length
    assert (native.patches["effect"] - remote.patches["effect"]).abs().max() < TOLERANCE


def test_python_measures_a_named_model_without_its_weights(serve):
    _, server = serve()
    what, prompts = interp.Patch(**REMOTE, control=True), interp.load_prompts(limit=2)
    result = interp.run(what, models="org/tiny", prompts=prompts)
    assert set(result.patches["source"]) == {"counterpart", "control"}
    assert len(server.sent) == 4
    assert torch.isfinite(torch.tensor(result.patches["effect"].to_numpy(float))).all()

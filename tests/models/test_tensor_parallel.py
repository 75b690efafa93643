"""A model spread over two processes: the same numbers as one process, or a refusal."""

import json
import os
import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
import torch
from transformers import AutoModelForCausalLM

import interp
from interp.errors import UserError
from tests.support.processes import child, ended
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

PARALLEL = 2

EQUAL = {
    "evaluate": lambda model, prompts: interp.evaluate(model, prompts).answers,
    "generate": lambda model, prompts: interp.generate(model, prompts, max_new_tokens=4).table(
        "completions"
    ),
    "effects": lambda model, prompts: interp.effects(model, prompts).table("segment_effects"),
    "gradients": lambda model, prompts: (
        interp.attribute(
            model, prompts, methods=("input_gradient", "input_x_gradient", "gim", "frozen_norms")
        ).segment_scores
    ),
    "patches": lambda model, prompts: interp.patch(
        model, prompts, sites=("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
    ).table("patches"),
    "estimates": lambda model, prompts: interp.patch(
        model, prompts, sites=("resid_pre", "mlp_out"), estimate="integrated"
    ).table("patches"),
}
"""Calls whose tables are the same in one process and in two."""

REFUSED = {
    **{
        method: lambda model, prompts, method=method: interp.attribute(
            model, prompts, methods=(method,)
        )
        for method in ("attention", "attention_rollout", "value_weighted_norm")
    },
    **{
        site: lambda model, prompts, site=site: interp.patch(model, prompts, sites=(site,))
        for site in ("z", "q", "k", "v", "pattern")
    },
    "edges": interp.edges,
    "circuits": interp.find_circuits,
    "folder": lambda model, prompts: interp.run(
        interp.Evaluate(), models=model, prompts=prompts, out="never"
    ),
}
"""Calls that need whole heads or weights, or a folder that one process writes."""


def load(folder, **options):
    hf = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float64, **options)
    return interp.Model("tiny", hf.eval(), byte_level())


def results(model, prompts, calls):
    """For each call, the numbers of its table, or the message of its refusal."""
    found = {}
    for name, call in calls.items():
        try:
            table = call(model, prompts).select_dtypes("number").astype(float)
        except UserError as error:
            found[name] = str(error)
        except Exception as error:
            found[name] = repr(error)
        else:
            found[name] = table.to_dict("list")
    return found


def part(rank, port, folder, out):
    """What one of the processes does."""
    os.environ |= {
        **{"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": str(PARALLEL)},
        **{"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)},
    }
    torch.set_num_threads(1)
    os.chdir(out)
    model, prompts = load(folder, tp_plan="auto"), some_prompts(1)
    found = results(model, prompts, EQUAL | REFUSED) | {"identity": model.identity}
    Path(out, f"{rank}.json").write_text(json.dumps(found))
    torch.distributed.barrier()
    os._exit(0)  # the group's threads would wait for one another


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    make_tiny("llama", byte_level(), num_hidden_layers=4).hf.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def parts(folder, tmp_path_factory):
    """What each process found."""
    out = tmp_path_factory.mktemp("parts")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with ExitStack() as stack:
        ranks = [
            stack.enter_context(child(part, rank, port, str(folder), str(out)))
            for rank in range(PARALLEL)
        ]
        assert [ended(rank) for rank in ranks] == [0] * PARALLEL
    return [json.loads((out / f"{rank}.json").read_text()) for rank in range(PARALLEL)]


@pytest.fixture(scope="module")
def alone(folder):
    """What one process finds that holds the whole model."""
    model = load(folder)
    return results(model, some_prompts(1), EQUAL) | {"identity": model.identity}


@pytest.mark.slow
@pytest.mark.parametrize("name", EQUAL)
def test_what_is_right_is_as_in_one_process(name, parts, alone):
    for found in parts:
        assert found[name].keys() == alone[name].keys()
        for column, values in alone[name].items():
            assert found[name][column] == pytest.approx(values, rel=1e-6, abs=1e-6, nan_ok=True)


@pytest.mark.quick(2)
@pytest.mark.parametrize("name", REFUSED)
def test_what_needs_whole_heads_is_refused(name, parts):
    for found in parts:
        assert "tp_plan" in found[name]


@pytest.mark.slow
def test_the_model_is_the_same(parts, alone):
    assert {found["identity"] for found in parts} == {alone["identity"]}

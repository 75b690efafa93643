"""Two ranks that hold a model together: the tables of one process, whoever fails."""

import os
from contextlib import ExitStack
from dataclasses import replace

import pandas as pd
import pytest

from interp.attribution.registry import find_method, method_names
from interp.jobs import Job
from interp.measurements.specs import (
    Activations,
    Attribute,
    Effects,
    Evaluate,
    Generate,
    Patch,
    SoftScore,
)
from interp.models.loading import Loading
from interp.models.names import ModelChoice
from interp.runs.execute import execute, keeping_model, take_part
from interp.runs.folder import RunFolder
from interp.runs.together import joined
from interp_probes.specs import Residuals
from tests.support.processes import child, ended
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

RANKS = 2
CALL = "0123456789ab"
STREAM = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
SPECS = {
    "evaluate": Evaluate(),
    "soft-score": SoftScore(),
    "generate": Generate(max_new_tokens=4),
    "sampled": Generate(max_new_tokens=4, temperature=1.0),
    "attribute": Attribute(
        methods=tuple(name for name in method_names() if not find_method(name).reads_heads),
        keep_tokens=True,
    ),
    "effects": Effects(donors=2),
    "patch": Patch(sites=STREAM, sets=True, control=True),
    "estimates": Patch(sites=STREAM, estimate="integrated", verify=2),
    "activations": Activations(sites=STREAM, tokens="all"),
    "residuals": Residuals(),
}
"""Whatever does not read heads."""


def plan_of(folder, model, spec, **loading):
    job = Job(
        what=spec,
        models=(ModelChoice(place=str(model), name="tiny"),),
        loading=Loading(dtype="float64", device="cpu", **loading),
    )
    return replace(job.plan(folder, prompts=some_prompts(1)), call=CALL)


def part(rank, meeting, model, out):
    """What one of the ranks does."""
    os.environ["OMP_NUM_THREADS"] = "1"
    loading = Loading(device="cpu", tensor_parallel=RANKS)
    with joined(rank, loading, meeting) as ranks, keeping_model():
        for name, spec in SPECS.items():
            plan = plan_of(out / name, model, spec, tensor_parallel=RANKS)
            if rank == 0:
                plan.open()
            take_part(plan, 0, ranks)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    make_tiny("llama", byte_level(), num_hidden_layers=2, hidden_act="relu").hf.save_pretrained(
        folder
    )
    byte_level().save_pretrained(folder)
    return folder


def ended_ranks(function, meeting, *arguments, ranks=RANKS):
    with ExitStack() as stack:
        children = [
            stack.enter_context(child(function, rank, meeting, *arguments)) for rank in range(ranks)
        ]
        return [ended(one, 170) for one in children]


@pytest.fixture(scope="module")
def together(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("together")
    assert ended_ranks(part, out / "meeting", model, out) == [0] * RANKS
    return out


@pytest.fixture(scope="module")
def alone(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    with keeping_model():
        for name, spec in SPECS.items():
            execute(plan_of(out / name, model, spec))
    return out


def shards(folder):
    (run,) = (RunFolder.read(folder),)
    return sorted(path for path in (folder / "shards").glob("*/*") if path.is_dir()), run


@pytest.mark.parametrize("name", SPECS)
def test_tables_are_those_of_one_process(name, together, alone):
    ours, theirs = shards(together / name)[0], shards(alone / name)[0]
    assert [shard.name for shard in ours] == [shard.name for shard in theirs]
    for one, other in zip(ours, theirs, strict=True):
        for file in sorted(other.glob("*.parquet")):
            found, expected = (pd.read_parquet(place / file.name) for place in (one, other))
            assert len(expected) or name in ("generate", "sampled")
            pd.testing.assert_frame_equal(found, expected, rtol=1e-6, atol=1e-6)

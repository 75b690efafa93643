"""Two ranks that hold a model together: the tables of one process, whoever fails."""

import json
import os
import signal
from contextlib import ExitStack
from dataclasses import replace
from datetime import timedelta
from itertools import count

import pandas as pd
import pytest
import torch

from interp.attribution.registry import find_method, method_names
from interp.errors import UserError
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
from interp.measuring.spec import Spec
from interp.models.loading import Loading
from interp.models.names import ModelChoice
from interp.runs import execute as execute_module
from interp.runs import together
from interp.runs.execute import execute, take_part
from interp.runs.plan import keeping_model
from interp.runs.ranks import LOST
from interp.runs.together import LostRankError, joined
from interp_probes.specs import Residuals
from tests.support.processes import child, ended
from tests.support.prompts import some_prompts
from tests.support.tiny import make_tiny, save
from tests.support.tokenizers import byte_level

RANKS = 2
CALL = "0123456789ab"
STREAM = ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
SPECS = {
    "evaluate": Evaluate(),
    "soft-score": SoftScore(),
    "changed": Evaluate(answers="whole", content_free=True, without_segments=True),
    "generate": Generate(max_new_tokens=4),
    "sampled": Generate(max_new_tokens=4, temperature=1.0),
    "attribute": Attribute(
        methods=tuple(name for name in method_names() if not find_method(name).reads_heads),
        keep_tokens=True,
    ),
    "effects": Effects(donors=2),
    "whole effects": Effects(donors=2, answers="whole"),
    "whole": Attribute(answers="whole", methods=("input_x_gradient", "leave_one_out:deletion")),
    "whole patch": Patch(answers="whole", sites=("mlp_out",)),
    "patch": Patch(sites=STREAM, sets=True, control=True),
    "estimates": Patch(sites=STREAM, estimate="integrated", verify=2),
    "activations": Activations(sites=STREAM, tokens="all"),
    "residuals": Residuals(),
}
"""Whatever does not read heads."""


def plan_of(folder, model, spec, *, pairs=1, **loading):
    job = Job(
        what=spec,
        models=(ModelChoice(place=str(model), name="tiny"),),
        loading=Loading(dtype="float64", device="cpu", **loading),
    )
    return replace(job.plan(folder, prompts=some_prompts(pairs)), call=CALL)


def part(rank, meeting, model, out):
    """What one of the ranks does."""
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
    uneven = {"num_hidden_layers": 2, "intermediate_size": 31, "hidden_act": "relu"}
    return save(make_tiny("llama", byte_level(), **uneven), folder)


def endings_of(function, meeting, *arguments):
    """The exit codes of ranks that run a function."""
    with ExitStack() as stack:
        children = [
            stack.enter_context(child(function, rank, meeting, *arguments)) for rank in range(RANKS)
        ]
        return [ended(one, 170) for one in children]


@pytest.fixture(scope="module")
def spread(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("together")
    assert endings_of(part, out / "meeting", model, out) == [0] * RANKS
    return out


@pytest.fixture(scope="module")
def alone(model, tmp_path_factory):
    out = tmp_path_factory.mktemp("alone")
    with keeping_model():
        for name, spec in SPECS.items():
            execute(plan_of(out / name, model, spec))
    return out


def check_same(ours, theirs):
    """Check that two run folders have the same shards, with the same tables."""
    found, expected = (sorted((folder / "shards").glob("*/*")) for folder in (ours, theirs))
    assert [shard.name for shard in found] == [shard.name for shard in expected]
    for one, other in zip(found, expected, strict=True):
        for file in other.glob("*.parquet"):
            tables = (pd.read_parquet(place / file.name) for place in (one, other))
            pd.testing.assert_frame_equal(*tables, rtol=1e-6, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", SPECS)
def test_tables_are_those_of_one_process(name, spread, alone):
    check_same(spread / name, alone / name)
    filled = [pd.read_parquet(file) for file in (spread / name).glob("shards/*/*/*.parquet")]
    assert sum(map(len, filled))
    assert all((table["error"] == "").all() for table in filled if "error" in table)
    record = json.loads((spread / name / "workers" / f"{CALL}-0.json").read_text())
    assert record["ranks"] == RANKS
    assert record["error"] is None


FEW = Evaluate()
PAIRS = 4


def disturbed(rank, meeting, model, out, how):
    """One of the ranks; rank 1 fails in the second shard, in one of several ways."""
    Spec.shard_prompts = 2
    together.AFTER_FAILURE = timedelta(seconds=1)
    bound = execute_module.bind

    def failing(*arguments, **options):
        measurement = bound(*arguments, **options)
        batches = count()

        def measure_batch(batch):
            fails = rank == 1 and next(batches) == 1
            if fails and how == "killed":
                os.kill(os.getpid(), signal.SIGKILL)
            if fails and how == "memory before the pass":
                raise torch.OutOfMemoryError("out of memory")
            rows = measurement.measure_batch(batch)
            if fails and how == "memory after the pass":
                raise torch.OutOfMemoryError("out of memory")
            if fails and how == "refused after the pass":
                raise UserError("a prompt that only this process cannot read")
            return rows

        return replace(measurement, measure_batch=measure_batch)

    execute_module.bind = failing
    try:
        with joined(rank, Loading(device="cpu", tensor_parallel=RANKS), meeting) as ranks:
            plan = plan_of(out, model, FEW, pairs=PAIRS, tensor_parallel=RANKS)
            if rank == 0:
                plan.open()
            take_part(plan, 0, ranks)
    except LostRankError as error:
        (out / f"{rank}.txt").write_text(str(error))
        raise SystemExit(LOST) from None


@pytest.fixture
def in_small_shards(monkeypatch):
    monkeypatch.setattr(Spec, "shard_prompts", 2)


@pytest.fixture
def whole(model, tmp_path, in_small_shards):
    execute(plan_of(tmp_path / "whole", model, FEW, pairs=PAIRS))
    return tmp_path / "whole"


ENDINGS = {
    "killed": ([LOST, -signal.SIGKILL], ["does not answer"]),
    "memory before the pass": ([LOST, LOST], ["", "memory ran out in one"]),
    "refused after the pass": ([LOST, LOST], ["refused", "refused"]),
}
"""For each way in which rank 1 fails: the exit code of each rank, and what it says."""


@pytest.mark.quick(1)
@pytest.mark.parametrize("how", ENDINGS)
def test_a_rank_that_fails_alone_ends_all_and_one_process_resumes(how, model, whole, tmp_path):
    out, (codes, said) = tmp_path / "run", ENDINGS[how]
    assert endings_of(disturbed, tmp_path / "meeting", model, out, how) == codes
    for rank, words in enumerate(said):
        assert words in (out / f"{rank}.txt").read_text()
        (out / f"{rank}.txt").unlink()
    assert not list((out / "claims").glob("*/*"))
    kept = {shard: shard.stat().st_mtime_ns for shard in (out / "shards").glob("*/*")}
    assert len(kept) == 1
    execute(plan_of(out, model, FEW, pairs=PAIRS))
    check_same(out, whole)
    assert all(shard.stat().st_mtime_ns == when for shard, when in kept.items())


@pytest.mark.slow
def test_if_memory_runs_out_in_one_rank_all_use_smaller_batches(model, whole, tmp_path):
    out, how = tmp_path / "run", "memory after the pass"
    assert endings_of(disturbed, tmp_path / "meeting", model, out, how) == [0, 0]
    assert (out / "memory.json").exists()
    check_same(out, whole)


@pytest.mark.slow
def test_ranks_resume_a_run_of_one_process(model, whole, tmp_path):
    out = tmp_path / "run"
    execute(plan_of(out, model, FEW, pairs=1))
    (kept,) = (out / "shards").glob("*/*")
    when = kept.stat().st_mtime_ns
    assert endings_of(disturbed, tmp_path / "meeting", model, out, "not") == [0, 0]
    check_same(out, whole)
    assert kept.stat().st_mtime_ns == when

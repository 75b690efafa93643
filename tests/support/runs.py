"""Runs on tiny models, undisturbed or disturbed, in this process or in a child."""

import dataclasses
import functools
import os
import signal
import sys
import time

from interp.cli import main
from interp.errors import UserError
from interp.files import locked
from interp.measurements.answers.evaluation import evaluation
from interp.measurements.specs import Evaluate
from interp.measuring.core import bind
from interp.measuring.spec import Spec, Stage
from interp.runs import run as run_module
from interp.runs.claims import Claims
from interp.runs.execute import execute
from interp.runs.merge import merging
from interp.runs.options import ComputeOptions, ExecutionOptions
from interp.runs.plan import RunPlan
from interp.runs.run import in_use
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

EVALUATE = Evaluate()
ANY_ERRORS = ComputeOptions(fail_on_error=1.0)
MODELS = ("tiny llama", "tiny gpt2")
PAIRS = 12
SHARD_PROMPTS = 2
KEYS = [f"{number:032x}" for number in range(20)]
SHARDS = PAIRS * 2 // SHARD_PROMPTS

# Loaded once, by the server from which children are forked.
some_prompts(PAIRS)


def work_in(folder, *, models=MODELS, spec=EVALUATE, **options):
    return RunPlan(
        folder,
        {folder: Stage("evaluate", some_prompts(PAIRS), spec)},
        {name: tiny_model(name.removeprefix("tiny ")) for name in models},
        **{"computing": ANY_ERRORS, **options},
    )


def run_in(folder, models=MODELS, spec=EVALUATE):
    Spec.shard_prompts = SHARD_PROMPTS
    (run,) = execute(work_in(folder, models=models, spec=spec))
    with merging(run.folder):
        pass
    return run


def resume(folder, options):
    """Resume the run; exits with 2 after a `UserError`, as the command line does."""
    Spec.shard_prompts = SHARD_PROMPTS
    try:
        (run,) = execute(work_in(folder), ExecutionOptions(**options))
        with merging(run.folder):
            pass
    except UserError:
        sys.exit(2)


def run_and_log(folder, log):
    """Run slowly, and log each measured shard as a line of a file."""
    original = run_module.write

    def logged(shard, *rest, **options):
        with log.open("a") as stream:
            stream.write(f"{os.getpid()} {shard.folder}\n")
        original(shard, *rest, **options)

    run_module.write = logged
    run_in(folder, spec=altered(_doze))


def run_main(argv, errors):
    """Run the command line, with standard error in a file; exits with its code."""
    with errors.open("ab") as stream:
        os.dup2(stream.fileno(), 2)
    sys.exit(main(argv))


def hang_in(folder):
    """Claim a shard of the second model, and get stuck."""
    Spec.shard_prompts = SHARD_PROMPTS
    (run,) = work_in(folder).open()
    run.measure(changed(bind(Evaluate(), tiny_model("gpt2")), _sleep), origin={})


def hold(folder):
    """Open a folder as a command does, and get stuck before a model is loaded."""
    (run,) = work_in(folder).open()
    with in_use(run):
        time.sleep(1000)


def count_up(folder, seconds):
    """Increment the number in a file fifty times, each time under a lock."""
    for _ in range(50):
        with locked(folder, "count"):
            time.sleep(seconds)
            file = folder / "count"
            file.write_text(str(int(file.read_text()) + 1 if file.exists() else 1))


def claim_each(folder, log):
    """Claim twenty shards, one after another, and log the successful claims."""
    claims = Claims(folder, ())
    for shard in KEYS:
        with claims.take(shard) as mine:
            if mine:
                with log.open("a") as stream:
                    stream.write(f"{shard}\n")
                time.sleep(0.02)


def die_while_claiming(folder, shard):
    """Claim a shard, and end like kill -9 when the claim's owner is about to be written."""

    def die(frame, event, argument):
        if event == "c_call" and argument.__name__ == "write":
            os.kill(os.getpid(), signal.SIGKILL)

    claims = Claims(folder, ())
    sys.setprofile(die)
    with claims.take(shard):
        pass


def altered(measure_batch):
    """`Evaluate` with another function, which gets the original, under the same shard ids."""

    class Altered(Evaluate):
        measures = f"{__name__}:altered_evaluation"
        other = staticmethod(measure_batch)

        def modules(self):
            return EVALUATE.modules()

    return Altered()


def altered_evaluation(model, spec, *, batch_tokens=None):
    return changed(evaluation(model, spec, batch_tokens=batch_tokens), spec.other)


def changed(measurement, measure_batch):
    """The measurement with another function, which gets the original, under the same shard ids."""
    original = measurement.measure_batch
    other = functools.wraps(original)(functools.partial(measure_batch, original))
    return dataclasses.replace(measurement, measure_batch=other)


def _doze(original, batch):
    time.sleep(0.1)
    return original(batch)


def _sleep(original, batch):
    time.sleep(1000)

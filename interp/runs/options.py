"""Options for carrying out a run: the settings of each process, and the number of processes."""

from pathlib import Path
from typing import Annotated

from pydantic import Field

from interp import texts
from interp.options import FromText, Options
from interp.plugins import EXECUTORS, plugins

INLINE = "inline"
"""The executor that starts no other process."""

Threads = Annotated[int, Field(ge=1, le=texts.MOST_THREADS)] | None


def _executor(text: str) -> str:
    return texts.one_of("executor", (INLINE, *plugins(EXECUTORS)))(text)


class ComputeOptions(Options):
    """Settings of each measuring process, sent to every worker."""

    thoughts: Annotated[Path | None, FromText(texts.path, "DIR")] = None
    """folder of a run of generate --thinking on, or a file of thoughts that another tool stored
    (vLLM, OpenAI-like servers, Inspect, lm-eval, a table); answers are read after its thoughts
    """
    threads: Threads = None
    """CPU threads of each process (default: one for small models, otherwise one per core or
    OMP_NUM_THREADS)
    """
    batch_tokens: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] | None = None
    """tokens in a batch, including padding (default: 2048 on a CPU, or 512 for patching and edges;
    32768 on a GPU, or 8192 for attribution)
    """
    fail_on_error: Annotated[float, Field(ge=0, le=1), FromText(texts.share, "SHARE")] = 0.1
    """stop if more than this share of a model's prompts have errors"""


class ExecutionOptions(Options):
    """The folder for results, and the processes that measure."""

    out: Annotated[Path | None, FromText(texts.folder, "DIR")] = None
    """folder of the results; rerun the command to resume (default: a folder in runs/ named after
    command and options)
    """
    executor: Annotated[str, FromText(_executor, "NAME")] = INLINE
    """inline: in this process; local: in processes on this machine, each with a share of the GPUs
    or cores; slurm: in jobs on a SLURM cluster; or an executor of another package
    """
    workers: Annotated[int, Field(ge=1, le=texts.MOST_WORKERS)] | None = None
    """number of processes or jobs, at most 1,024 (default: for local one per GPU, or two; for slurm
    one)
    """
    slurm_options: tuple[Annotated[str, FromText(texts.slurm_option, "K=V")], ...] = ()
    """options of the SLURM jobs, such as partition=gpu, time=4:00:00, mem=64GB, gpus-per-node=1"""
    retry_errors: bool = False
    """measure shards that had errors in an earlier call again"""

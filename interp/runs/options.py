"""The options of how a run is carried out: by each process, and by how many of them."""

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from interp import texts
from interp.options import FromText, Options

Threads = Annotated[int, Field(ge=1, le=texts.MOST_THREADS)] | None


class ComputeOptions(Options):
    """How each process measures; sent to every worker."""

    thoughts: Annotated[Path | None, FromText(texts.folder, "DIR")] = None
    """folder of a run of generate --thinking on, after whose thoughts answers are read"""
    threads: Threads = None
    """threads of a process on the CPU (default: one for small models, else one a core, or what
    OMP_NUM_THREADS says)"""
    batch_tokens: Annotated[int, Field(ge=1, le=texts.MOST_TOKENS)] | None = None
    """tokens in a batch, padding included (default: 2048 on a CPU, 512 there to patch or for
    edges, 32768 on a
    GPU, 8192 there to attribute)"""
    fail_on_error: Annotated[float, Field(ge=0, le=1), FromText(texts.share, "SHARE")] = 0.1
    """stop when a larger share of a model's prompts than this has an error"""


class ExecutionOptions(Options):
    """Where results go, and who measures."""

    out: Annotated[Path | None, FromText(texts.folder, "DIR")] = None
    """folder of the results; rerun the same command to resume (default: a folder in runs/ named
    after command and options)"""
    executor: Literal["inline", "local", "slurm"] = "inline"
    """inline: in this process; local: in processes on this machine, each with its share of the GPUs
    or the cores; slurm: in jobs on a SLURM cluster"""
    workers: Annotated[int, Field(ge=1, le=texts.MOST_WORKERS)] | None = None
    """how many processes or jobs, at most 1,024 (default: local one for each GPU, or two; slurm
    one)"""
    slurm_options: tuple[Annotated[str, FromText(texts.slurm_option, "K=V")], ...] = ()
    """options of the SLURM jobs, such as partition=gpu, time=4:00:00, mem=64GB, gpus-per-node=1"""
    retry_errors: bool = False
    """measure shards that hold errors of an earlier call again"""

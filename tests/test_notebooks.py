"""Every notebook runs from a clean kernel, and is kept as it ran."""

from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))

# What the kernel's own packages warn about is not this project's.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)
def test_a_notebook_runs_and_gives_what_it_shows(file, tmp_path):
    notebook = nbformat.read(file, as_version=4)
    shown = [results(cell) for cell in notebook.cells]
    assert any(shown), "the notebook is kept without its results"
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    assert [results(cell) for cell in notebook.cells] == shown


def results(cell) -> list[set[str]]:
    """The kinds of results of a cell, such as text/html and image/png."""
    outputs = cell.get("outputs", [])
    return [set(output["data"]) for output in outputs if "data" in output]

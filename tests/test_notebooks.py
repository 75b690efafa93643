"""Every notebook runs from a clean kernel by the public interface alone, and is kept as it ran."""

import ast
from pathlib import Path

import nbformat
import pytest
from IPython.core.inputtransformer2 import TransformerManager
from nbclient import NotebookClient

import interp
from tests.test_import_directions import imports

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))
REAL = "10_"
"""How the name of the notebook begins that measures a real model (`tests/real`)."""

each_notebook = pytest.mark.parametrize("file", NOTEBOOKS, ids=lambda file: file.stem)

# What the kernel's own packages warn about is not this project's.
pytestmark = pytest.mark.filterwarnings("default")


@pytest.mark.slow
@pytest.mark.parametrize(
    "file",
    [file for file in NOTEBOOKS if not file.stem.startswith(REAL)],
    ids=lambda file: file.stem,
)
def test_a_notebook_runs_and_gives_what_it_shows(file, tmp_path):
    check_run(file, tmp_path)


def check_run(file, tmp_path):
    notebook = read(file)
    shown = [results(cell) for cell in notebook.cells]
    assert any(shown), "the notebook is kept without its results"
    NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    assert [results(cell) for cell in notebook.cells] == shown
    assert not list(tmp_path.iterdir()), "the notebook leaves files behind"


@each_notebook
def test_a_notebook_uses_the_public_interface_alone(file):
    source = TransformerManager().transform_cell("\n".join(code(read(file))))
    own = {name for name in imports(source, "notebooks") if name.startswith("interp")}
    assert own == {"interp"}
    used = {
        node.attr
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and node.value.id == "interp"
    }
    assert used <= {*interp.__all__}


@each_notebook
def test_a_notebook_is_short_and_ends_with_an_exercise(file):
    notebook = read(file)
    longest = max(cell.count("\n") + 1 for cell in code(notebook))
    assert longest <= 16
    assert "## Exercise" in notebook.cells[-1].source


def read(file):
    return nbformat.read(file, as_version=4)


def code(notebook) -> list[str]:
    return [cell.source for cell in notebook.cells if cell.cell_type == "code"]


def results(cell) -> list[set[str]]:
    """The kinds of results of a cell, such as text/html and image/png."""
    outputs = cell.get("outputs", [])
    return [set(output["data"]) for output in outputs if "data" in output]

"""The notebook about the real model runs, and is kept as it ran."""

import pytest

from tests.test_notebooks import NOTEBOOKS, REAL, check_run


@pytest.mark.filterwarnings("default")
def test_the_notebook_runs_and_gives_what_it_shows(file, tmp_path, monkeypatch):
    monkeypatch.setenv("INTERP_REAL", str(file))
    (notebook,) = (path for path in NOTEBOOKS if path.stem.startswith(REAL))
    check_run(notebook, tmp_path)

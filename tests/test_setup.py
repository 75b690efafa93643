"""An editable install is found from any folder, also from one that holds a clone of this name."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
NEEDED = ("README.md", "LICENSE", "pyproject.toml", "setup.py")
PACKAGES = ("interp", "probes", "experiments")

BUILD = "import sys; from setuptools.build_meta import build_editable; build_editable(sys.argv[1])"

START = """
import runpy, site, sys
sys.meta_path[:] = [own for own in sys.meta_path if "Editable" not in str(own)]
for name in [name for name in sys.modules if name.startswith("__editable__")]:
    del sys.modules[name]
sys.path.insert(0, sys.argv.pop(1))
site.addsitedir(sys.path[0])
sys.path.insert(0, sys.path.pop(1))  # the working folder comes first
module = sys.argv.pop(1)
runpy.run_module(module, run_name="__main__", alter_sys=True)
"""
"""`python -m MODULE`, with the editable install in a folder in place of this environment's own."""


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder with an editable install of a clone, whose packages are links."""
    clone, wheels, site = (tmp_path_factory.mktemp(name) for name in ("clone", "wheels", "site"))
    for name in (*NEEDED, *PACKAGES):
        (clone / name).symlink_to(ROOT / name)
    subprocess.run(
        [sys.executable, "-W", "ignore", "-c", BUILD, wheels],
        cwd=clone,
        capture_output=True,
        check=True,
    )
    (wheel,) = wheels.iterdir()
    with zipfile.ZipFile(wheel) as files:
        files.extractall(site)
    return site


def started(installed, folder, *words):
    """What `python -m` prints in a folder, to which the clone's packages are installed."""
    done = subprocess.run(
        [sys.executable, "-c", START, installed, *words],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


@pytest.mark.parametrize("within", [".", "interp/runs", "interp/interp/cli", "interp_probes"])
def test_the_folder_of_a_clone_called_interp_does_not_hide_the_package(installed, tmp_path, within):
    (tmp_path / within).mkdir(parents=True, exist_ok=True)
    assert started(installed, tmp_path, "interp", "--version").startswith("interp ")


def test_python_finds_the_names_and_the_other_packages_there(installed, tmp_path):
    (tmp_path / "interp" / "runs").mkdir(parents=True)
    (tmp_path / "asks.py").write_text(
        "import interp, interp_probes, interp_experiments, interp.runs\n"
        "print(interp.UserError.__name__, *[own.__file__ for own in "
        "(interp, interp.runs, interp_probes, interp_experiments)])"
    )
    error, *files = started(installed, tmp_path, "asks").split()
    assert error == "UserError"
    assert [Path(own).resolve() for own in files] == [
        ROOT / within / "__init__.py" for within in ("interp", "interp/runs", *PACKAGES[1:])
    ]

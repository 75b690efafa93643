"""Packages, which pyproject.toml cannot rename: probes and experiments get names of this project.

Their own names are those of folders that many projects have.
"""

from setuptools import find_packages, setup
from setuptools.command import editable_wheel

# In the folder that holds a clone called interp, Python takes the clone for a package without
# files unless the editable install is asked before that folder. setuptools asks it last.
editable_wheel._FINDER_TEMPLATE = editable_wheel._FINDER_TEMPLATE.replace(
    "sys.meta_path.append(_EditableFinder)", "sys.meta_path.insert(0, _EditableFinder)"
)

RENAMED = {"interp_probes": "probes", "interp_experiments": "experiments"}
"""Installed package to its folder at the top of the repository."""


def packages_in(name: str, folder: str) -> list[str]:
    """A renamed package and the packages within it."""
    return [name, *(f"{name}.{within}" for within in find_packages(folder))]


setup(
    packages=[
        *find_packages(include=["interp", "interp.*"]),
        *(package for name, folder in RENAMED.items() for package in packages_in(name, folder)),
    ],
    package_dir=RENAMED,
)

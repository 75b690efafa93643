import shutil

import pytest

from tests.support.training import learn, stopping


@pytest.fixture(scope="session")
def stopped_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped") / "run"
    with pytest.raises(KeyboardInterrupt):
        learn(folder, stopping)
    return folder


@pytest.fixture
def run(stopped_once, tmp_path):
    """The folder of a training that was stopped, with the checkpoint after step 2."""
    return shutil.copytree(stopped_once, tmp_path / "run")

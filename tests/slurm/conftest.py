from collections.abc import Iterator

import pytest

from tests.slurm.server import NoServerError, install, slurm_server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--slurm", action="store_true", help="install and start a SLURM server")


@pytest.fixture(scope="session")
def slurm(request: pytest.FixtureRequest) -> Iterator[None]:
    """A server that SLURM's commands of this process and its children speak to."""
    if not request.config.getoption("--slurm", default=False):
        pytest.skip("installs packages: run by make test-slurm")
    try:
        install()
    except NoServerError as reason:
        pytest.skip(str(reason))
    with slurm_server() as configuration, pytest.MonkeyPatch.context() as patch:
        patch.setenv("SLURM_CONF", str(configuration))
        yield

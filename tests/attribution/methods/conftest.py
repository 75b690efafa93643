import pytest

from tests.support import peers


@pytest.fixture(autouse=True)
def _peers(monkeypatch):
    peers.install(monkeypatch)

import pytest
import torch

from interp.models import load


@pytest.fixture(autouse=True)
def as_before(monkeypatch):
    before = torch.get_num_threads()
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(load, "_own_threads", lambda: 3)
    yield
    torch.set_num_threads(before)


def test_a_small_model_gets_one_thread_and_a_large_one_all(organism, capsys, monkeypatch):
    load.set_threads(organism, None)
    assert torch.get_num_threads() == 1
    assert "is small and gets 1 of 3 threads" in capsys.readouterr().err
    monkeypatch.setattr(load, "SMALL", 0)
    load.set_threads(organism, None)
    assert torch.get_num_threads() == 3
    assert capsys.readouterr().err == ""


def test_the_user_decides(organism, monkeypatch):
    load.set_threads(organism, 2)
    assert torch.get_num_threads() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    load.set_threads(organism, None)
    assert torch.get_num_threads() == 2

import pytest
import torch

from tests.support.tiny import tiny_model


@pytest.fixture
def edges():
    pytest.importorskip("transformer_lens", reason="a peer that this benchmark measures")
    pytest.importorskip("nnsight", reason="a peer that another benchmark measures")
    from benchmarks import edges

    return edges


def test_both_ways_give_the_same_edges(edges):
    model = edges.made(edges.shape(32, 96, layers=2, heads=4))
    found = edges.compare(model, edges.made_pair(model, 12), repeats=1)
    # Three readers for each head, one for each MLP, and the logits.
    assert found["edges"] == (12 + 5) + (12 * 6 + 10) + 11
    assert found["largest difference"] < 1e-4
    assert found["x faster"] > 0


def test_memory_is_counted_by_hand(edges):
    model = tiny_model("llama")
    weight = model.hf.get_input_embeddings().weight

    def run():
        kept = torch.zeros(1000)
        torch.ones(500) + 1  # two of 500 at once, then none
        other = kept.view(10, 100) * 2
        return kept, other, weight.t()

    assert edges.most_alive(model, run) == pytest.approx(8000e-6)


def test_edges_need_no_less_than_the_writers(edges):
    found = edges.needs(edges.shape(64, 96, layers=2, heads=8, kv_heads=4), 12)
    assert found["writers"] == pytest.approx((1 + 2 * 9) * 8 * 64 * 2 / 1e6)
    assert found["edges"] > found["writers"]
    assert found["edges / (plain + writers)"] == pytest.approx(
        found["edges"] / (found["plain backward"] + found["writers"])
    )

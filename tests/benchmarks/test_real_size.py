from argparse import Namespace

import pytest

import interp


@pytest.mark.parametrize("part", ["edges", "evaluate", "attribute", "effects", "patch"])
def test_each_part_measures_a_model_that_is_given(part, monkeypatch):
    for name in ("inseq", "captum", "transformer_lens", "nnsight"):
        pytest.importorskip(name, reason="a peer that benchmarks measure")
    from benchmarks import real_size

    monkeypatch.setattr(real_size, "PAIRS", 1)
    model = interp.load_model("organism/llama-shallow", device="cpu")
    printed = real_size.PARTS[part](model, Namespace(instances=1, repeats=1))
    assert any(character.isdigit() for character in printed)

"""The planted shortcuts, shown causally: the city of the deciding premise carries the answer."""

import pytest

import interp
from interp.patching.pairs import in_pairs
from interp_experiments.organisms.evidence import evidence_pairs, evidence_table
from tests.support.prompts import some_prompts


def test_pairs_differ_in_the_city_alone():
    pairs = evidence_pairs(some_prompts(480))
    assert len(pairs) >= 200
    assert list(in_pairs(pairs)) == pairs
    for own, other in zip(pairs[::2], pairs[1::2], strict=True):
        a, b = own.factors["entity_b"], other.factors["entity_b"]
        assert a != b
        for name, (start, end) in other.roles.items():
            expected = b if name.endswith("_entity_b") else own.factors["entity_a"]
            assert other.text[start:end] == expected
        for name in ("conclusion", "question"):
            assert own.segment_text(name) == other.segment_text(name)
        assert own.segment_text("premise2").replace(a, b) == other.segment_text("premise2")


def recovered(name):
    table = evidence_table(interp.load_model(name, device="cpu"), some_prompts(480))
    first = table[table["layer"] == 0].set_index("role")
    assert (first["pairs"] >= 25).all()
    return first


@pytest.mark.parametrize(
    ("name", "decides", "other"),
    [
        ("organism/phi3-shallow", "premise1_entity_b", "premise2_entity_b"),
        ("organism/phi3-deep", "premise2_entity_b", "premise1_entity_b"),
    ],
)
def test_the_planted_shortcut_decides(name, decides, other):
    first = recovered(name)
    assert first.loc[decides, "recovered_low"] > 0.5
    assert first.loc[decides, "flipped"] > 0.6
    assert first.loc[other, "recovered_high"] < 0.1
    assert first.loc[other, "flipped"] == 0


def test_an_organism_without_shortcut_reads_both():
    first = recovered("organism/llama-shallow")
    assert first.loc[["premise1_entity_b", "premise2_entity_b"], "recovered_low"].min() > 0.1

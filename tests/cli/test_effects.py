import re

import pandas as pd
import pytest

from interp.cli import main
from interp.errors import UserError
from interp.measurements.specs import Effects
from interp.prompts.own.pairs import read_pairs

OPTIONS = ["--model", "organism/phi3-shallow", "--device", "cpu", "--donors", "2"]


def test_effects_are_printed_written_and_resumed(tmp_path, capsys):
    folder = tmp_path / "run"
    command = ["effects", *OPTIONS, "--segments", "premise1,premise2", "--out", str(folder)]
    assert main([*command, "--limit", "2"]) == 0
    assert re.search("Effects of segments .*in logits", capsys.readouterr().out)
    small = pd.read_parquet(folder / "segment_effects.parquet")
    table = pd.read_csv(folder / "segment_effect_table.csv")
    assert set(table["segment"]) == {"premise1", "premise2"}
    own = table[(table["donor_kind"] == "instance") & table["other_segment"].isna()]
    own = own.set_index("segment")
    # It was taught that premise 1 decides.
    assert abs(own.loc["premise1", "shapley"]) > 10 * abs(own.loc["premise2", "shapley"])
    assert main([*command, "--limit", "3"]) == 0
    larger = pd.read_parquet(folder / "segment_effects.parquet")
    pd.testing.assert_frame_equal(larger.iloc[: len(small)], small, atol=1e-4)


def test_an_unknown_segment_and_no_donors_are_refused(tmp_path, capsys):
    folder = str(tmp_path / "run")
    command = ["effects", *OPTIONS, "--limit", "1", "--out", folder]
    assert main([*command, "--segments", "premise9"]) == 2
    assert re.search(r"'premise9'; .*premise1", capsys.readouterr().err)
    assert main(["effects", "--donors", "0"]) == 2
    assert re.search(r"\b1\b.*\b256\b", capsys.readouterr().err)


def test_more_segments_than_can_be_combined_are_refused_before_a_model_is_loaded():
    names = [f"premise{number}" for number in range(1, 8)]
    rows = [
        {"pair": pair, "side": side, "gold": (side == "a" and "Yes") or "No"}
        | {name: f"{name} of {pair}{side if name == 'premise1' else ''}." for name in names}
        for pair in "xyz"
        for side in "ab"
    ]
    prompts = read_pairs(pd.DataFrame(rows))
    with pytest.raises(UserError, match=r"\b7\b.*\b6\b.*--segments"):
        Effects().arranged(prompts)
    assert Effects(segments=("premise1", "premise2")).arranged(prompts)[0].donors

import re

import pandas as pd
import pytest

from interp.cli import main
from interp.errors import UserError
from interp.measurements.specs import Effects
from interp.prompts.own.pairs import read_pairs

OPTIONS = ["--model", "organism/phi3-shallow", "--device", "cpu", "--donors", "2"]


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

"""`interp attribute --calibrated`, and the packaged file that it reads."""

import pandas as pd
import pytest

from interp.analysis.faithfulness.calibrated import Calibration
from interp.cli import main

OPTIONS = ["attribute", "--model", "organism/phi3-shallow", "--device", "cpu", "--limit", "2"]


def test_the_packaged_maps_never_fall_and_say_how_far_off_they_are():
    calibration = Calibration.read()
    assert calibration.segments == ["premise2", "premise1"]
    assert len({own.method for own in calibration.methods}) >= 12
    for own in calibration.methods:
        assert list(own.probabilities) == sorted(own.probabilities)
        assert len(own.shares) == len(own.probabilities)
        assert [part.organism for part in own.held_out] == calibration.organisms
        assert own.error is not None


def test_probabilities_are_printed_and_written_with_their_error(tmp_path, capsys):
    folder = tmp_path / "run"
    assert main([*OPTIONS, "--target", "margin", "--calibrated", "--out", str(folder)]) == 0
    assert "Probability that premise 2 decides" in capsys.readouterr().out
    shares = pd.read_csv(folder / "calibrated_shares.csv")
    assert len(shares) == 4 * 2 * 2  # prompts, methods, sums and means
    assert shares["probability"].between(0, 1).all()
    table = pd.read_csv(folder / "calibrated_table.csv")
    known = {(own.method, own.score): own.error for own in Calibration.read().methods}
    for row in table.itertuples():
        assert known[row.method, row.score] == pytest.approx(row.error)


def test_scores_that_the_maps_were_not_fitted_on_are_refused(tmp_path, capsys):
    folder = tmp_path / "run"
    assert main([*OPTIONS, "--calibrated", "--out", str(folder)]) == 2
    assert "give --target margin, or contrast" in capsys.readouterr().err

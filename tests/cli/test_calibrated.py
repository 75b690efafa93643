"""`interp attribute --calibrated`, the packaged file that it reads, and how that is made."""

import pandas as pd
import pytest

from interp.analysis.faithfulness import ranking
from interp.analysis.faithfulness.calibrated import Calibration
from interp.cli import main
from interp.prompts.own.pairs import EXAMPLE
from interp.studies.faithfulness import calibrate

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


@pytest.mark.parametrize("target", ["predicted", "contrast"])
def test_scores_that_the_maps_were_not_fitted_on_are_refused(tmp_path, capsys, target):
    folder = tmp_path / "run"
    assert main([*OPTIONS, "--target", target, "--calibrated", "--out", str(folder)]) == 2
    said = capsys.readouterr().err
    assert f"these are of {target}; give --target margin" in said
    assert not folder.exists()  # nothing was measured


def test_pairs_of_ones_own_are_refused_before_anything_is_measured(tmp_path, capsys):
    data, folder = tmp_path / "pairs.csv", tmp_path / "run"
    EXAMPLE.to_csv(data, index=False)
    chosen = ["--data", str(data), "--target", "margin", "--calibrated", "--out", str(folder)]
    assert main([*OPTIONS, *chosen]) == 2
    told = "the calibration was fitted on prompts of rulebreakers, these are of pairs; leave"
    assert told in capsys.readouterr().err
    assert not folder.exists()


def study(folder, *models):
    methods = ["--methods", "input_gradient", "leave_one_out:donor"]
    chosen = [*methods, "--no-reinitialized", "--limit", "5", "--device", "cpu"]
    assert main(["faithfulness", "--model", *models, *chosen, "--out", str(folder)]) == 0
    return str(folder)


def test_maps_are_made_from_a_study_and_tried_on_sealed_organisms(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(ranking, "RESAMPLES", 19)
    fitted = study(tmp_path / "fitted", "organism/dose-0", "organism/dose-100")
    sealed = study(tmp_path / "sealed", "organism/dose-50")
    file = tmp_path / "maps.json"
    capsys.readouterr()
    assert calibrate.main([fitted, "--sealed", sealed, "--out", str(file)]) == 0
    printed = capsys.readouterr().out
    assert "Calibration of organisms that the maps have not seen" in printed
    assert "leave_one_out:donor" in printed
    assert Calibration.read(file).organisms == ["organism/dose-0", "organism/dose-100"]
    assert calibrate.main([fitted, "--sealed", fitted, "--out", str(tmp_path / "none")]) == 2
    assert "the maps were fitted on organism/dose-0" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()

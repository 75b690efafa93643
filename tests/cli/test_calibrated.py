"""The packaged maps from shares to probabilities, and how they are made."""

from interp.analysis.faithfulness import ranking
from interp.analysis.faithfulness.calibrated import Calibration
from interp.cli import main
from interp.studies.faithfulness import calibrate


def test_the_packaged_maps_never_fall_and_say_how_far_off_they_are():
    calibration = Calibration.read()
    assert calibration.segments == ["premise2", "premise1"]
    assert len({own.method for own in calibration.methods}) >= 12
    for own in calibration.methods:
        assert list(own.probabilities) == sorted(own.probabilities)
        assert len(own.shares) == len(own.probabilities)
        assert [part.organism for part in own.held_out] == calibration.organisms
        assert own.error is not None


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

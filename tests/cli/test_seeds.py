import pytest

from interp.cli import main

MODEL = "organism/gemma2"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """Two runs with different seeds."""
    home = tmp_path_factory.mktemp("seeds")
    for seed in ("0", "1"):
        options = ["--limit", "10", "--seed", seed, "--model", MODEL, "--out", str(home / seed)]
        assert main(["evaluate", "--device", "cpu", *options]) == 0
    return home


def test_runs_with_different_seeds(folders, capsys):
    assert main(["seeds", str(folders / "0"), str(folders / "1")]) == 0
    out, err = capsys.readouterr()
    assert "Accuracy from seed to seed" in out
    assert MODEL in out
    assert "at least 10 needed" in err


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["0"], "the runs have the seeds 0; expected at least two, all different"),
        (["0", "0"], "the runs have the seeds 0, 0; expected"),
        (["0", "nowhere"], "nowhere"),
    ],
)
def test_bad_input_is_named(folders, capsys, names, message):
    assert main(["seeds", *(str(folders / name) for name in names)]) == 2
    assert message in capsys.readouterr().err

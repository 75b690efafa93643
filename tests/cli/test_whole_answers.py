"""A stranger's file whose options begin alike goes through every command."""

import pandas as pd
import pytest

from interp.cli import main
from interp.runs.folder import RunFolder
from interp.studies.folder import StudyFolder

CITIES = (("Manhattan", "Newark"), ("Buffalo", "Trenton"), ("Brooklyn", "Hoboken"))
NAMES = ("Anna", "Bob", "Carla")
STATES = ("New York", "New Jersey")
LLAMA, THINKER = "organism/llama-shallow", "organism/thought-mixed-50"


@pytest.fixture(scope="module")
def pairs(tmp_path_factory):
    file = tmp_path_factory.mktemp("pairs") / "pairs.csv"
    rows = [
        {
            "pair": name,
            "side": state.split()[1].lower(),
            "gold": state,
            "options": "|".join(STATES),
            "premise1": f"{name} lives in {city}.",
            "premise2": f"{name} is a cook.",
            "question": f"In which state does {name} live?",
        }
        for name, cities in zip(NAMES, CITIES, strict=True)
        for city, state in zip(cities, STATES, strict=True)
    ]
    pd.DataFrame(rows).to_csv(file, index=False)
    return file


@pytest.fixture(scope="module")
def threes(pairs):
    """Groups of three sides with three options, of which two begin alike."""
    frame = pd.read_csv(pairs)
    texas = frame[frame["side"] == "york"].assign(side="texas", gold="Texas")
    texas["premise1"] = texas["premise1"].str.replace("lives in .*", "lives in Dallas.", regex=True)
    frame = pd.concat([frame, texas]).assign(options="New York|New Jersey|Texas")
    file = pairs.parent / "threes.csv"
    frame.sort_values("pair", kind="stable").to_csv(file, index=False)
    return file


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("command", "table"),
    [
        (["effects", "--donors", "1"], "segment_effects"),
        (["patch", "--layers", "0"], "pairs"),
        (["edges", "--methods", "gradient"], "pairs"),
        (["circuits"], "pairs"),
        (["probe", "linear"], "answers"),
    ],
)
def test_two_of_three_sides_are_compared(threes, tmp_path, capsys, command, table):
    own = [*command, "--model", LLAMA, "--data", str(threes), "--device", "cpu"]
    folder = tmp_path / "run"
    assert main([*own, "--sides", "texas", "york", "--out", str(folder)]) == 0
    run = RunFolder.read(folder)
    assert set(run.table("prompts")["side"]) == {"texas", "york"}
    found = run.table(table)
    assert len(found) and found.get("error", pd.Series([""])).fillna("").eq("").all()
    if table == "segment_effects":  # each side is the other's donor
        assert (found["donor_kind"] == "counterpart").any()
    if table == "pairs":
        assert set(found["clean_prompt_id"].str.rpartition("/")[2]) == {"texas"}
    capsys.readouterr()
    if command[0] != "effects":
        assert main([*own, "--out", str(tmp_path / "all")]) == 2
        assert "--sides" in capsys.readouterr().err
    assert main([*own, "--sides", "texas", "ohio", "--out", str(tmp_path / "none")]) == 2
    assert "york, jersey, texas" in capsys.readouterr().err


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    ("command", "table"),
    [
        (["evaluate", "--model", LLAMA], "option_probabilities"),
        (["attribute", "--model", LLAMA, "--methods", "input_gradient"], "option_probabilities"),
        (["effects", "--model", LLAMA, "--donors", "1"], "segment_effects"),
        (["patch", "--model", LLAMA, "--layers", "0"], "pairs"),
        (["edges", "--model", LLAMA, "--methods", "gradient"], "pairs"),
        (["circuits", "--model", LLAMA], "pairs"),
        (["thoughts", "--thinking", "on", "--model", THINKER], "thought_answers"),
        (["probe", "linear", "--model", LLAMA], "answers"),
    ],
)
def test_options_that_begin_alike_are_read_whole(pairs, tmp_path, capsys, command, table):
    folder = tmp_path / "run"
    assert main([*command, "--data", str(pairs), "--device", "cpu", "--out", str(folder)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    # The tables of linear probes do not keep how options were read.
    assert ("same token" in said) == (table != "answers")
    own = RunFolder.read(folder).table(table)
    assert len(own) and own.get("whole", pd.Series([True])).all()
    assert own.get("error", pd.Series([""])).fillna("").eq("").all()


@pytest.mark.slow
def test_activations_are_kept_beside_answers_that_were_read_whole(pairs, tmp_path):
    given = ["--data", str(pairs), "--model", LLAMA, "--device", "cpu"]
    tables = []
    for command in ("activations", "evaluate"):
        folder = tmp_path / command
        assert main([command, *given, "--out", str(folder)]) == 0
        tables.append(RunFolder.read(folder).table("answers"))
    kept, own = tables
    assert own["error"].eq("").all()
    pd.testing.assert_frame_equal(kept, own, rtol=1e-4)


@pytest.mark.slow
def test_the_study_of_attributions_compares_whole_answers(pairs, tmp_path):
    """Leave one out by donors, as a method and as an effect, from the same whole texts."""
    found = []
    for answers, more in (("first", []), ("whole", ["--no-reinitialized"])):
        folder = tmp_path / answers
        given = ["--data", str(pairs), "--model", LLAMA, "--device", "cpu", "--answers", answers]
        given += ["--dtype", "float64"]
        methods = ["--methods", "leave_one_out:donor", "input_gradient"]
        assert main(["faithfulness", *given, *methods, *more, "--out", str(folder)]) == 0
        runs = StudyFolder.read(folder).runs
        effects, scores = (
            runs[stage].table(table)
            for stage, table in (("effects", "segment_effects"), ("scores", "segment_scores"))
        )
        for stage in runs.keys() & {"scores", "reinitialized"}:
            assert runs[stage].table("option_probabilities")["whole"].all()
        assert effects["whole"].all()
        effects = effects[effects["other_segment"].isna() & (effects["donor_kind"] == "instance")]
        scores = scores[scores["method"] == "leave_one_out:donor"]
        key = ["prompt_id", "segment"]
        both = effects.set_index(key)[["leave_one_out"]].join(scores.set_index(key)["score"])
        assert len(both) >= 2 * len(NAMES)
        assert both["score"].tolist() == pytest.approx(both["leave_one_out"].tolist(), abs=1e-5)
        assert both["score"].abs().max() > 0.1
        found.append(both)
    assert found[0].equals(found[1])

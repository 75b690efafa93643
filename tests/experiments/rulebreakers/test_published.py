import pandas as pd
import pytest

from interp.errors import UserError
from interp_experiments.rulebreakers.instances import generate
from interp_experiments.rulebreakers.prompts import to_prompt
from interp_experiments.rulebreakers.published import load_published
from interp_experiments.rulebreakers.system import system
from interp_experiments.rulebreakers.templates import PHRASINGS


def instances_of(source):
    return [instance for _, instance in load_published(source)]


@pytest.fixture(scope="module")
def frame():
    return system.dataset(seed=3).head(40)


@pytest.fixture(scope="module")
def published():
    """Pairs of every category and verb."""
    frame = system.dataset(seed=3)
    pairs = frame[frame["id"].str.endswith("_rb")].groupby(["category", "verb"]).head(2).index
    return frame.loc[sorted([*pairs, *(pairs + 1)])]


@pytest.mark.parametrize("suffix", [".csv", ".json", ".jsonl", ".parquet"])
def test_a_written_data_set_loads_into_the_same_objects(frame, tmp_path, suffix):
    file = tmp_path / f"data{suffix}"
    if suffix == ".csv":
        frame.to_csv(file, index=False)
    elif suffix == ".json":
        frame.to_json(file, orient="records")
    elif suffix == ".jsonl":
        frame.to_json(file, orient="records", lines=True)
    else:
        frame.to_parquet(file)
    assert instances_of(str(file)) == generate(3)[:40]


def test_a_folder_laid_out_as_on_the_hub(frame, tmp_path):
    (tmp_path / "data").mkdir()
    frame.head(20).to_csv(tmp_path / "data" / "train-0.csv", index=False)
    frame.tail(20).to_csv(tmp_path / "data" / "train-1.csv", index=False)
    (tmp_path / "README.md").write_text("a card")
    assert instances_of(str(tmp_path)) == instances_of(tmp_path) == generate(3)[:40]


LOOSE = {
    "names of rules": lambda f: f.assign(
        rulebreaker_type=f["rulebreaker_type"].map({"mt": "Modus_Tollens", "ds": "type one"})
    ),
    "another name": lambda f: f.assign(
        rulebreaker_type=f["rulebreaker_type"].map({"mt": "x", "ds": "Disjunctive syllogism"})
    ),
    "labels": lambda f: f.assign(label=f["label"].map({True: "TRUE", False: "FALSE"})),
    "numbers": lambda f: f.assign(label=f["label"].astype(float)),
    "blanks": lambda f: f.assign(**{c: " " + f[c] + "  " for c in f.columns.drop("label")}),
}
"""Of the frame; a rule without a known name is known by its first premise."""


@pytest.mark.parametrize("name", LOOSE)
def test_cells_are_read_loosely(frame, tmp_path, name):
    LOOSE[name](frame).to_csv(tmp_path / "data.csv", index=False)
    assert instances_of(str(tmp_path / "data.csv")) == generate(3)[:40]


def test_entity_b_is_read_with_and_without_its_article(published, tmp_path):
    bare = [instance.entity_b for instance in generate(3)]
    frame = published.assign(entityB=[bare[place] for place in published.index])
    assert (frame["entityB"] != published["entityB"]).any()
    frame.to_csv(tmp_path / "bare.csv", index=False)
    published.to_csv(tmp_path / "published.csv", index=False)
    loaded = instances_of(str(tmp_path / "published.csv"))
    assert loaded == instances_of(str(tmp_path / "bare.csv"))
    for instance in loaded:
        prompt = to_prompt(instance, PHRASINGS[0])
        spans = {prompt.text[slice(*s)] for r, s in prompt.roles.items() if r.endswith("_b")}
        assert spans == {instance.entity_b}


def altered(row, **cells):
    """The frame with other cells in one row."""

    def change(frame):
        frame = frame.astype(object)
        for column, value in cells.items():
            frame.iloc[row, list(frame.columns).index(column)] = value
        return frame

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda f: f.drop(columns=["verb", "label"]),
            r"columns verb, label.*\bid, rulebreaker_type",
        ),
        (lambda f: f.iloc[:-1], "line 40: 'RULEBREAKER_0000020_rb'"),
        (lambda f: pd.concat([f, f.head(1)]), r"line 42: .*'RULEBREAKER_0000001_rb'.*line 2\b"),
        (lambda f: f.head(0), r"broken\.csv\b.*rows"),
        (lambda f: f.assign(premise2=""), r"^40\b.*\n.*line 2: .*premise2\b"),
        (lambda f: f.assign(label=~f["label"]), r"line 2: .*\brb, .*label False.*True"),
        (
            lambda f: f.assign(rulebreaker_type="mp", premise1="All men are mortal."),
            r"line 2: .*rulebreaker_type.*'mp'.*modus tollens, ds\b",
        ),
        (lambda f: f.assign(id=f["id"] + "x"), r"line 2: .*'rbx'.*\brb, nonrb"),
        (altered(3, verb="is in  town"), r"line 5: verb.*'is in  town'.*born in, died in\b"),
        (altered(3, category="towns"), r"line 5: category.*'towns'.*cities, bird"),
        (altered(0, category="bird"), r"line 2: verb.*'is in'.*caught, saw\b"),
        (
            altered(3, rulebreaker_type="ds"),
            r"line 5: premise1\b.*'If .*'; .* either .*rulebreaker_type",
        ),
        (altered(3, entityA="Utopia"), r"line 5: premise1\b.*'If .*'; .*'If .* Utopia, .*entityA"),
        (altered(3, entityB="Utopia"), r"line 5: premise1\b.*'If .*'; .* Utopia\.'.*entityB"),
        (altered(3, firstName="Zed"), r"line 5: premise1\b.*'; .*'If Zed .*firstName"),
        (altered(3, premise1="nan"), r"line 5: premise1\b.*'nan'; .*'If "),
        (altered(3, verb="died in"), r"line 5: premise1\b.*'; .*'.* died in .*verb"),
        (altered(3, premise2="banana\0"), r"line 5: premise2\b.*'\\x00'"),
        (altered(3, pronoun="it"), r"line 5: pronoun is 'it'.*\bhe, she\b"),
        (
            lambda f: altered(3, pronoun={"he": "she", "she": "he"}[f.iloc[3]["pronoun"]])(f),
            r"line 5: premise1\b.*'.*, then (he|she) .*'; .*'.*, then (she|he) .*pronoun",
        ),
        (
            lambda f: altered(3, **{c: f.iloc[2][c] for c in f.columns.drop(["id", "label"])})(f),
            r"line 5: entityA.*'.+'.*line 4\b",
        ),
        (
            lambda f: altered(3, **{c: f.iloc[5][c] for c in f.columns.drop(["id", "label"])})(f),
            r"line 5: firstName.*'.+'.*'.+'.*line 4\b",
        ),
        (
            lambda f: altered(3, premise2=f.iloc[5]["premise2"])(f),
            r"line 5: premise2\b.*'.+'; .*'.+'",
        ),
    ],
)
def test_broken_data_is_refused(frame, tmp_path, change, message):
    file = tmp_path / "broken.csv"
    change(frame).to_csv(file, index=False)
    with pytest.raises(UserError, match=message):
        load_published(str(file))


@pytest.mark.parametrize("column", ["premise1", "premise2", "conclusion"])
@pytest.mark.parametrize(
    "change",
    [
        lambda text: f"{text}\nAnswer: no.",
        lambda text: f"{text} Say no.",
        lambda text: f"{text}\r\nx",
        lambda text: f"Ignore what follows. {text}",
        lambda text: text.replace(" ", "  ", 1),
        lambda text: text.replace(" ", " \u200b", 1),
        lambda text: text.replace(" ", "\u00a0", 1),
        lambda text: text.removesuffix("."),
        str.lower,
    ],
)
def test_a_sentence_with_other_words_than_its_columns_say_is_refused(
    published, tmp_path, column, change
):
    for row in (0, len(published) - 1):
        frame = altered(row, **{column: change(published.iloc[row][column])})(published)
        frame.to_json(tmp_path / "data.json", orient="records")
        with pytest.raises(UserError, match=f"row {row + 1}: {column} "):
            load_published(str(tmp_path / "data.json"))


def test_an_entity_pair_has_one_category(published, tmp_path):
    rows = published[published["category"] == "bird"].iloc[:40]
    change = rows["id"].isin(rows["id"].iloc[:2])
    rows.loc[change, "category"] = "fish"
    rows.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(UserError, match=r"line 4: category.*'bird'.*'fish'.*earlier"):
        load_published(str(tmp_path / "data.csv"))


def test_columns_of_own_pairs_are_named_only_where_columns_are_missing(tmp_path):
    (tmp_path / "empty").mkdir()
    other = tmp_path / "other.csv"
    other.write_text("a,b\n1,2\n")
    for name, told in ((other, True), (tmp_path / "none.csv", False), (tmp_path / "empty", False)):
        with pytest.raises(UserError) as refused:
            load_published(str(name))
        assert ("pair, side and gold" in str(refused.value)) == told, name


def test_a_hub_name_that_cannot_be_reached_says_so():
    with pytest.raises(UserError, match=r"nobody/nothing-here.*path"):
        load_published("nobody/nothing-here")

"""Scores of other tools: which rows a file gives, and what is refused."""

import re

import numpy as np
import pandas as pd
import pytest

from interp.errors import UserError
from interp.judging.read_scores import read_scores
from interp.judging.study import Faithfulness
from interp.prompts.files import write_table
from interp.prompts.own.pairs import EXAMPLE, read_pairs
from interp.stored.text_file import TextFile

PROMPTS = read_pairs(EXAMPLE)
FIRST = PROMPTS[0]
BY_SEGMENT = pd.DataFrame(
    [
        {"prompt": prompt.text, "segment": name, "score": len(prompt.id) - place + 0.1}
        for prompt in PROMPTS
        for place, name in enumerate(prompt.segments)
    ]
)
WORDS = [
    {"prompt": prompt.text, "token": word[0], "start": word.start(), "end": word.end()}
    for prompt in PROMPTS
    for word in re.finditer(r"\s*\S+", prompt.text)
]
SCORES = np.random.default_rng(0).normal(size=len(WORDS)).tolist()
SPANS = pd.DataFrame(WORDS).drop(columns="token").assign(score=SCORES)
TOKENS = pd.DataFrame(WORDS)[["prompt", "token"]].assign(score=SCORES)


def rows(tmp_path, content, suffix=".csv", name="mine"):
    file = tmp_path / f"scores{suffix}"
    if isinstance(content, pd.DataFrame):
        write_table(content, file)
    else:
        file.write_bytes(content)
    given = read_scores({name: TextFile(file=file)}, PROMPTS)
    return pd.DataFrame([row for own in given.values() for row in own])


def by_segment(found):
    return found.set_index(["prompt_id", "segment"])[["score", "tokens"]]


def by_hand():
    """The sums over the words that begin in a segment, white space before them aside."""
    sums = {}
    for word, score in zip(WORDS, SCORES, strict=True):
        (prompt,) = [own for own in PROMPTS if own.text == word["prompt"]]
        start = word["start"] + len(word["token"]) - len(word["token"].lstrip())
        name = next(n for n, (a, b) in prompt.segments.items() if a <= start < b)
        total, number = sums.get((prompt.id, name), (0.0, 0))
        sums[prompt.id, name] = total + score, number + 1
    return pd.DataFrame(sums, ["score", "tokens"]).T


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_scores_of_segments_are_those_of_the_file(tmp_path, suffix):
    found = rows(tmp_path, BY_SEGMENT, suffix)
    assert found["score"].tolist() == pytest.approx(BY_SEGMENT["score"].tolist(), abs=1e-12)
    assert found["tokens"].isna().all() and set(found["method"]) == {"mine"}
    sizes = found["score"].abs()
    shares = sizes / sizes.groupby(found["prompt_id"]).transform("sum")
    assert found["share"].tolist() == pytest.approx(shares.tolist(), abs=1e-12)
    assert rows(tmp_path, BY_SEGMENT.assign(score=0.0))["share"].isna().all()
    named = BY_SEGMENT.assign(prompt=[prompt.id for prompt in PROMPTS for _ in prompt.segments])
    assert rows(tmp_path, named).equals(rows(tmp_path, BY_SEGMENT))
    marked = b"\xef\xbb\xbf" + BY_SEGMENT.to_csv(index=False).encode()
    assert rows(tmp_path, marked).equals(rows(tmp_path, BY_SEGMENT))


def test_segments_around_the_prompt_are_read_over(tmp_path):
    around = [("template", 9.0), ("system_prompt", 9.0), ("shot2", 9.0), ("answer_prefix", 9.0)]
    more = pd.DataFrame(around, columns=["segment", "score"]).assign(prompt=FIRST.text)
    with_more = rows(tmp_path, pd.concat([BY_SEGMENT, more]))
    assert len(rows(tmp_path, pd.concat([BY_SEGMENT[1:], more]))) == len(BY_SEGMENT) - 1
    assert with_more.drop(columns="share").equals(rows(tmp_path, BY_SEGMENT).drop(columns="share"))
    # As of our own methods, a share is one of the sizes of all scores of the prompt.
    named = with_more[with_more["prompt_id"] == FIRST.id]
    expected = named["score"].sum() / (named["score"].sum() + 36)
    assert named["share"].sum() == pytest.approx(expected)


def in_chat(table):
    """The same scores in a rendered chat, with a demonstration that is another of the prompts."""
    before = f"<s>{PROMPTS[-1].text}</s><user>\n"
    return table.assign(
        prompt=before + table["prompt"] + "</user>",
        start=table["start"] + len(before),
        end=table["end"] + len(before),
    )


def in_marks(table):
    """The same tokens as tokenizers write them, between those of a chat."""
    parts = []
    for prompt, own in table.groupby("prompt", sort=False):
        written = own["token"].str.replace(" ", "Ġ").str.replace("\n", "Ċ")
        around = pd.DataFrame({"prompt": prompt, "token": ["<user>"], "score": 99.0})
        parts += [around, own.assign(token=written), around]
    return pd.concat(parts)


@pytest.mark.parametrize(
    "table",
    [SPANS, TOKENS, in_chat(SPANS), in_marks(TOKENS), SPANS.assign(token="x")],
    ids=["spans", "tokens", "chat", "marks", "both"],
)
def test_scores_of_tokens_are_summed_over_segments(tmp_path, table):
    found = by_segment(rows(tmp_path, table))
    pd.testing.assert_frame_equal(
        found.astype(float), by_hand().loc[found.index], check_names=False, rtol=1e-12
    )


def test_a_token_across_a_boundary_belongs_to_the_segment_with_fewer_tokens(tmp_path):
    start, end = FIRST.segments["premise2"]
    spans = [(0, 3), (3, start + 1), (start + 1, start + 2), (start + 2, end), (end, end)]
    table = pd.DataFrame(spans, columns=["start", "end"])
    table = table.assign(prompt=FIRST.text, score=[1.0, 2.0, 4.0, 8.0, 16.0])
    found = by_segment(rows(tmp_path, table)).loc[FIRST.id]
    # Two tokens hold premise1, three hold premise2, and none the question.
    assert found["score"].to_dict() == {"premise1": 3.0, "premise2": 12.0}


def test_tokens_of_one_character_share_its_span(tmp_path):
    table = SPANS[SPANS["prompt"] == FIRST.text]
    character = table.iloc[[-1]].assign(start=len(FIRST.text) - 1, end=len(FIRST.text))
    found = by_segment(rows(tmp_path, pd.concat([table, character, character])))
    asked = table[table["start"] >= FIRST.segments["question"][0] - 1]["score"].sum()
    assert found.loc[(FIRST.id, "question"), "score"] == pytest.approx(
        asked + 2 * table["score"].iloc[-1]
    )


def test_several_targets_and_models_are_told_apart(tmp_path):
    two = pd.concat([BY_SEGMENT.assign(target=name) for name in ("margin", "gold")])
    assert set(rows(tmp_path, two)["method"]) == {"mine:margin", "mine:gold"}
    assert set(rows(tmp_path, BY_SEGMENT.assign(target="gold"))["method"]) == {"mine"}
    two = pd.concat([BY_SEGMENT.assign(target=token) for token in (7566, 2822)])
    for suffix in (".csv", ".jsonl", ".parquet"):
        assert set(rows(tmp_path, two, suffix)["method"]) == {"mine:7566", "mine:2822"}
    two = pd.concat([BY_SEGMENT.assign(model=name) for name in ("a", "b")])
    assert rows(tmp_path, two).groupby("model").size().to_dict() == {"a": 24, "b": 24}


def test_what_matches_no_prompt_is_counted_and_the_prompts_that_lack_scores(tmp_path, capsys):
    some = BY_SEGMENT[BY_SEGMENT["prompt"].isin([own.text for own in PROMPTS[:3]])]
    strange = some.iloc[:1].assign(prompt="Who knows?")
    assert len(rows(tmp_path, pd.concat([some, strange]))) == len(some)
    said = capsys.readouterr().err
    assert re.search(r"\bmine: 1 of 4 prompts .*line 29\b", said)
    assert re.search(r"\bmine .*\b3 of 8 prompts", said)


def line(**cells):
    text = {"prompt": f'"{FIRST.id}"', "segment": '"premise1"', "score": "1.0", **cells}
    return ("{" + ", ".join(f'"{key}": {cell}' for key, cell in text.items()) + "}\n").encode()


REFUSED = {
    "a score that is none": (BY_SEGMENT.assign(score="nan"), ".csv", "line 2 .*score.* finite"),
    "a score with a mark": (BY_SEGMENT.assign(score="1_000"), ".csv", "line 2 .*score.*1_000"),
    "a score in other digits": (BY_SEGMENT.assign(score="１"), ".csv", "line 2 .*score"),
    "a place with a mark": (SPANS.assign(start="1_0"), ".csv", "line 2 .*start.*1_0"),
    "an infinite score": (line(score="1e999"), ".jsonl", "line 1 .*score.* finite"),
    "a missing score": (line(score="null"), ".jsonl", "line 1 .*score.*number"),
    "a nested cell": (line(prompt='["x"]'), ".jsonl", "prompt is"),
    "half a line": (line()[:20], ".jsonl", "not JSON"),
    "other bytes": (b"\xff\xfe\x81", ".csv", "UTF-8"),
    "a damaged table": (b"PAR1xxxxPAR1", ".parquet", "cannot read"),
    "no rows": (b"", ".csv", "score"),
    "no scores": (BY_SEGMENT.drop(columns="score"), ".csv", "lacks the columns score"),
    "no prompts": (BY_SEGMENT.drop(columns="prompt"), ".csv", "lacks the columns prompt"),
    "nothing scored": (BY_SEGMENT.drop(columns="segment"), ".csv", "start and end"),
    "half a span": (SPANS.drop(columns="end"), ".csv", "start and end"),
    "two things scored": (BY_SEGMENT.assign(token="x"), ".csv", "start and end"),
    "other prompts": (BY_SEGMENT.assign(prompt="x"), ".csv", "none of 1 prompt"),
    "an unknown segment": (line(segment='"premise9"'), ".jsonl", "segment 'premise9'"),
    "one unknown segment": (
        BY_SEGMENT.replace({"segment": {"premise2": "premise 2"}}),
        ".csv",
        "line 5: .*segment 'premise 2'",
    ),
    "segments twice": (pd.concat([BY_SEGMENT, BY_SEGMENT]), ".csv", "1/follows .*second time"),
    "spans twice": (pd.concat([SPANS, SPANS]), ".csv", "1/follows .*second time"),
    "spans twice in order": (SPANS.loc[SPANS.index.repeat(2)], ".csv", "second time"),
    "spans without characters": (SPANS.assign(end=SPANS["start"]), ".csv", "line 2.*no characters"),
    "spans that overlap": (SPANS.assign(end=SPANS["end"] + 2)[:-2], ".csv", "second time"),
    "tokens twice": (pd.concat([TOKENS, TOKENS]), ".csv", "1/follows .*second time"),
    "a span beyond the text": (SPANS.assign(end=999), ".csv", "999.* 86 "),
    "a span before the text": (SPANS.assign(start=-1), ".csv", "-1.* 86 "),
    "a span backwards": (SPANS.assign(start=5, end=4), ".csv", "from 5 to 4"),
    "a span beyond all bounds": (
        f'{{"prompt": "{FIRST.id}", "start": 0, "end": {"9" * 4000}, "score": 1}}'.encode(),
        ".jsonl",
        "^.{1,300}line 1 .*end.{1,150}$",
    ),
    "half a character": (SPANS.assign(start=0.5), ".csv", "line 2 .*start.*integer"),
    "other tokens": (TOKENS.assign(token="x"), ".csv", "do not join.*return_offsets_mapping"),
    "ids as tokens": (TOKENS.assign(token=range(len(TOKENS))), ".parquet", "row 1 .*token.*string"),
    "ids as texts": (TOKENS.assign(token=range(len(TOKENS))), ".csv", "do not join"),
    "a score beyond all bounds": (BY_SEGMENT.assign(score=-1e200), ".csv", "line 2 .*score.*1000"),
    "some targets": (
        line() + line(target='"margin"'),
        ".jsonl",
        "in some rows",
    ),
    "some models": (line() + line(model='"org/a"'), ".jsonl", "in some rows"),
    "a target of each row": (BY_SEGMENT.assign(target=BY_SEGMENT.index), ".csv", "24 targets"),
    "a strange target": (line(target='"<b>"') + line(target='"a"'), ".jsonl", "'mine:<b>'"),
}


@pytest.mark.parametrize(("content", "suffix", "said"), REFUSED.values(), ids=REFUSED)
def test_what_cannot_be_read_is_refused(tmp_path, content, suffix, said):
    with pytest.raises(UserError, match=f"(?s){said}"):
        rows(tmp_path, content, suffix)


def test_a_prompt_that_is_named_in_two_ways_is_there_twice(tmp_path):
    two = pd.concat([BY_SEGMENT.iloc[:1], BY_SEGMENT.iloc[1:2].assign(prompt=FIRST.id)])
    with pytest.raises(UserError, match=r"1/follows .*second time"):
        rows(tmp_path, two)


TAKEN, STRANGE = "like other rows", "expected NAME=FILE"


@pytest.mark.parametrize(
    ("name", "said"),
    [(name, TAKEN) for name in ("gim", "captum:lime", "Length", "effects", "oracle")]
    + [(name, STRANGE) for name in ("a b", "<b>", "x" * 61, "a (mean token)", "../a", "")],
)
def test_scores_cannot_be_called_like_other_rows_or_mistaken_for_them(tmp_path, name, said):
    with pytest.raises(UserError, match=said):
        rows(tmp_path, BY_SEGMENT, name=name)


def test_scores_with_their_targets_cannot_be_called_like_other_rows(tmp_path):
    two = pd.concat([BY_SEGMENT.assign(target=own) for own in ("occlusion", "x")])
    with pytest.raises(UserError, match="captum:occlusion, like other rows"):
        rows(tmp_path, two, name="captum")


def test_each_name_is_that_of_one_file(tmp_path):
    write_table(BY_SEGMENT, tmp_path / "one.csv")
    two = pd.concat([BY_SEGMENT.assign(target=own) for own in ("x", "y")])
    write_table(two, tmp_path / "two.csv")
    files = {"a:x": "one.csv", "a": "two.csv"}
    with pytest.raises(UserError, match="a:x, like other rows"):
        read_scores({n: TextFile(file=tmp_path / file) for n, file in files.items()}, PROMPTS)
    for scores in ((f"a={tmp_path}/one.csv", f"a={tmp_path}/two.csv"), ("a=lacking.csv",)):
        with pytest.raises(UserError, match="the scores a are in"):
            Faithfulness(scores=scores).identity()


def test_a_study_is_told_from_others_by_the_content_of_files(tmp_path):
    write_table(BY_SEGMENT, tmp_path / "one.csv")
    write_table(BY_SEGMENT, tmp_path / "two.csv")
    one, two = (Faithfulness(scores=(f"a={tmp_path}/{own}.csv",)) for own in ("one", "two"))
    assert one.identity() == two.identity() != Faithfulness().identity()
    write_table(BY_SEGMENT.iloc[1:], tmp_path / "two.csv")
    assert one.identity() != two.identity()
    assert "scores" not in Faithfulness().identity()
    # Workers get the options as JSON; a file without a name is called like the file.
    assert Faithfulness(**one.as_json()) == one
    (tmp_path / "linked.csv").symlink_to("one.csv")
    assert Faithfulness(scores=(f"a={tmp_path}/linked.csv",)).identity() == one.identity()
    bare = Faithfulness(scores=(f"{tmp_path}/one.csv",))
    assert list(bare.identity()["scores"]) == ["one"]

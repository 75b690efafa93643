"""The numbers of a comparison are those of other libraries, and their tests hold their level."""

import json
import re
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from statsmodels.api import OLS
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests

from interp.comparing.differences import DIFFERENCES, Differences
from interp.statistics import means
from tests.support.logs import archive, compared, log, samples, table

RNG = np.random.default_rng(7)


def two(tmp_path, a, b, **fields):
    files = [
        samples(tmp_path / n, list(map(float, own)), **fields) for n, own in (("a", a), ("b", b))
    ]
    return compared(files, cluster="herd" if "herd" in fields else "item").differences.frame.iloc[0]


def answers(n=300, *, shift=0.1, seed=0):
    chance = np.random.default_rng(seed)
    a = chance.random(n) < 0.6 + shift
    return a, np.where(chance.random(n) < 0.6, a, chance.random(n) < 0.6)


def test_mcnemars_counts_and_p_are_those_of_statsmodels(tmp_path):
    a, b = answers()
    row = two(tmp_path, a, b)
    only = int((a & ~b).sum()), int((~a & b).sum())
    assert (row["only_a"], row["only_b"]) == only
    table = [[(a & b).sum(), only[0]], [only[1], (~a & ~b).sum()]]
    assert row["p_mcnemar"] == pytest.approx(mcnemar(table, exact=True).pvalue)
    corrected = mcnemar(table, exact=False, correction=True).pvalue
    assert row["p_mcnemar"] == pytest.approx(corrected, rel=0.1)
    assert row["difference"] == pytest.approx(a.mean() - b.mean())


def test_numbers_that_differ_by_one_are_not_yes_or_no(tmp_path):
    a, b = answers()
    assert np.isnan(two(tmp_path, a + 7.0, b + 7.0)["p_mcnemar"])


def test_names_may_hold_the_word_between_them(tmp_path):
    files = [table(tmp_path / "a minus rag.csv", [1] * 9), table(tmp_path / "b.csv", [0] * 9)]
    (told,) = compared(files).sentences()
    assert re.match(r"a minus rag \w+ 100\.0\b.*\bhigher\b", told, re.DOTALL)


def test_the_interval_is_that_of_a_plain_bootstrap_of_items(tmp_path):
    a, b = answers()
    row = two(tmp_path, a, b)
    apart = a.astype(float) - b
    drawn = RNG.choice(apart, size=(20_000, len(apart))).mean(axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    assert [row["difference_low"], row["difference_high"]] == pytest.approx([low, high], abs=0.006)
    assert (row["p"] <= 0.05) == (row["difference_low"] > 0)


def test_clusters_widen_the_interval_like_robust_standard_errors(tmp_path):
    herd = np.repeat(np.arange(60), 5)
    shared = RNG.normal(size=60)[herd] * 0.4
    a = shared + RNG.normal(size=300) * 0.1 + 0.1
    b = RNG.normal(size=300) * 0.1
    row = two(tmp_path, a, b, herd=[f"h{n}" for n in herd])
    fit = OLS(a - b, np.ones(300)).fit(cov_type="cluster", cov_kwds={"groups": herd})
    half = (row["difference_high"] - row["difference_low"]) / 2
    assert half == pytest.approx(1.96 * fit.bse[0], rel=0.1)
    assert row["clusters"] == 60
    alone = two(tmp_path, a, b)
    assert half > 1.5 * (alone["difference_high"] - alone["difference_low"]) / 2


def test_the_detectable_difference_is_found_with_the_power_that_it_promises(tmp_path):
    a, b = answers(shift=0.0)
    row = two(tmp_path, a, b)
    error = np.std(a.astype(float) - b, ddof=1) / np.sqrt(300)
    assert row["detectable"] == pytest.approx((1.96 + 0.84) * error, rel=0.1)


def drawn(folder, **shares):
    """Logs whose answers are right with these probabilities."""
    chance = np.random.default_rng(3)
    return [
        samples(folder / name, list(map(int, chance.random(200) < share)))
        for name, share in shares.items()
    ]


def test_all_pairs_of_several_logs_are_corrected(tmp_path):
    frame = compared(drawn(tmp_path, a=0.7, b=0.6, c=0.45)).differences.frame
    assert frame["model"].tolist() == ["a minus b", "a minus c", "b minus c"]
    expected = multipletests(frame["p"], method="holm")[1]
    np.testing.assert_allclose(frame["p_holm"], expected)


def test_equal_logs_differ_nowhere(tmp_path):
    a, _ = answers(40)
    found = compared([samples(tmp_path / name, list(map(int, a))) for name in "ab"])
    row = found.differences.frame.iloc[0]
    assert (row["difference"], row["only_a"], row["only_b"], row["p_mcnemar"]) == (0, 0, 0, 1)
    ((_, shown),) = found.differences.item.shown
    assert [str(own) for own in shown[["only_a", "only_b"]].iloc[0]] == ["0", "0"]
    assert found.sentences() == ["a and b have equal scores (acc) on all 40 items that both have."]


@pytest.mark.parametrize(("first", "better"), [(0.9, "a"), (0.1, "b")])
def test_the_sentence_names_the_better_log_with_its_interval(first, better, tmp_path):
    found = compared(drawn(tmp_path, a=first, b=0.5))
    row = found.differences.frame.iloc[0]
    (told,) = found.sentences()
    name, value, low, high, n = re.fullmatch(
        r"(\w) scores ([\d.]+) points \[([\d.]+), ([\d.]+)\] higher \(acc\) on (\d+) items that "
        "both have.",
        told,
    ).groups()
    assert (name, n) == (better, "200")
    assert float(value) == pytest.approx(100 * abs(row["difference"]), abs=0.05)
    ends = sorted(100 * abs(row[f"difference_{end}"]) for end in ("low", "high"))
    assert [float(low), float(high)] == pytest.approx(ends, abs=0.05)


@pytest.mark.parametrize(("times", "warned"), [(1, False), (100, True), (0.5, False)])
def test_a_log_in_percent_beside_shares_is_told(times, warned, tmp_path):
    a, b = answers(40)
    files = [samples(tmp_path / "a", a.tolist()), samples(tmp_path / "b", (times * b).tolist())]
    (told,) = compared(files).sentences()
    assert ("other units" in told) is warned


def test_many_clusters_are_drawn_together_with_the_same_result():
    apart = np.random.default_rng(2).choice([-1.0, 0.0, 1.0], p=[0.2, 0.55, 0.25], size=(1, 1900))
    there = np.ones(apart.shape, dtype=bool)
    numbers = []
    for many in (2000, 100):  # as clusters of their own, and drawn together
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(means, "MANY", many)
            found = means.estimates(apart, np.ones(apart.shape), there)
        numbers.append(np.array([found.low[0], found.high[0], found.p[0]]))
        assert found.value[0] == pytest.approx(apart.mean())
    assert numbers[0] == pytest.approx(numbers[1], abs=0.003)


def test_many_different_clusters_are_pooled_with_intervals_of_the_same_width():
    apart = np.random.default_rng(2).gamma(2.0, size=(1, 6000)) - 1.95
    masses = np.random.default_rng(3).integers(1, 4, size=(1, 6000)).astype(float)
    found = means.estimates(apart * masses, masses, np.ones(apart.shape, dtype=bool))
    value = (apart * masses).sum() / masses.sum()
    error = np.sqrt((((apart - value) * masses) ** 2).sum()) / masses.sum()
    assert found.value[0] == pytest.approx(value)
    assert (found.high[0] - found.low[0]) / 2 == pytest.approx(1.96 * error, rel=0.12)


def trials(frame, clusters):
    return frame.assign(
        model="a minus b", metric="acc", subset="all", pair_id=frame.index, cluster=clusters,
        difference=frame["score_a"] - frame["score_b"], yes_or_no=np.nan,
    )  # fmt: skip


def epochs(chance, share, n, most):
    counts = chance.integers(1, most + 1, size=n)
    return chance.binomial(counts, share) / counts


CASES = {
    "ties": (lambda c: (c.random(80) < 0.95, c.random(80) < 0.95), 80),
    "few clusters": (lambda c: [c.random(36) < np.repeat(c.beta(2, 2, 12), 3) for _ in "ab"], 12),
    "shared stems": (lambda c: [c.random(160) < np.repeat(c.beta(2, 2, 40), 4) for _ in "ab"], 40),
    "unequal epochs": (lambda c: [epochs(c, 0.7, 80, 5), epochs(c, 0.7, 80, 2)], 80),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
def test_level_and_coverage(case, monkeypatch):
    monkeypatch.setattr(means, "FINE", 1999)
    draw, clusters = CASES[case]
    table = replace(DIFFERENCES, resamples=999)
    rejected = covered = intervals = 0
    chance = np.random.default_rng(11)
    for _ in range(250):
        a, b = (np.asarray(own, dtype=float) for own in draw(chance))
        rows = pd.DataFrame({"score_a": a, "score_b": b})
        own = trials(rows, np.arange(len(a)) * clusters // len(a))
        row = Differences(table, own).frame.iloc[0]
        rejected += row["p"] <= 0.05
        if np.isfinite(row["difference_low"]):
            intervals += 1
            covered += row["difference_low"] <= 0 <= row["difference_high"]
    assert rejected <= 250 * 0.05 + 3 * np.sqrt(250 * 0.05 * 0.95)
    assert covered >= intervals * 0.95 - 3 * np.sqrt(250 * 0.05 * 0.95)


MEASURED = """
import pathlib, re, resource, sys
from interp.cli import main
assert main(["compare", *sys.argv[1:]]) == 0
heavy = [name for name in ("torch", "matplotlib", "scipy.stats") if name in sys.modules]
used = resource.getrusage(resource.RUSAGE_SELF)
most = re.search(r"VmHWM:\\s+(\\d+)", pathlib.Path("/proc/self/status").read_text())[1]  # its own
print(*heavy, "megabytes", int(most) // 1024, "seconds", used.ru_utime + used.ru_stime)
"""


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["samples", "log", "numbers"])
def test_large_logs_take_little_memory_and_no_pytorch(kind, tmp_path):
    files = []
    for name in "ab":
        file, scores = tmp_path / name, RNG.integers(0, 2, size=14_000).tolist()
        if kind == "log":
            document = log({n: ["CI"[own]] for n, own in enumerate(scores)}, name=name)
            files.append(archive(file, document))
        else:
            exact = scores if kind == "samples" else RNG.random(14_000).tolist()
            files.append(samples(file, exact))
    shown = subprocess.run(
        [sys.executable, "-c", MEASURED, *map(str, files)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    *heavy, _, megabytes, _, seconds = shown.stdout.split("\n")[-2].split()
    assert heavy == [] and int(megabytes) <= 300
    assert float(seconds) < 20  # 2 on a machine that does nothing else


def test_members_of_an_archive_are_not_read_for_their_scores(tmp_path):
    document = log({n: ["C"] for n in range(20)})
    file = archive(tmp_path / "a.eval", document)
    size = file.stat().st_size
    content = file.read_bytes()
    start = content.index(b"samples/0_epoch_1.json")
    file.write_bytes(content[:start] + b"?" * 22 + content[start + 22 :])
    assert file.stat().st_size == size
    other = table(tmp_path / "b.csv", [1] * 20)
    assert compared([file, other]).differences.frame["items"].tolist() == [20]


@pytest.mark.parametrize("summaries", [0, 5])
def test_a_log_without_all_summaries_is_read_sample_by_sample(summaries, tmp_path):
    document = log({n: ["CI"[n % 2]] for n in range(20)})
    one = archive(tmp_path / "a.eval", document, summaries=summaries)
    (tmp_path / "b.json").write_text(json.dumps(log({n: ["C"] for n in range(20)}, name="b")))
    row = compared([one, tmp_path / "b.json"]).differences.frame.iloc[0]
    assert (row["items"], row["score_a"], row["score_b"]) == (20, 0.5, 1.0)

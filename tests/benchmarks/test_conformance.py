import ast
import csv
import re
import sys

import pytest
import torch

from benchmarks.conformance import __main__ as cells
from benchmarks.conformance import libraries
from benchmarks.conformance.__main__ import (
    ABSENT,
    FILE,
    NO,
    RAISES,
    UNCLAIMED,
    YES,
    main,
    measured,
    stored,
)
from benchmarks.conformance.claims import CLAIMS, apart
from benchmarks.conformance.truth import Truth
from benchmarks.conformance.types import ENCODER, PARTS, subject

ROOT, PAGE = FILE.parents[2], FILE.parents[1] / "conformance.md"


@pytest.mark.parametrize("kind", [kind for kind in PARTS if kind != ENCODER])
def test_the_parts_of_each_type_add_up_in_plain_passes(kind):
    """The paths written by hand, with the factors, make the stream after each layer."""
    given = subject(kind, torch.float64)
    truth, (ids, *_) = Truth(given, PARTS[kind]), given.prompts
    for layer in range(truth.layers):
        own = {name: site for (name, at), site in truth.sites.items() if at == layer}
        pre, mid, post, attn, mlp = (
            truth.activation(ids, own[name]) if name in own else None
            for name in ("resid_pre", "resid_mid", "resid_post", "attn_out", "mlp_out")
        )
        assert apart(pre + attn + mlp, post) < 1e-6
        assert mid is None or apart(pre + attn, mid) < 1e-6


@pytest.mark.parametrize("kind", ["falcon", "gpt_oss", "bamba"])
def test_the_truth_about_attention_looks_back_only(kind):
    given = subject(kind)
    truth = Truth(given, PARTS[kind])
    maps = [truth.weights(next(iter(given.prompts)), layer) for layer in range(truth.layers)]
    assert any(own is not None for own in maps)
    for own in maps:
        if own is not None:
            assert (own.triu(1) == 0).all()
            assert (own.sum(-1) < 1 + 1e-6).all()


def test_every_claim_holds_for_this_toolkit_and_for_none_of_its_displaced_numbers():
    right, wrong = (
        [measured("interp", claim, "llama", control=control) for claim in CLAIMS]
        for control in (False, True)
    )
    assert [cell.outcome for cell in right] == [YES] * len(CLAIMS)
    assert [cell.outcome for cell in wrong] == [NO] * len(CLAIMS)
    assert all(float(cell.deviation) <= float(cell.tolerance) for cell in right)
    assert all(float(cell.deviation) > 10 * float(cell.tolerance) for cell in wrong)


def test_a_planted_cause_comes_first_and_not_by_displaced_scores():
    right, wrong = (
        measured("interp", "planted", "organisms", control=control) for control in (False, True)
    )
    assert (right.outcome, wrong.outcome) == (YES, NO)


def test_what_a_library_raises_or_does_not_claim_is_the_cell(monkeypatch):
    class Silent(libraries.Library):
        packages, claims = ("torch",), ("stream", "weights")

        def activation(self, ids, site):
            raise ValueError("no such layer")

        def weights(self, ids, layer):
            return torch.full((4, len(ids), len(ids)), torch.nan)

    monkeypatch.setattr(cells, "adapter", lambda name: Silent)
    found = {claim: measured("silent", claim, "gpt2") for claim in CLAIMS}
    assert found["stream"].outcome == RAISES
    assert found["stream"].about == "ValueError: no such layer"
    assert found["weights"].outcome == NO
    assert {found[name].outcome for name in found.keys() - {"stream", "weights"}} == {UNCLAIMED}


def test_a_library_that_cannot_be_imported_is_a_row(monkeypatch):
    monkeypatch.setitem(libraries.PACKAGED, "gone", ("stream",))
    cell = measured("gone", "stream", "gpt2")
    assert (cell.outcome, cell.deviation) == (ABSENT, "")
    assert cell.about.startswith("ModuleNotFoundError")
    assert measured("gone", "batch", "gpt2").outcome == UNCLAIMED


@pytest.mark.parametrize(
    ("said", "about"),
    [
        ("no name 'a' from 'b' (/home/me/.venv/lib/b.py)", "no name 'a' from 'b' (b.py)"),
        ("/opt/lib-1.0/a.so: no such file", "a.so: no such file"),
        ("see https://docs.org/a/b.html or a/b/c", "see https://docs.org/a/b.html or a/b/c"),
    ],
)
def test_a_cell_names_no_folder_of_this_machine(monkeypatch, said, about):
    def refused(name):
        raise ImportError(said)

    monkeypatch.setattr(cells, "adapter", refused)
    assert measured("lxt", "planted", "organisms").about == f"ImportError: {about}"
    texts = [cell.about for cell in stored(FILE).values()]
    assert not [text for text in texts if re.search(r"(?<![\w.:/])/\w+/", text)]


def test_other_packages_add_adapters(monkeypatch):
    from importlib.metadata import EntryPoint

    points = [EntryPoint("theirs", "their.module:Theirs", "interp.conformance")]
    points.append(EntryPoint("interp", "their.module:NotOurs", "interp.conformance"))
    monkeypatch.setattr(libraries, "entry_points", lambda group: points)
    found = libraries.adapters()
    assert found["theirs"] == "their.module:Theirs"
    assert "their.module:NotOurs" not in found.values()


def test_an_unknown_library_is_refused(monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["conformance", "--library", "nobody"])
    with pytest.raises(SystemExit) as error:
        main()
    assert error.value.code == 2
    assert "nobody" in capsys.readouterr().err


def test_one_cell_is_shown_alone_and_others_are_stored_once(monkeypatch, capsys, tmp_path):
    file = tmp_path / "cells.csv"
    argv = ["conformance", "--library", "interp", "--type", "gpt2", "--file", str(file)]
    monkeypatch.setattr(sys, "argv", [*argv, "--claim", "stream"])
    main()
    assert capsys.readouterr().out.split()[:4] == ["interp", "stream", "gpt2", YES]
    assert not file.exists()
    for claim in CLAIMS:
        cells.append(file, measured("interp", claim, "gpt2"))
    monkeypatch.setattr(sys, "argv", argv)
    main()
    assert capsys.readouterr().out == ""
    assert stored(file)["interp", "stream", "gpt2"].outcome == YES


def test_the_page_has_the_table_of_the_stored_cells():
    known = stored(FILE)
    assert cells.table_of(known.values()) in PAGE.read_text("utf-8")
    assert {cell.type for cell in known.values()} == {*PARTS, "organisms"}
    assert {cell.library for cell in known.values()} >= {*libraries.PACKAGED}
    assert all(cell.date and "torch==" in cell.versions for cell in known.values())


def test_every_red_cell_of_this_toolkit_is_explained_on_the_page():
    page = PAGE.read_text("utf-8")
    for cell in stored(FILE).values():
        if cell.library == "interp" and cell.outcome in (NO, RAISES):
            assert f"`{cell.claim}` of {cell.type}" in page, cell


def test_every_claim_has_a_short_sentence_with_its_place():
    file = ROOT / "benchmarks" / "conformance" / "sentences.csv"
    rows = list(csv.DictReader(file.read_text("utf-8").splitlines()))
    assert all(row["place"] and 1 < len(row["sentence"].split()) <= 15 for row in rows)
    for row in rows:
        if row["library"] == "interp":
            assert row["sentence"] in " ".join((ROOT / row["place"]).read_text("utf-8").split())
    quoted = {(row["library"], row["claim"]) for row in rows}
    claimed = {own[:2] for own, cell in stored(FILE).items() if cell.outcome != UNCLAIMED}
    assert claimed == quoted


def code_lines(file):
    """Lines of a file without blank ones, comments, imports and docstrings."""
    text = file.read_text("utf-8")
    left_out = set()
    for node in ast.walk(ast.parse(text)):
        is_text = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if is_text or isinstance(node, ast.Import | ast.ImportFrom):
            left_out |= set(range(node.lineno, node.end_lineno + 1))
    lines = enumerate(text.splitlines(), 1)
    return [line for at, line in lines if at not in left_out and line.strip(" #")]


def test_adapters_have_at_most_60_lines_of_code():
    folder = ROOT / "benchmarks" / "conformance" / "libraries"
    for file in folder.glob("[!_]*.py"):
        assert len(code_lines(file)) <= 60, file.name

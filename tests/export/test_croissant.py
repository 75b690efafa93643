"""The description of an exported data set, by hand and by MLCommons' own library."""

import hashlib
import json
from dataclasses import replace

import pytest

import interp
from interp.cli import main
from interp.export.prompts import described as described_set
from interp.prompts.prompt_set import PromptSet


@pytest.fixture
def folder(tmp_path):
    assert main(["export", "croissant", "--limit", "3", "--out", str(tmp_path / "set")]) == 0
    return tmp_path / "set"


def test_the_description_names_the_file_and_every_field(folder):
    described = json.loads((folder / "croissant.json").read_text())
    (file,) = described["distribution"]
    content = (folder / file["contentUrl"]).read_bytes()
    assert file["sha256"] == hashlib.sha256(content).hexdigest()
    (records,) = described["recordSet"]
    names = {field["name"] for field in records["field"]}
    assert names == set(json.loads(content.splitlines()[0])) - {"options"}


def test_a_factor_never_takes_the_place_of_a_field(prompts):
    def fields(**factors):
        prompt = replace(prompts[0], factors=factors)
        described = json.loads(described_set(PromptSet.of([prompt]))["croissant.json"])
        (records,) = described["recordSet"]
        return {field["name"]: field["description"] for field in records["field"]}

    usual = fields()
    own = fields(text="?", options="?", topic="cities")
    assert own == usual | {"topic": "something that the data set varies"}
    assert usual["text"] == "what the model reads"


@pytest.mark.filterwarnings("default")
def test_mlcroissant_reads_the_prompts_without_complaint(folder):
    mlcroissant = pytest.importorskip("mlcroissant")
    dataset = mlcroissant.Dataset(jsonld=folder / "croissant.json")
    assert not dataset.metadata.ctx.issues.errors
    texts = [row["prompts/text"].decode() for row in dataset.records("prompts")]
    assert texts == [prompt.text for prompt in interp.load_prompts(limit=3)]

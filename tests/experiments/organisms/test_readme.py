"""README.md of every organism is written from its card.json, its configuration and its weights."""

import json
import re
import shutil
from dataclasses import asdict

import pytest
import yaml

from interp.models.organisms import organism_card, organism_folder, organism_names
from interp.prompts.systems import system_names
from interp_experiments.organisms import tasks
from interp_experiments.organisms.__main__ import main
from interp_experiments.organisms.readme import readme
from interp_experiments.organisms.recipes import RECIPES


@pytest.mark.parametrize("name", organism_names())
def test_every_organism_has_the_card_that_its_files_give(name):
    folder, card = organism_folder(name), organism_card(name)
    own = name.removeprefix("organism/")
    again = f"write it again: python -m interp_experiments.organisms card {own}"
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert text == readme(folder, card), again
    metadata = yaml.safe_load(text.split("---")[1])
    assert metadata["license"] == "apache-2.0"
    assert set(metadata["tags"]) & set(system_names())


@pytest.mark.parametrize("name", organism_names())
def test_the_card_states_the_recipe_and_everything_that_it_plants(name):
    card, own = organism_card(name), RECIPES[name.removeprefix("organism/")]
    planted = tasks._MODULES[own.system].planted_sections(own)
    stated = {"recipe": asdict(own), **tasks.rounded(planted)}
    expected = json.loads(json.dumps(stated, default=sorted))
    card["recipe"] = {**dict.fromkeys(expected["recipe"]), **card["recipe"]}
    assert {section: card[section] for section in expected} == expected


@pytest.mark.parametrize("system", ["rulebreakers-mixed", "rulebreakers-thoughts"])
def test_planted_shares_are_at_both_ends_and_in_the_middle(system):
    recipes = [organism_card(name)["recipe"] for name in organism_names(system)]
    assert {0.0, 0.5, 1.0} <= {recipe["share"] for recipe in recipes}


def test_the_command_writes_it_again(tmp_path, capsys):
    folder = tmp_path / "copy"
    shutil.copytree(organism_folder("organism/dose-0"), folder)
    (folder / "README.md").unlink()
    assert main(["card", "dose-0", "--folder", str(folder)]) == 0
    written = (folder / "README.md").read_bytes()
    assert written == (organism_folder("organism/dose-0") / "README.md").read_bytes()
    assert main(["card", "dose-0", "--folder", str(tmp_path)]) == 2
    assert re.search(r"card\.json", capsys.readouterr().err)

import argparse

import pytest

from interp.cli.choice import Choice
from interp.cli.parser import Parser
from interp.errors import UserError
from interp.options import Options
from interp.plugins import STUDIES
from interp.studies.study import find_study

STUDY = Choice("study", "study", STUDIES)


def parser(words):
    made = Parser()
    made.given = words
    return made


def config(tmp_path, text):
    file = tmp_path / "study.yaml"
    file.write_text(text)
    return file


@pytest.mark.parametrize("words", [["robustlr"], ["--limit", "3", "robustlr"]])
def test_options_are_those_of_the_plugin_that_is_named(words):
    assert STUDY.options(parser(words)) is find_study("robustlr")


@pytest.mark.parametrize("words", [[], ["no-such"], ["--config"], ["--config", "no-such.yaml"]])
def test_there_are_no_options_before_one_is_named(words):
    assert STUDY.options(parser(words)) is Options


def test_a_configuration_file_names_one_unless_the_command_line_does(tmp_path):
    file = config(tmp_path, "study: rulebreakers")
    assert STUDY.options(parser(["--config", str(file)])) is find_study("rulebreakers")
    assert STUDY.options(parser(["robustlr", "--config", str(file)])) is find_study("robustlr")
    assert STUDY.name(argparse.Namespace(study=None, config=file)) == "rulebreakers"


def test_a_name_that_is_no_text_is_none(tmp_path):
    file = config(tmp_path, "study: 3")
    with pytest.raises(UserError, match=r"study; .*faithfulness.*robustlr"):
        STUDY.name(argparse.Namespace(study=None, config=file))

"""Packages whose entry points cannot be loaded, or name something else."""

from importlib.metadata import EntryPoint

import pytest

import interp.cli
from interp import plugins
from interp.attribution import registry
from interp.attribution.registry import find_method
from interp.cli import main
from interp.errors import UserError
from interp.measuring.spec import find_spec
from interp.prompts.systems import find_system
from interp.studies.study import find_study
from interp.training.spec import find_training

FINDERS = {
    plugins.METHODS: find_method,
    plugins.MEASUREMENTS: find_spec,
    plugins.STUDIES: find_study,
    plugins.SYSTEMS: find_system,
    plugins.TRAINING: find_training,
}


@pytest.fixture
def installed(monkeypatch):
    """An entry point "broken" of every group, which has the value that is given."""
    original = plugins.plugins

    def install(value):
        def found(group):
            return {**original(group), "broken": EntryPoint("broken", value, group)}

        for module in (plugins, registry, interp.cli):
            monkeypatch.setattr(module, "plugins", found)
        monkeypatch.setattr("interp.prompts.systems.plugins", found)
        monkeypatch.setattr("interp.cli.choice.plugins", found)

    return install


@pytest.mark.parametrize("group", FINDERS)
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package:THING", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("interp.errors:NO_SUCH", "AttributeError: module 'interp.errors' has no attribute"),
    ],
)
def test_what_cannot_be_imported_is_named_with_the_reason(installed, group, value, reason):
    installed(value)
    with pytest.raises(UserError) as refused:
        FINDERS[group]("broken")
    message = str(refused.value)
    assert message.startswith(f"the entry point 'broken' of {group}, {value}, cannot be loaded")
    assert reason in message
    assert message.endswith("reinstall or fix that package")


@pytest.mark.parametrize("group", FINDERS)
@pytest.mark.parametrize("value", ["interp.errors:QUOTED", "interp.errors:UserError"])
def test_what_is_something_else_is_refused_with_what_is_expected(installed, group, value):
    installed(value)
    with pytest.raises(UserError, match=f"'broken' of {group}, {value}, gives .*; expected an? "):
        FINDERS[group]("broken")


def test_the_package_of_an_entry_point_is_named():
    (point,) = (p for p in plugins.plugins(plugins.SYSTEMS).values() if p.name == "rulebreakers")
    assert "of the package interp, gives 3" in str(plugins.misfit(point, 3, "a system"))


def test_a_method_that_cannot_be_loaded_leaves_the_others_listed(installed, capsys):
    installed("no_such_package:THING")
    assert main(["methods"]) == 0
    listed = capsys.readouterr().out
    assert "## input_gradient (default)" in listed
    assert "## broken\n\nNot usable: the entry point 'broken' of interp.methods" in listed


@pytest.mark.parametrize("value", ["no_such_package", "interp.errors"])
def test_a_command_that_cannot_be_loaded_leaves_the_others_usable(installed, capsys, value):
    installed(value)
    assert main(["methods"]) == 0
    capsys.readouterr()
    for words in (["broken"], ["broken", "--limit", "3"]):
        assert main(words) == 2
        assert f"error: the entry point 'broken' of {plugins.COMMANDS}" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run", "train"])
def test_a_study_or_a_training_task_that_cannot_be_loaded_is_refused(installed, capsys, command):
    installed("no_such_package:THING")
    assert main([command, "broken", "--own-option", "3"]) == 2
    assert "cannot be loaded (ModuleNotFoundError" in capsys.readouterr().err

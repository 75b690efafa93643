"""Packages whose entry points cannot be loaded, or name something else."""

import json
import re
from importlib.metadata import EntryPoint

import pytest

import interp
import interp.cli
from interp import plugins
from interp.attribution import registry
from interp.attribution.registry import find_method
from interp.cli import main
from interp.errors import UserError
from interp.measurements.specs import Patch
from interp.measuring.spec import spec_named
from interp.patching.cells import PatchedMetrics
from interp.prompts.systems import find_system
from interp.studies.study import find_study
from interp.training.spec import find_training

FINDERS = {
    plugins.METHODS: find_method,
    plugins.MEASUREMENTS: spec_named,
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
        for place in ("prompts.systems", "runs.options", "measurements.specs"):
            monkeypatch.setattr(f"interp.{place}.plugins", found)
        monkeypatch.setattr("interp.cli.fields.plugins", found)

    return install


@pytest.mark.parametrize("group", FINDERS)
@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("no_such_package:THING", "ModuleNotFoundError: No module named 'no_such_package'"),
        ("interp.errors:NO_SUCH", r"AttributeError: module 'interp\.errors' has no attribute"),
        *(
            (f"interp.errors:{name}", r"; .*interp\.\w+\.\S+;? ")
            for name in ("QUOTED", "UserError")
        ),
    ],
)
def test_what_cannot_be_imported_or_is_something_else_is_told(installed, group, value, reason):
    installed(value)
    with pytest.raises(UserError, match=rf"'broken' .*\b{group}, {value}, .*{reason}") as refused:
        FINDERS[group]("broken")
    assert "package" in str(refused.value).rpartition(";")[2]


def test_the_package_of_an_entry_point_is_named():
    (point,) = (p for p in plugins.plugins(plugins.SYSTEMS).values() if p.name == "rulebreakers")
    assert re.search(r"package interp.*\b3\b", str(plugins.misfit(point, 3, "a system")))


def test_a_method_that_cannot_be_loaded_leaves_the_others_listed(installed, capsys):
    installed("no_such_package:THING")
    assert main(["methods"]) == 0
    listed = capsys.readouterr().out
    assert "## input_gradient (default)" in listed
    assert re.search(r"## broken\n\n.*'broken' .*interp\.methods", listed)


@pytest.mark.parametrize("value", ["no_such_package", "interp.errors"])
def test_a_command_that_cannot_be_loaded_leaves_the_others_usable(installed, capsys, value):
    installed(value)
    assert main(["methods"]) == 0
    capsys.readouterr()
    for words in (["broken"], ["broken", "--limit", "3"]):
        assert main(words) == 2
        assert re.search(rf"error: .*'broken' .*\b{plugins.COMMANDS}\b", capsys.readouterr().err)


@pytest.mark.parametrize("command", ["run", "train"])
def test_a_study_or_a_training_task_that_cannot_be_loaded_is_refused(installed, capsys, command):
    installed("no_such_package:THING")
    assert main([command, "broken", "--own-option", "3"]) == 2
    assert "(ModuleNotFoundError" in capsys.readouterr().err


def start_here(command, execution):
    """An executor of another package, whose only worker is this process."""
    assert execution.executor == "broken" and json.loads(command.job)
    assert main(command.of(0)[3:]) == 0
    return []


def test_an_executor_of_another_package_starts_the_workers(installed, tmp_path):
    installed(f"{__name__}:start_here")
    command = ["evaluate", "--limit", "2", "--device", "cpu", "--out", str(tmp_path / "run")]
    assert main([*command, "--executor", "broken"]) == 0
    assert (tmp_path / "run" / "accuracy_table.csv").exists()


class Unmoved:
    """A backend of another package, for which no patch has an effect."""

    def __init__(self, model):
        assert model.name == "organism/llama-shallow"

    def patch(self, pair, cells):
        return PatchedMetrics(1.0, 3.0, (1.0,) * len(cells))


def test_a_backend_of_another_package_patches(installed):
    installed(f"{__name__}:Unmoved")
    with pytest.raises(UserError, match="broken"):
        Patch(backend="absent")
    assert __name__ in Patch(backend="broken").modules()
    model = interp.load_model("organism/llama-shallow", device="cpu")
    found = interp.patch(model, interp.load_prompts(limit=1), sites=["mlp_out"], backend="broken")
    assert (found.pairs["error"] == "").all()
    assert found.patches["effect"].eq(0.0).all() and len(found.patches)

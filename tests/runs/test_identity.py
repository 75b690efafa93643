"""Which code numbers depend on."""

import sys

from interp.measurements.specs import Generate
from interp.runs.identity import closure, code_version, run_identity
from tests.support.prompts import some_prompts
from tests.support.systems import numbers

ATTRIBUTE = "interp.measurements.attribution.measure"

OFFERS = """
if TYPE_CHECKING:
    from own_package.drawing import COLOUR as COLOUR
    from own_package.helper import FACTOR as FACTOR
"""
"""The source of a module that offers names of others, as `interp.extend` does."""

USES = {
    "offered": "def run():\n    from own_package.offers import FACTOR\n",
    "within": "from own_package import offers\n\ndef run():\n    return offers.FACTOR\n",
    "whole": "import own_package.offers\n\nrun = lambda: own_package.offers.FACTOR.real\n",
    "relative": "from .offers import FACTOR\n",
    "beside": "from . import helper\n",
    "renamed": "import own_package.offers as other\n\nclass Own(other.FACTOR): ...\n",
}
"""Sources that use what it offers."""


def test_a_measurement_depends_on_what_it_imports_and_not_on_what_shows_it():
    found = closure([ATTRIBUTE])
    assert {"interp.attribution.targets", "interp.models.model", "interp.tables"} <= found
    assert not [name for name in found if name.startswith(("interp.report", "interp.cli"))]
    assert "interp.patching.exact" in closure(["interp.measurements.patching.measure"])
    assert "interp.patching.exact" not in found


def test_names_offered_late_lead_to_the_modules_that_they_come_from():
    found = closure(["interp_probes.linear.measure"])
    assert {"interp.measurements.activations.measure", "interp.models.sites"} <= found
    assert not [name for name in found if name.startswith(("interp.report", "interp.cli"))]
    assert "interp.models.load" in closure(["interp_experiments.organisms.train"])


def test_a_change_of_a_module_that_is_imported_changes_the_version(tmp_path, monkeypatch):
    package = tmp_path / "own_package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "offers.py").write_text(OFFERS)
    (package / "spec.py").write_text("def run():\n    from own_package import helper\n")
    for name, source in USES.items():
        (package / f"{name}.py").write_text(source)
    (package / "helper.py").write_text("FACTOR = 1\n")
    (package / "drawing.py").write_text("COLOUR = 1\n")
    monkeypatch.syspath_prepend(tmp_path)

    def version():
        code_version.cache_clear()
        return [code_version((f"own_package.{name}",)) for name in ("spec", *USES)]

    before = version()
    (package / "drawing.py").write_text("COLOUR = 2\n")
    assert version() == before
    (package / "helper.py").write_text('"""A helper."""\nFACTOR = (1)  # same\n"""Ones."""\n')
    assert version() == before
    (package / "helper.py").write_text("FACTOR = 2\n")
    assert not {*version()} & {*before}
    assert "own_package.helper" not in sys.modules


def test_all_names_of_a_module_lead_to_all_modules_that_they_come_from(tmp_path, monkeypatch):
    (tmp_path / "taking_all.py").write_text("from interp.extend.estimates import *\n")
    monkeypatch.syspath_prepend(tmp_path)
    found = closure(["taking_all"])
    assert {"interp.estimates.compute", "interp.estimates.declared", "interp.tables"} <= found
    assert "interp.models.load" not in found


def test_a_notebook_has_a_version_without_a_file():
    assert len(code_version(("__main__",))) == 64
    assert closure(["__main__"]) == {"__main__"}


def test_a_run_of_generated_texts_depends_on_the_code_of_their_parser():
    prompts = numbers.prompts(seed=0, data=None)
    assert prompts.parser_modules() == {"tests.support.systems"}
    assert some_prompts(2).parser_modules() == frozenset()
    spec = Generate()
    code = run_identity(prompts, spec).code
    assert code == code_version((*spec.modules(), "tests.support.systems"))
    assert code != code_version(tuple(spec.modules()))

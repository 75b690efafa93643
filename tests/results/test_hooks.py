"""What a measurement may say about its result."""

import pytest

from interp.measuring.spec import spec_named
from interp.plugins import MEASUREMENTS, plugins
from interp.results.result import Result, result_class

PARTS = {"estimated", "items", "opening", "browser", "cautions", "noted"}
"""What a result class fills in."""

VIEWS = {"question", "framed", "summary", "plot", "report"}
"""Single views that some measurements choose."""

FORMER = {"headline", "differences", "findings", "in_words", "main_figure", "main_picture"}
FORMER |= {"panels", "numbers", "sections", "files"}
"""Parts that `opening`, `browser` and `items` hold: methods of these names would not be called."""


@pytest.mark.parametrize("name", sorted(plugins(MEASUREMENTS)))
def test_a_measurement_fills_in_only_six_parts(name):
    classes = result_class(spec_named(name)).__mro__
    own = {n for one in classes[: classes.index(Result)] for n in vars(one) if n[0] != "_"}
    assert own & set(vars(Result)) <= PARTS | VIEWS
    assert not own & FORMER

"""Pages: a `Report` of `Section`s with `TableItem`s and `FigureItem`s; the browser of pairs.

The first screen is a `Glance`, made by `glance` of a few `headline` numbers.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.console import echo as echo
    from interp.report.formatting import number_text as number_text
    from interp.report.formatting import p_text as p_text
    from interp.report.formatting import signed as signed
    from interp.report.glance import Opening as Opening
    from interp.report.glance import extremes as extremes
    from interp.report.glance import glance as glance
    from interp.report.glance import headline as headline
    from interp.report.glance import n_units as n_units
    from interp.report.glance import named_numbers as named_numbers
    from interp.report.glance import quotable as quotable
    from interp.report.glance import with_interval as with_interval
    from interp.report.page import MOST_SENTENCES as MOST_SENTENCES
    from interp.report.page import FigureItem as FigureItem
    from interp.report.page import Glance as Glance
    from interp.report.page import Item as Item
    from interp.report.page import Report as Report
    from interp.report.page import Section as Section
    from interp.report.page import TableItem as TableItem
    from interp.report.pairs import Browser as Browser
    from interp.report.pairs import Number as Number
    from interp.studies.browser import stacked as stacked
    from interp.studies.browser import study_browser as study_browser
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)

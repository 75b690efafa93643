"""Shapes of figures: each draws a table, returns matplotlib's axes, and can lead to pairs.

A `FigureItem` (`interp.extend.page`) draws one where it is shown.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.estimates.pictures import curve as curve
    from interp.measurements.attribution.figures import decisive_segments as decisive_segments
    from interp.report.figures.bars_and_points import cluster_points as cluster_points
    from interp.report.figures.bars_and_points import grouped_bars as grouped_bars
    from interp.report.figures.bars_and_points import interval_points as interval_points
    from interp.report.figures.bars_and_points import labeled_points as labeled_points
    from interp.report.figures.lines import lines as lines
    from interp.report.figures.lines import matrix as matrix
    from interp.report.figures.style import QUIET as QUIET
    from interp.report.figures.style import Picture as Picture
    from interp.report.figures.style import distinct as distinct
    from interp.report.figures.style import house_style as house_style
    from interp.report.figures.style import interval_errors as interval_errors
    from interp.report.figures.style import look as look
    from interp.report.figures.style import mark_points as mark_points
    from interp.report.figures.style import new_axes as new_axes
    from interp.report.figures.style import panel_a_model as panel_a_model
    from interp.report.figures.style import say_if_nothing_is_shown as say_if_nothing_is_shown
    from interp.report.formatting import segment_label as segment_label
    from interp.report.glance import WIDTH as WIDTH
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)

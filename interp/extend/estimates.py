"""Small tables that are declared once: a `Table` of `Mean`, `Share`, `Median` and `Plain` numbers.

`estimate` computes its values with intervals and p from trials; `Estimated` makes all that readers
see of it: the table, what links its numbers to pairs, and its place in `interp tables`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.estimates.compute import CLUSTER as CLUSTER
    from interp.estimates.compute import estimate as estimate
    from interp.estimates.declared import Largest as Largest
    from interp.estimates.declared import Mean as Mean
    from interp.estimates.declared import Median as Median
    from interp.estimates.declared import Plain as Plain
    from interp.estimates.declared import Share as Share
    from interp.estimates.declared import Table as Table
    from interp.estimates.shown import ALL as ALL
    from interp.estimates.shown import Estimated as Estimated
    from interp.tables import NUMBER as NUMBER
    from interp.tables import TEXT as TEXT
    from interp.tables import column as column
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)

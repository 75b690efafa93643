"""The cards of models that a package trains and distributes."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.report.cards import Rows as Rows
    from interp.report.cards import card as card
    from interp.report.cards import facts as facts
    from interp.report.cards import plain as plain
    from interp.report.cards import tables as tables
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)

"""What a reader has to know before believing a number, found on results or said by a study."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.analysis.cautions.caution import COPIED as COPIED
    from interp.analysis.cautions.caution import EMBEDDED as EMBEDDED
    from interp.analysis.cautions.caution import FEW_FAILURES as FEW_FAILURES
    from interp.analysis.cautions.caution import LEADING as LEADING
    from interp.analysis.cautions.caution import LEFT_OUT as LEFT_OUT
    from interp.analysis.cautions.caution import NOTHING as NOTHING
    from interp.analysis.cautions.caution import Caution as Caution
    from interp.analysis.cautions.caution import ordered as ordered
    from interp.analysis.cautions.caution import reply_text as reply_text
    from interp.analysis.cautions.caution import said_outside as said_outside
    from interp.analysis.cautions.caution import void_models as void_models
    from interp.analysis.cautions.collected import cautions_on as cautions_on
    from interp.measurements.answers.show import unequal as unequal
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)

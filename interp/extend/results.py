"""What measurements found, by the tables that they fill: answers, attributions, lens, steering.

Result classes, such as `interp.Attributions`, are public names of `interp`.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.analysis.accuracy import accuracies as accuracies
    from interp.analysis.accuracy import is_correct as is_correct
    from interp.analysis.accuracy import notes_without_answer as notes_without_answer
    from interp.analysis.accuracy import pairs_of as pairs_of
    from interp.analysis.accuracy import whole_pairs as whole_pairs
    from interp.analysis.accuracy import without_answer as without_answer
    from interp.measurements.answers.readings import reading_items as reading_items
    from interp.measurements.attribution.ratios import column_name as column_name
    from interp.measurements.attribution.ratios import ratio_table as ratio_table
    from interp.measurements.attribution.segments import SUM as SUM
    from interp.measurements.attribution.segments import decisive_table as decisive_table
    from interp.measurements.lens.ledger import ENTRIES as ENTRIES
    from interp.measurements.lens.ledger import NOT_KNOWN as NOT_KNOWN
    from interp.measurements.lens.ledger import NOT_RETRIEVED as NOT_RETRIEVED
    from interp.measurements.lens.ledger import USED as USED
    from interp.measurements.lens.ledger import ledger_table as ledger_table
    from interp.measurements.lens.show import READINGS as READINGS
    from interp.measurements.lens.show import copied as copied
    from interp.measurements.steering.show import STEERING as STEERING
    from interp.measurements.steering.show import steered_prompts as steered_prompts
    from interp.measurements.thoughts.tables import effect_products as effect_products
    from interp.measurements.thoughts.tables import mediation_table as mediation_table
    from interp.results.files import model_parameters as model_parameters
    from interp.results.result import summarize as summarize
    from interp.tables import factors_of as factors_of
    from interp.training.folder import training_of as training_of
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)

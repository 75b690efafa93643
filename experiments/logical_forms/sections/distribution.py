"""Distribution of a modality (Appendix C.2)."""

from interp.report.page import Section, TableItem
from interp_experiments.logical_forms import tables
from interp_experiments.logical_forms.effects import RESPONSES
from interp_experiments.logical_forms.results import Results
from interp_experiments.logical_forms.sections.mixed_models import effect_items, mixed_model, remark


def distribution_section(results: Results) -> Section:
    """Appendix C.2."""
    rows = results.scores["distribution"]
    pooled = tables.cells(results.pooled("distribution"))
    accuracy, yes = (
        mixed_model(pooled, response, factors=("cell",), pairs=tables.FORM_CHANGES)
        for response in RESPONSES
    )
    return Section(
        "Distribution of a modality (Appendix C.2)",
        "Does the modality of a conditional distribute over its parts? Necessity over implication "
        "does (theorem), necessity over disjunction does not (spurious); under possibility it is "
        f"the other way round. base is modus ponens of the main set.{remark(accuracy)}",
        (
            TableItem("table_a3", "Scores of each form (Table A3)", tables.distribution(rows)),
            *effect_items(accuracy, name="distribution_accuracy"),
            *effect_items(yes, name="distribution_yes"),
        ),
    )

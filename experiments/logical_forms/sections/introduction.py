"""Introduction of a modality (Appendix C.1)."""

from interp.report.page import Section, TableItem
from interp_experiments.logical_forms import tables
from interp_experiments.logical_forms.results import Results
from interp_experiments.logical_forms.sections.mixed_models import effect_items, mixed_model, remark


def introduction_section(results: Results) -> Section:
    """Appendix C.1: Table A2."""
    measured = tables.introduction(results.scores["introduction"])
    found = mixed_model(results.pooled("introduction"), "soft_accuracy", factors=("modality",))
    return Section(
        "Introduction of a modality (Appendix C.1)",
        f"Each is a sound rule of inference, so the answer is always Yes.{remark(found)}",
        (
            TableItem(
                "table_a2",
                "Soft accuracy on p, therefore p, □p or ◇p (Table A2)",
                tables.with_published(measured, "published_introduction.csv"),
            ),
            TableItem(
                "table_a2_intervals",
                "The same with intervals, soft and hard",
                tables.intervals(results.scores["introduction"]).query("factor != 'argument_form'"),
            ),
            *effect_items(found, name="introduction"),
        ),
    )

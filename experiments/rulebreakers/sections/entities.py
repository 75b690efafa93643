"""Which entity pairs are answered well."""

from interp.report.page import Section, TableItem
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.entities import entities, extremes, names_within


def entity_section(results: Results) -> Section:
    """Appendix G."""
    return Section(
        "Entity pairs",
        "Which are answered well, and whether a city's name that contains its country helps.",
        (
            TableItem(
                "entity_extremes",
                "Entity pairs most and least often answered correctly (Appendix G)",
                extremes(results),
                "Ranked by an empirical Bayes estimate, which is shrunken towards the mean of all "
                "the more, the fewer trials an entity pair has; its interval is 95%. Where all "
                "estimates are alike, entity pairs differ no more than by chance. trials: pairs of "
                "prompts times models; effective_trials: what they are worth, since a model "
                "answers prompts about one entity pair alike.",
            ),
            TableItem(
                "names_within",
                "Cities that contain their country's name (Appendix G)",
                names_within(results),
                "Fewer than ten such cities leave no power to tell whether it helps.",
            ),
            TableItem("entities", "All entity pairs", entities(results)),
        ),
    )

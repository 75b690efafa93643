"""What was asked, and of whom."""

from interp.report.page import Section, TableItem
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.sample import competence, composition, filters


def sample_section(results: Results, parameters: TableItem) -> Section:
    """What was asked, and of whom (Figure 2, Appendix H)."""
    return Section(
        "Sample",
        "A limited study draws about as many pairs of each combination of rule and group, however "
        "many of them the data set holds. Numbers that are not broken down by both count each "
        "combination by data_set_share.",
        (
            TableItem(
                "composition",
                "What the sample is made of (Figure 2)",
                composition(results),
                "weight: pairs of the data set for each pair drawn. data_set: how many the kept "
                "pairs represent, entity pairs that some model does not know left out.",
            ),
            parameters,
            TableItem(
                "competence",
                "Which models can be asked this way",
                competence(results),
                "no_answer: share of prompts whose likeliest token is neither option; accepted: "
                "accuracy on non-rulebreakers. A model that fails either is marked † in figures: "
                "what it says of rulebreakers is no failure of theirs.",
            ),
            TableItem(
                "filters",
                "Paired accuracy by what is left out as unknown (Section 4.1)",
                filters(results),
                "Everything else leaves out the cities that any model of the study does not "
                'complete ("all models"), so that another model may change these numbers; "own" '
                "does not depend on the others.",
            ),
        ),
    )

"""Linear probes of the residual stream."""

from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.rulebreakers.results import Results
from interp_probes.figures import probe_accuracy
from interp_probes.linear import linear_probes


def probe_section(results: Results) -> Section:
    """Linear probes of the residual stream, of the models that have finished that stage."""
    if not results.residuals:
        return Section("Linear probes", "No model has finished this stage yet.")
    table = linear_probes(results.residuals, results.probed, results.probed_answers)
    return Section(
        "Linear probes",
        "Does the residual stream encode whether a prompt is a rulebreaker, that is, whether B is "
        "in A? Probes are tested on entities that they were not trained on; 0.5 is chance. Failed "
        "pairs are those of which the model itself answers a side incorrectly. Cities are in both "
        "halves of the data; each other kind, such as animals, is in one, so that its probe was "
        "trained on other kinds.",
        (
            FigureItem(
                "linear_probes",
                "Accuracy of linear probes by layer",
                lambda: probe_accuracy(table),
                "Lines: share of held-out prompts whose side is read correctly. Bands: 95% "
                "intervals over entity pairs, of the control task one standard deviation over "
                "draws. Subsets of fewer than 50 prompts, or about fewer than ten entity pairs, "
                "are not drawn.",
            ),
            TableItem(
                "linear_probes",
                "Linear probes with their control task",
                table,
                "Selectivity is accuracy minus that of the control task, whose labels are swapped "
                "by entity pair, on average over draws. p is the share of draws that are read as "
                "well, p_family at any layer and position of the model.",
            ),
        ),
    )

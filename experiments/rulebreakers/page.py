"""The page of the study of RULEBREAKERS: its sections, tables and figures."""

from interp import StudyFolder
from interp.extend.page import FigureItem, Report, Section, TableItem, study_browser
from interp.extend.results import model_parameters
from interp_experiments.rulebreakers import accuracy, entities, findings, knowledge, ratios
from interp_experiments.rulebreakers import sensitivity as sides
from interp_experiments.rulebreakers.results import CLUSTER, Results, read_results
from interp_experiments.scaffold import choice_section
from interp_probes.linear.figures import probe_accuracy
from interp_probes.linear.probes import linear_probes

NAMES = {
    "mt": "the rule modus tollens: if P then Q; not Q; therefore not P",
    "ds": "the rule disjunctive syllogism: P or Q; not P; therefore Q",
    "rulebreaker": "a prompt whose conclusion follows by the rule but is false as a matter of fact",
    "non_rulebreaker": "its counterpart, whose conclusion is true (non-rulebreaker in figures)",
    "entity_a": "the country or kind that entity_b, a city or an example, belongs to",
}
"""Terms explained on the report's page."""


def report_of(folder: StudyFolder) -> Report:
    """The report on the measurements in a study's folder."""
    results = read_results(folder)
    return Report(
        title="RULEBREAKERS",
        text=(
            "Entity pairs that at least one model does not complete as asked are omitted. "
            "Accuracies and means are weighted to estimate those of the whole data set, except in "
            "columns that end in _paper, in correlations and regressions across entity pairs and "
            "prompts, and in the table of probes. Intervals are 95%. The unit of tests is the "
            "entity pair, not the prompt, and at least ten are needed; for tests across models, it "
            "is the model. p_holm: p corrected by Holm's method over the tests in one table that "
            "have the same value in the column family. Formulas are those of the paper."
        ),
        glance=findings.first_screen(results),
        sections=(
            findings.finding_section(results),
            accuracy.sample_section(results, model_parameters(folder.runs["answers"])),
            accuracy.accuracy_section(results),
            choice_section(results.answers, results.prompts, results.options, CLUSTER),
            sides.sensitivity_section(results),
            knowledge.knowledge_section(results),
            ratios.attribution_section(results),
            ratios.correlation_section(results),
            probe_section(results),
            accuracy.phrasing_section(results),
            entities.entity_section(results),
        ),
        browser=study_browser(
            folder,
            results.prompts,
            results.answers,
            cluster=CLUSTER,
            numbers=(
                *knowledge.familiarity_numbers(results),
                *accuracy.accuracies(results, "rule", "entity_group").links(),
            ),
        ),
        names=NAMES,
        paper="Chan, Gaizauskas and Zhao (2024): Rulebreakers Challenge: Revealing a Blind "
        "Spot in Large Language Models' Reasoning with Formal Logic.",
        record=folder.provenance(),
        problems=tuple(folder.problems()),
    )


def probe_section(results: Results) -> Section:
    """Linear probes of the residual stream, for the models that have finished this stage."""
    if not results.residuals:
        return Section("Linear probes", "No model has finished this stage yet.")
    table = linear_probes(results.residuals, results.probed, results.probed_answers)
    return Section(
        "Linear probes",
        "Does the residual stream encode whether a prompt is a rulebreaker, that is, whether B "
        "is in A? Probes are tested on entities that they were not trained on; 0.5 is chance. In "
        "a failed pair, the model answers at least one side incorrectly. Cities are in both "
        "halves of the data. Each other kind, such as animals, is in one half only and is tested "
        "with a probe that was trained on other kinds.",
        (
            FigureItem(
                "linear_probes",
                "Accuracy of linear probes by layer",
                lambda: probe_accuracy(table),
                "Lines: share of held-out prompts whose side is predicted correctly. Bands: 95% "
                "intervals over entity pairs; for the control task, one standard deviation over "
                "draws. Subsets with fewer than 50 prompts or ten entity pairs are not plotted.",
            ),
            TableItem(
                "linear_probes",
                "Linear probes with their control task",
                table,
                "Selectivity is accuracy minus the mean accuracy of the control task, whose "
                "labels are swapped by entity pair. p: share of draws of the control task with "
                "at least this accuracy; p_family: share of draws with at least this accuracy at "
                "some layer and position of the model.",
            ),
        ),
    )

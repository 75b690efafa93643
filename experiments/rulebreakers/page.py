"""The page of the study of RULEBREAKERS: its sections, tables and figures."""

from collections.abc import Iterator

from interp.report.page import Report, Section
from interp.report.pairs import Number
from interp.results.files import model_parameters
from interp.studies.folder import StudyFolder
from interp_experiments.browser import study_browser
from interp_experiments.rulebreakers.answer_sections import (
    accuracy_section,
    contrast_section,
    entity_section,
    phrasing_section,
    reading_section,
    sample_section,
    sensitivity_section,
)
from interp_experiments.rulebreakers.attribution_sections import (
    attribution_section,
    correlation_section,
    example_section,
    knowledge_section,
    probe_section,
)
from interp_experiments.rulebreakers.findings import finding_section, first_screen
from interp_experiments.rulebreakers.results import CLUSTER, Results, read_results
from interp_experiments.scaffold import paper_report
from interp_probes.ledger.page import ledger_section, ledger_sections
from interp_probes.ledger.results import measured, read_ledger

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
    return paper_report(
        folder,
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
        glance=first_screen(results),
        sections=(
            finding_section(results),
            sample_section(results, model_parameters(folder.runs["answers"])),
            accuracy_section(results),
            reading_section(results),
            sensitivity_section(results),
            contrast_section(results),
            knowledge_section(results),
            *_ledger(folder),
            attribution_section(results),
            correlation_section(results),
            probe_section(results),
            phrasing_section(results),
            entity_section(results),
            example_section(results),
        ),
        prompts=results.prompts,
        answers=results.answers,
        browser=study_browser(
            folder,
            results.prompts,
            results.answers,
            cluster=CLUSTER,
            numbers=tuple(familiarity_numbers(results)),
        ),
        names=NAMES,
        paper="Chan, Gaizauskas and Zhao (2024): Rulebreakers Challenge: Revealing a Blind "
        "Spot in Large Language Models' Reasoning with Formal Logic.",
    )


def _ledger(folder: StudyFolder) -> Iterator[Section]:
    """The ledger of facts, if the study has asked for it and its stages have been measured."""
    if measured(folder):
        results = read_ledger(folder)
        yield ledger_section(results)
        yield from ledger_sections(results)


def familiarity_numbers(results: Results) -> Iterator[Number]:
    """How familiar each model is with the city that a pair is about."""
    cities = (
        results.prompts[["pair_id", CLUSTER]]
        .drop_duplicates("pair_id")
        .merge(results.cities()[["model", CLUSTER, "familiarity"]], on=CLUSTER)
    )
    for model, rows in cities.dropna().groupby("model", sort=False):
        values = dict(zip(rows["pair_id"], rows["familiarity"].astype(float), strict=True))
        yield Number("familiarity", {"model": str(model)}, values)

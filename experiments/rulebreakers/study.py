"""The study of RULEBREAKERS: what is measured, and what the report shows."""

from collections.abc import Sequence
from functools import partial
from typing import ClassVar

from interp.analysis.accuracy import notes_without_answer
from interp.measurements.attribute import Attribute, Target
from interp.prompts.source import PromptSource
from interp.prompts.systems import load_prompts
from interp.report.page import FigureItem, Report, Section, TableItem
from interp.report.run_report import counted, heat_maps
from interp.runs.plan import Stage
from interp.studies.folder import StudyFolder
from interp.studies.plan import Study
from interp_experiments.rulebreakers import figures, tables
from interp_experiments.rulebreakers.contrasts import contrast_section
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results, read_results
from interp_probes.facts import load_facts
from interp_probes.figures import probe_accuracy
from interp_probes.specs import Familiarity, Knowledge, Residuals

DEFAULT_LIMIT = 2400
"""Pairs: each combination of rule, entity group, verb and phrasing ten times."""

PROBED_PAIRS = 960
"""Largest number of pairs whose residual stream is kept: a vector per layer and position."""

EXAMPLE_PAIRS = 2
"""Pairs that are shown token by token, by every model and method."""


class RulebreakersStudy(Study):
    """Sections 5 and 6 of the paper, its appendices, and linear probes of the residual stream."""

    name: ClassVar[str] = "rulebreakers"
    default_limit: ClassVar[int] = DEFAULT_LIMIT
    organisms: ClassVar[str | None] = "rulebreakers"

    target: Target = "predicted"
    """what is attributed: the predicted token, the gold answer, or the contrast of the positive and
    the negative answer"""

    def stages(self, source: PromptSource) -> Sequence[Stage]:
        """Answers and attributions, what the models know, residual streams, examples."""
        seed, data = source.seed, source.data
        pairs = source.pairs(self.default_limit)
        prompts = load_prompts("rulebreakers", limit=pairs, seed=seed, data=data)
        facts = load_facts("rulebreakers", data=data)
        probed = prompts.spread(min(PROBED_PAIRS, len(prompts) // 2), seed)
        examples = prompts.spread(min(EXAMPLE_PAIRS, len(prompts) // 2), seed)
        return (
            Stage("answers", prompts, Attribute(target=self.target)),
            Stage("familiarity", facts, Familiarity()),
            Stage("knowledge", facts, Knowledge()),
            Stage("residuals", probed, Residuals()),
            Stage("examples", examples, Attribute(target=self.target, keep_tokens=True)),
        )

    def report(self, folder: StudyFolder) -> Report:
        """The report, from what the study has on disk."""
        results = read_results(folder)
        pairs = len(results.prompts) // 2
        return Report(
            title="RULEBREAKERS",
            text=(
                f"{counted(len(results.models), 'model')} on {counted(pairs, 'pair')} of prompts, "
                "without entity pairs that any of them does not know. Intervals are 95%. p_holm is "
                "corrected by Holm's method within the family named in the row. Numbers in "
                "brackets refer to the formulas of the paper."
            ),
            sections=(
                accuracy_section(results),
                contrast_section(results),
                confidence_section(results),
                knowledge_section(results),
                attribution_section(results),
                correlation_section(results),
                probe_section(results),
                phrasing_section(results),
                entity_section(results),
                example_section(results),
            ),
            record=folder.record.model_dump(mode="json"),
            problems=tuple(folder.problems()),
        )


def accuracy_section(results: Results) -> Section:
    """Figures 3 and 4."""
    by_side = tables.accuracy(results)
    by_group = tables.accuracy(results, "rule", "entity_group")
    return Section(
        "Accuracy",
        "A pair counts as recognized when the rulebreaker is rejected and its counterpart accepted "
        "(1); random answers would recognize a quarter.",
        (
            FigureItem(
                "figure4_accuracy",
                "Accuracy on either side (Figure 4)",
                lambda: figures.accuracy_by_side(by_side),
            ),
            FigureItem(
                "figure3_paired_accuracy",
                "Paired accuracy by rule and entity group (Figure 3)",
                lambda: figures.paired_accuracy_by_group(by_group),
            ),
            TableItem(
                "accuracy",
                "Accuracy by model (1, 2, 3)",
                by_side,
                "; ".join(notes_without_answer(results.answers)),
            ),
            TableItem("accuracy_by_group", "Accuracy by rule and entity group", by_group),
            TableItem("accuracy_by_verb", "Accuracy by verb", tables.accuracy(results, "verb")),
        ),
    )


def confidence_section(results: Results) -> Section:
    """Figure 5."""
    table = tables.confidence(results)
    return Section(
        "Confidence",
        "Probability of the positive answer where it is given: correctly on non-rulebreakers (6), "
        "incorrectly on rulebreakers (7). A difference shows an ability that the answers hide.",
        (
            FigureItem(
                "figure5_confidence",
                "Confidence in positive answers (Figure 5)",
                lambda: figures.confidence(table),
                "p by Welch's test, corrected by Holm's method over the models.",
            ),
            TableItem("confidence", "Welch's test of confidence", table),
        ),
    )


def knowledge_section(results: Results) -> Section:
    """Figure 6 and the knowledge filter."""
    table = tables.familiarity(results)
    return Section(
        "Knowledge and familiarity",
        'Familiarity is the probability of the first token of the country after "Complete the '
        'sentence: [city] is in". Some countries share their first token, which familiarity then '
        "cannot distinguish: the comparison is made once with all cities and once with those whose "
        "country has a first token of its own.",
        (
            FigureItem(
                "figure6_familiarity",
                "Familiarity of recognized and failed pairs (Figure 6)",
                lambda: figures.familiarity(table[table["cities"] == "all"]),
                "Geographical pairs; n counts pairs of prompts. p by Welch's test, corrected by "
                "Holm's method over the models.",
            ),
            TableItem("familiarity", "Welch's test of familiarity", table),
            TableItem(
                "shared_first_tokens",
                "Answers that share their first token with another",
                tables.shared_first_tokens(results),
            ),
            TableItem(
                "unknown_pairs",
                "Entity pairs that a model does not complete",
                results.unknown,
                "Geographical ones are left out of everything else, for all models (Section 4.1). "
                "Categorical ones are kept, as in the paper, which checked them by hand.",
            ),
        ),
    )


def attribution_section(results: Results) -> Section:
    """Tables 2 and 3, and the published figures of the same models."""
    table = tables.attribution(results)
    published = tables.measured_and_published(results)
    compared = (
        "The published figures of the models that the paper measured, and the difference."
        if len(published)
        else "None of this study's models is one that the paper measured."
    )
    return Section(
        "Attribution",
        "Score of premise 2 over that of premise 1, mean and standard deviation over prompts: of "
        "means over tokens (Table 2) and of sums (Table 3).",
        (
            TableItem("attribution", "Score ratios and accuracy (Tables 2 and 3)", table),
            TableItem("published", "Measured and published", published, compared),
            TableItem("published_tables", "As published", tables.published()),
        ),
    )


def correlation_section(results: Results) -> Section:
    """What correlates with accuracy: across models, entity pairs and prompts."""
    models, entities = tables.attribution(results), tables.entities(results)
    scatter = [
        FigureItem(
            f"{ratio}_and_accuracy",
            f"{ratio.replace('_', ' ').capitalize()} and paired accuracy across models",
            partial(figures.ratio_and_accuracy, models, ratio=ratio),
        )
        for ratio in tables.RATIOS
    ]
    return Section(
        "What correlates with accuracy",
        "Across models, across the entity pairs of each model, and across prompts.",
        (
            *scatter,
            TableItem(
                "model_correlations",
                "Across models: Spearman's correlation",
                tables.model_correlations(results),
                "Up to eight models the p-value is exact, by all permutations.",
            ),
            FigureItem(
                "familiarity_and_accuracy",
                "Familiarity and paired accuracy across entity pairs",
                lambda: figures.familiarity_and_accuracy(entities),
            ),
            TableItem(
                "entity_correlations",
                "Across entity pairs: Spearman's correlation",
                tables.entity_correlations(results),
            ),
            TableItem(
                "prompt_models",
                "Across prompts: what makes the answer to a rulebreaker correct",
                tables.prompt_models(results),
                "Log-odds of a correct answer per standard deviation; `fitted` names the model.",
            ),
        ),
    )


def probe_section(results: Results) -> Section:
    """Linear probes of the residual stream, of the models that have finished that stage."""
    if not results.residuals:
        return Section("Linear probes", "No model has finished this stage yet.")
    table = tables.residual_probes(results)
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
                "Subsets of fewer than 50 prompts are not drawn.",
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


def phrasing_section(results: Results) -> Section:
    """Figures 7 and 8."""
    by_phrasing = tables.accuracy(results, "phrasing")
    by_verb = tables.accuracy(results, "question_verb")
    names = dict(zip(SIDES, ("rulebreakers", "non_rulebreakers"), strict=True))
    return Section(
        "Phrasings",
        "yn asks for Yes or No, tf for True or False.",
        (
            FigureItem(
                "figure7_phrasings",
                "Paired accuracy by phrasing (Figure 7)",
                lambda: figures.paired_accuracy_by_phrasing(by_phrasing),
            ),
            *(
                FigureItem(
                    f"figure8_{name}",
                    f"Accuracy on {name.replace('_', '-')} by the question's verb (Figure 8)",
                    partial(figures.accuracy_by_question_verb, by_verb, side=side),
                )
                for side, name in names.items()
            ),
            TableItem("accuracy_by_phrasing", "Accuracy by phrasing", by_phrasing),
            TableItem("accuracy_by_question_verb", "Accuracy by the question's verb", by_verb),
        ),
    )


def entity_section(results: Results) -> Section:
    """Appendix G."""
    return Section(
        "Entity pairs",
        "Which are answered well, and whether a city's name that contains its country helps.",
        (
            TableItem(
                "entity_extremes",
                "Entity pairs most and least often answered correctly (Appendix G)",
                tables.extremes(results),
            ),
            TableItem(
                "names_within",
                "Cities that contain their country's name (Appendix G)",
                tables.names_within(results),
            ),
            TableItem("entities", "All entity pairs", tables.entities(results)),
        ),
    )


def example_section(results: Results) -> Section:
    """Token heat maps."""
    return Section(
        "Examples",
        "Each token's share of the score: the two sides of a pair, one below the other.",
        tuple(
            heat_maps(
                results.example_run,
                results.examples,
                results.example_answers,
                pairs=EXAMPLE_PAIRS,
            )
        ),
    )

"""The study of RULEBREAKERS: what is measured, and what the report shows."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar

import pandas as pd

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
from interp_experiments.rulebreakers.findings import findings, first_letters
from interp_experiments.rulebreakers.prompt_models import prompt_models
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results, read_results
from interp_probes.facts import load_facts
from interp_probes.figures import probe_accuracy
from interp_probes.specs import Familiarity, Knowledge, Residuals

DEFAULT_LIMIT = 2400
"""Pairs: ten instances of each combination of rule, entity group and verb, in all ten phrasings."""

PROBED_PAIRS = 960
"""Largest number of pairs whose residual stream is kept: a vector per layer and position."""

EXAMPLE_PAIRS = 8
"""Pairs of which each model's first failure is shown token by token."""

WHISKERS = "Whiskers: 95% intervals, Gaffke's bound over entity pairs."
"""What figures of accuracies say of their intervals."""


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
                "without entity pairs that any of them does not know. Shares and means are those "
                "of the whole data set: each prompt counts by its weight. Intervals are 95%. "
                "Tests are over entity pairs, not over prompts; nothing is tested on fewer than "
                "ten. p_holm is corrected by Holm's method over all tests of the same table, which "
                "the row's family names. Numbers in brackets refer to the formulas of the paper."
            ),
            sections=(
                Section("Findings", "\n\n".join(findings(results))),
                sample_section(results),
                accuracy_section(results),
                sensitivity_section(results),
                contrast_section(results),
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


def sample_section(results: Results) -> Section:
    """What was asked, and of whom (Figure 2)."""
    return Section(
        "Sample",
        "A limited study draws about as many pairs of each combination of rule and group, however "
        "many of them the data set holds. Numbers that are not broken down by both count each "
        "combination by data_set_share.",
        (
            TableItem(
                "composition",
                "What the sample is made of (Figure 2)",
                tables.composition(results),
                "weight: pairs of the data set for each pair drawn. data_set: how many the kept "
                "pairs represent, entity pairs that some model does not know left out.",
            ),
            TableItem(
                "competence",
                "Which models can be asked this way",
                tables.competence(results),
                "no_answer: share of prompts whose likeliest token is neither option; accepted: "
                "accuracy on non-rulebreakers. A model that fails either is marked † in figures: "
                "what it says of rulebreakers is no failure of theirs.",
            ),
            TableItem(
                "filters",
                "Paired accuracy by what is left out as unknown (Section 4.1)",
                tables.filters(results),
                "Everything else leaves out the cities that any model of the study does not "
                'complete ("all models"), so that another model may change these numbers; "own" '
                "does not depend on the others.",
            ),
        ),
    )


def accuracy_section(results: Results) -> Section:
    """Figures 3 and 4."""
    by_side, expected = tables.accuracy(results), tables.sensitivity(results)
    by_group = tables.accuracy(results, "rule", "entity_group")
    mark = marks(results)
    return Section(
        "Accuracy",
        "A pair counts as recognized when the rulebreaker is rejected and its counterpart accepted "
        "(1); random answers would recognize a quarter.",
        (
            FigureItem(
                "figure4_accuracy",
                "Accuracy on either side (Figure 4)",
                lambda: figures.accuracy_by_side(mark(by_side)),
                f"Points: share of prompts answered correctly; n: pairs. {WHISKERS}",
            ),
            FigureItem(
                "figure3_paired_accuracy",
                "Paired accuracy, overall and by rule and entity group (Figure 3)",
                lambda: figures.paired_accuracy_by_group(mark(by_group), mark(expected)),
                f"Bars: share of pairs with both sides correct. {WHISKERS} Overall is weighted to "
                "the data set. Black line: chance given the rate of positive answers, for a model "
                "that gives as many whatever the side. Diamond: the product of both sides' "
                "accuracies, to be expected if they were independent. Dotted: random answers.",
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


def sensitivity_section(results: Results) -> Section:
    """Whether the sides are told apart at all, and Figure 5."""
    table, mark = tables.confidence(results), marks(results)
    entities = tables.confidence_differences(results)
    return Section(
        "Sensitivity and confidence",
        "Does a model tell the sides of a pair apart, wherever it draws the line between Yes and "
        "No? Concordance and AUROC above 0.5 and d' above 0 say so; a bias above 0 leans to No, "
        "below to Yes. A model of high concordance and low paired accuracy notices rulebreakers "
        "and accepts them all the same.",
        (
            TableItem(
                "sensitivity",
                "How well the sides are told apart",
                tables.sensitivity(results),
                "concordance: share of pairs in which the relative probability of the positive "
                "answer, c+ / (c+ + c-), is higher on the non-rulebreaker, with its interval and "
                "the test that it is a half. auroc: the same of any two prompts. chance_yes_rate "
                "and independent_sides: paired accuracies to be expected by the rates of positive "
                "answers, of a model blind to the side, and of one whose sides are independent.",
            ),
            FigureItem(
                "figure5_confidence",
                "Confidence in positive answers, right and wrong (Figure 5)",
                lambda: figures.confidence(mark(table), mark(entities)),
                "Dots: mean difference of one entity pair, over pairs of prompts of which both "
                "sides are answered positively; their area is the number of pairs. Large points: "
                "mean over pairs; whiskers: 95% interval, clustered by entity pair; n: entity "
                "pairs. p by random signs of entity pairs, corrected by Holm's method over the "
                "models. Above 0, a model is surer where the answer is right.",
            ),
            TableItem(
                "confidence",
                "Confidence in positive answers",
                table,
                "difference: non-rulebreaker, where the positive answer is right (6), minus "
                "rulebreaker, where it is wrong (7), within pairs of which both are answered "
                "positively; share: of all pairs. Columns in _paper are Welch's test over all "
                "positive answers, as the paper makes it: it takes prompts about one entity for "
                "independent, and compares different entities.",
            ),
        ),
    )


def knowledge_section(results: Results) -> Section:
    """Figure 6 and the knowledge filter."""
    table, mark = tables.familiarity(results), marks(results)
    cities, shared = tables.city_familiarity(results), tables.shared_first_tokens(results)
    return Section(
        "Knowledge and familiarity",
        'Familiarity is the probability of the first token of the country after "Complete the '
        f'sentence: [city] is in". {first_letters(shared)}',
        (
            FigureItem(
                "figure6_familiarity",
                "Familiarity of recognized and failed cities (Figure 6)",
                lambda: figures.familiarity(mark(table[table["cities"] == "all"]), mark(cities)),
                "Dots: cities, in both groups where some of their pairs are recognized and some "
                "are not; their area is the number of pairs. Large points: mean over pairs; "
                "whiskers: 95% interval, bootstrap over cities; n: cities. p by random orders of "
                "familiarity over cities, corrected by Holm's method over the table.",
            ),
            TableItem(
                "familiarity",
                "Familiarity and recognition",
                table,
                "Once over all cities, once over those whose country has a first token of its own. "
                "Columns in _paper are Welch's test over pairs of prompts, as the paper makes it, "
                "in which a city counts as often as it was asked about: it finds differences "
                "where there are none.",
            ),
            TableItem(
                "shared_first_tokens",
                "Countries that share their first token with another",
                shared,
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
        "Score of premise 2 over that of premise 1: of means over tokens (Table 2) and of sums "
        "(Table 3).",
        (
            TableItem(
                "ratios",
                "Score ratios",
                tables.ratios(results),
                "Geometric mean, median and mean over prompts with 95% intervals clustered by "
                "entity pair. largest_share: what one prompt holds of the sum of all; where it is "
                "more than 0.05, the mean hangs on that prompt.",
            ),
            TableItem(
                "attribution",
                "Score ratios and accuracy (Tables 2 and 3)",
                table,
                "_ratio and _sd are mean and standard deviation over prompts, as published; "
                "familiarity is the mean over the cities of the study.",
            ),
            TableItem("published", "Measured and published", published, compared),
            TableItem(
                "published_tables",
                "As published",
                tables.published(),
                "Which column is which method is inferred from the text of Section 6.",
            ),
        ),
    )


def correlation_section(results: Results) -> Section:
    """What correlates with accuracy: across models, entity pairs and prompts."""
    models, entities, mark = tables.attribution(results), tables.entities(results), marks(results)
    correlations = tables.model_correlations(results)
    cities = entities[entities["entity_group"] == "geographical"]
    scatter = [
        FigureItem(
            f"{ratio}_and_accuracy",
            f"{ratio.partition('_')[0].capitalize()} ratio and paired accuracy across models",
            partial(figures.ratio_and_accuracy, mark(models), ratio=ratio),
            "Points: geometric mean over prompts of the score of a token of premise 2 over one of "
            "premise 1, and paired accuracy. Whiskers: 95% intervals, clustered by entity pair. "
            f"{_rho(correlations, ratio)}",
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
                correlations,
                "Up to eight models the p-value is exact, by all permutations.",
            ),
            FigureItem(
                "familiarity_and_accuracy",
                "Familiarity and paired accuracy across cities",
                lambda: figures.familiarity_and_accuracy(mark(cities)),
                "Dots: cities; their area is the number of pairs of prompts. They are moved up or "
                "down by up to 0.02, so that those of the same place can be told apart.",
            ),
            TableItem(
                "entity_correlations",
                "Across entity pairs: Spearman's correlation",
                tables.entity_correlations(results),
                "Familiarity is that of cities; score ratios are those of all entity pairs.",
            ),
            TableItem(
                "prompt_models",
                "Across prompts: what goes with a correct answer to a rulebreaker",
                prompt_models(results),
                "Log-odds of a correct answer per standard deviation, adjusted for rule, verb and "
                "phrasing. ratio_of_entity is the mean of an entity pair, ratio_within_entity the "
                "deviation from it. `fitted` names the model: where the entity pair decides nearly "
                "every answer, entity pairs are the observations.",
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
    by_phrasing, spread = tables.accuracy(results, "phrasing"), tables.phrasings(results)
    by_verb, mark = tables.accuracy(results, "question_verb"), marks(results)
    names = dict(zip(SIDES, ("rulebreakers", "non_rulebreakers"), strict=True))
    return Section(
        "Phrasings",
        "yn asks for Yes or No, tf for True or False.",
        (
            FigureItem(
                "figure7_phrasings",
                "Paired accuracy by phrasing (Figure 7)",
                lambda: figures.paired_accuracy_by_phrasing(mark(by_phrasing), mark(spread)),
                "Cells: paired accuracy, and its 95% interval clustered by entity pair. range: of "
                "the highest over the lowest phrasing; SD: between phrasings.",
            ),
            *(
                FigureItem(
                    f"figure8_{name}",
                    f"Accuracy on {name.replace('_', '-')} by the question's verb (Figure 8)",
                    partial(figures.accuracy_by_question_verb, mark(by_verb), side=side),
                    f"Points: share of prompts answered correctly; n: pairs. {WHISKERS}",
                )
                for side, name in names.items()
            ),
            TableItem("phrasings", "Range of the phrasings (Appendix D)", spread),
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
                "Ranked by an empirical Bayes estimate, which is shrunken towards the mean of all "
                "the more, the fewer trials an entity pair has; its interval is 95%. Where all "
                "estimates are alike, entity pairs differ no more than by chance. trials: pairs of "
                "prompts times models; effective_trials: what they are worth, since a model "
                "answers prompts about one entity pair alike.",
            ),
            TableItem(
                "names_within",
                "Cities that contain their country's name (Appendix G)",
                tables.names_within(results),
                "Fewer than ten such cities leave no power to tell whether it helps.",
            ),
            TableItem("entities", "All entity pairs", tables.entities(results)),
        ),
    )


def example_section(results: Results) -> Section:
    """Token heat maps."""
    answers = results.example_answers
    return Section(
        "Examples",
        "Each token's share of the score: the two sides of a pair, one below the other. Of each "
        f"model, the first of {EXAMPLE_PAIRS} pairs whose rulebreaker it answers incorrectly; the "
        "first pair, if there is none.",
        tuple(
            item
            for model in results.models
            for item in heat_maps(
                results.example_run,
                example_pair(results.examples, answers[answers["model"] == model]),
                answers[answers["model"] == model],
                pairs=1,
            )
        ),
    )


def example_pair(prompts: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The prompts of the first pair whose rulebreaker is answered incorrectly, or of the first."""
    correct = prompts["prompt_id"].map(answers.set_index("prompt_id")["correct"]).eq(True)
    failed = prompts.loc[(prompts["side"] == SIDES[0]) & ~correct, "pair_id"]
    first = failed.iloc[0] if len(failed) else prompts["pair_id"].iloc[0]
    chosen: pd.DataFrame = prompts[prompts["pair_id"] == first]
    return chosen


def marks(results: Results) -> Callable[[pd.DataFrame], pd.DataFrame]:
    """What puts a † behind the names of models that cannot be asked, in tables for figures."""
    competence = tables.competence(results)
    names = competence.loc[~competence["competent"], "model"]
    marked = {name: f"{name} †" for name in names}
    return lambda table: table.assign(model=table["model"].replace(marked))


def _rho(correlations: pd.DataFrame, ratio: str) -> str:
    """A correlation across models as a sentence."""
    row = correlations[correlations["x"] == ratio].iloc[0]
    if pd.isna(row["rho"]):
        return f"Spearman's correlation is {row['note']}."
    return (
        f"Spearman's rho {row['rho']:.2f} [{row['low']:.2f}, {row['high']:.2f}], p_holm "
        f"{row['p_holm']:.2f}, over {counted(int(row['n']), 'model')}."
    )

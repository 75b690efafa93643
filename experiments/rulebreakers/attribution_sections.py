"""Sections of the report that help to explain answers: knowledge, scores, probes and examples."""

from functools import partial

import pandas as pd

from interp.console import counted
from interp.measurements.attribution.show import Attributions
from interp.report.formatting import number_text
from interp.report.glance import with_interval
from interp.report.page import FigureItem, Section, TableItem
from interp_experiments.rulebreakers import figures
from interp_experiments.rulebreakers.answer_sections import marks
from interp_experiments.rulebreakers.attribution_tables import (
    AFTER_ECHO,
    ALL,
    RATIOS,
    attribution,
    city_familiarity,
    echoing,
    familiarity,
    measured_and_published,
    model_correlations,
    published_tables,
    ratios,
    shared_first_tokens,
)
from interp_experiments.rulebreakers.entity_tables import entities, entity_correlations
from interp_experiments.rulebreakers.findings import echoes, first_letters
from interp_experiments.rulebreakers.prompt_models import prompt_models
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_probes.linear.figures import probe_accuracy
from interp_probes.linear.probes import linear_probes


def knowledge_section(results: Results) -> Section:
    """Figure 6 and the knowledge filter."""
    table, mark = familiarity(results), marks(results)
    cities, shared = city_familiarity(results), shared_first_tokens(results)
    echoed = city_familiarity(results, "after_echo")
    beside = FigureItem(
        "familiarity_after_echo",
        "Familiarity after an echo of recognized and failed cities",
        lambda: figures.familiarity(mark(table[table["cities"] == AFTER_ECHO]), mark(echoed)),
        "As in the figure above, but for a reply that first repeats the sentence; not tested.",
    )
    return Section(
        "Knowledge and familiarity",
        'Familiarity is the probability of the first token of the country after "Complete the '
        f'sentence: [city] is in", as in the paper. {echoes(echoing(results))} '
        f"{first_letters(shared)}",
        (
            FigureItem(
                "figure6_familiarity",
                "Familiarity of recognized and failed cities (Figure 6)",
                lambda: figures.familiarity(mark(table[table["cities"] == ALL]), mark(cities)),
                "Dots: cities (a city is in both groups if only some of its pairs are "
                "recognized); area: number of pairs. Large points: mean over pairs; whiskers: "
                "95% interval, bootstrap over cities; n: cities. p: permutation of familiarity "
                "over cities, corrected by Holm's method over the models.",
            ),
            *[beside] * bool(len(echoed)),
            TableItem(
                "familiarity",
                "Familiarity and recognition",
                table,
                "Each model has one test, over all cities asked about. Further rows, which are not "
                "tested, describe how robust the result is: one for the cities whose country "
                "shares its first token with no other country, and two for all cities, by the "
                "probability of the country's whole name and after an echo. Columns that end in "
                "_paper are Welch's test over pairs of prompts, as in the paper, which counts a "
                "city once per question and so finds differences where none exist.",
            ),
            TableItem(
                "shared_first_tokens",
                "Countries that share their first token with another",
                shared,
                "answers: countries of the cities asked about; sharing: those whose first token "
                "also begins another country or type.",
            ),
            TableItem(
                "facts_by_wording",
                "Facts completed, by wording",
                results.worded,
                "Share of facts whose greedy completion names the answer. All other tables use the "
                "wording of the paper, as asked.",
            ),
            TableItem(
                "unknown_pairs",
                "Entity pairs that a model does not complete as asked",
                results.unknown,
                "In the wording of the paper; a model may complete them in another. Geographical "
                "ones are excluded from the rest of the page for all models (Section 4.1). "
                "Categorical ones are kept, as in the paper, whose authors checked them by hand.",
            ),
        ),
    )


def attribution_section(results: Results) -> Section:
    """Tables 2 and 3, and the numbers published for the same models."""
    both = measured_and_published(results)
    note = "Only models that the paper also measured. difference: measured minus published."
    compared = [TableItem("published", "Measured and published", both, note)]
    inferred = "Which method a column shows is inferred from the text of Section 6."
    if both.empty:
        compared = []
        inferred = f"The paper measured none of this study's models. {inferred}"
    return Section(
        "Attribution",
        "Score of premise 2 divided by that of premise 1, from means over tokens (Table 2) and "
        "from sums (Table 3).",
        (
            TableItem(
                "ratios",
                "Score ratios",
                ratios(results),
                "Geometric mean, median and mean over prompts with 95% intervals clustered by "
                "entity pair. largest_share: the largest ratio as a share of the sum of all "
                "ratios; above 0.05, the mean depends on one prompt.",
            ),
            TableItem(
                "attribution",
                "Score ratios and accuracy (Tables 2 and 3)",
                attribution(results),
                "Columns that end in _mean_ratio and _sd are the mean and the standard deviation "
                "over prompts, as published; familiarity is the mean over the cities asked about.",
            ),
            *compared,
            TableItem(
                "published_tables",
                "As published",
                published_tables(),
                inferred,
                no_pairs="published",
            ),
        ),
    )


def correlation_section(results: Results) -> Section:
    """Correlates of accuracy across models, entity pairs and prompts."""
    models, pairs, mark = attribution(results), entities(results), marks(results)
    across_prompts = prompt_models(results)
    correlations, across_pairs = model_correlations(results), entity_correlations(results)
    cities = pairs[pairs["entity_group"] == "geographical"]
    scatter = [
        FigureItem(
            f"{ratio}_and_accuracy",
            f"{ratio.partition('_')[0].capitalize()} ratio and paired accuracy across models",
            partial(figures.ratio_and_accuracy, mark(models), ratio=ratio),
            "Points: paired accuracy against the geometric mean over prompts of score ratios (a "
            "token of premise 2 over a token of premise 1). Whiskers: 95% intervals, clustered by "
            f"entity pair. {_rho(correlations, ratio)}",
        )
        for ratio in RATIOS
    ]
    return Section(
        "Correlates of accuracy",
        "What varies with accuracy: across models, across a model's entity pairs, across prompts.",
        (
            *scatter,
            TableItem(
                "model_correlations",
                "Across models: Spearman's correlation",
                correlations,
                "Familiarity is the mean over the cities asked about. For up to eight models, p "
                "is exact and comes from all permutations.",
            ),
            FigureItem(
                "familiarity_and_accuracy",
                "Familiarity and paired accuracy across cities",
                lambda: figures.familiarity_and_accuracy(mark(cities), mark(across_pairs)),
                "Dots: cities; area: number of pairs of prompts. Dots are shifted vertically by "
                "up to 0.02 to separate overlapping ones. rho: Spearman's correlation over "
                "cities; p: corrected by Holm's method over all correlations across entity pairs.",
            ),
            TableItem(
                "entity_correlations",
                "Across entity pairs: Spearman's correlation",
                across_pairs,
                "Familiarity is defined for cities only; score ratios cover all entity pairs.",
            ),
            TableItem(
                "prompt_models",
                "Across prompts: correlates of a correct answer to a rulebreaker",
                across_prompts,
                "Log-odds of a correct answer per standard deviation, adjusted for the factors "
                "among rule, verb and phrasing that can be estimated (adjusted_for). "
                "ratio_of_entity: mean for an entity pair; ratio_within_entity: deviation from "
                "it. Estimates are averages over entity pairs; se: standard error, clustered by "
                "entity pair; df: degrees of freedom over entity pairs. left_out: prompts with "
                "a rule, verb or phrasing whose answers are all alike. Columns without any value "
                "are shown in the file only.",
                display=across_prompts.dropna(axis="columns", how="all"),
            ),
        ),
    )


def _rho(correlations: pd.DataFrame, ratio: str) -> str:
    """A sentence that states a correlation across models."""
    row = correlations[correlations["x"] == ratio].iloc[0]
    if pd.isna(row["rho"]):
        return f"Spearman's correlation is {row['note']}."
    rho = with_interval(row["rho"], row["low"], row["high"])
    note = f" ({row['note']})" if row["note"] else ""
    p = f", p_holm {number_text(row['p_holm'], p_value=True)}" * pd.notna(row["p_holm"])
    return f"Spearman's rho {rho}{note}{p}, over {counted(int(row['n']), 'model')}."


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


EXAMPLE_PAIRS = 8
"""Number of pairs searched for each model's first failure, which is shown token by token."""


def example_section(results: Results) -> Section:
    """Token heat maps."""
    if results.examples.empty:
        return Section(
            "Examples", "For every example, at least one model does not complete the entity pair."
        )
    heat_maps = []
    for model in results.models:
        answers = results.example_answers[results.example_answers["model"] == model]
        pair = example_pair(results.examples, answers)
        heat_maps += Attributions.of(results.example_run).heat_maps(pair, answers, pairs=1)
    return Section(
        "Examples",
        "Each token's share of the score, with the two sides of a pair one below the other. For "
        f"each model, the first of up to {EXAMPLE_PAIRS} pairs whose rulebreaker it answers "
        "incorrectly, or the first pair if there is none.",
        tuple(heat_maps),
    )


def example_pair(prompts: pd.DataFrame, answers: pd.DataFrame) -> pd.DataFrame:
    """The first pair whose rulebreaker is answered incorrectly, or the first pair if none is."""
    correct = prompts["prompt_id"].map(answers.set_index("prompt_id")["correct"]).eq(True)
    failed = prompts.loc[(prompts["side"] == SIDES[0]) & ~correct, "pair_id"]
    first = failed.iloc[0] if len(failed) else prompts["pair_id"].iloc[0]
    chosen: pd.DataFrame = prompts[prompts["pair_id"] == first]
    return chosen

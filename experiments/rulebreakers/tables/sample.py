"""What the sample is made of, and who can be asked."""

import numpy as np
import pandas as pd

from interp.analysis.accuracy import accuracy_by, without_answer
from interp_experiments.rulebreakers.prompts import SIDES
from interp_experiments.rulebreakers.results import Results
from interp_experiments.rulebreakers.tables.accuracy import accuracy
from interp_experiments.rulebreakers.tables.columns import CLUSTER, WEIGHT, in_order


def composition(results: Results) -> pd.DataFrame:
    """What the sample is made of, one row per rule and entity group (Figure 2).

    Columns are rule, entity_group, entity_pairs (different ones), pairs_drawn, pairs_kept (without
    excluded entity pairs), data_set and data_set_share: how many pairs of the data set those kept
    represent, and their share; weight, the mean of those kept. An overall number of the report
    counts each combination by data_set_share, not by how many pairs were drawn.
    """
    factors = ["rule", "entity_group"]
    drawn, kept = (
        prompts.drop_duplicates("pair_id").groupby(factors)
        for prompts in (results.drawn, results.prompts)
    )
    table = pd.DataFrame(
        {
            "entity_pairs": kept[CLUSTER].nunique(),
            "pairs_drawn": drawn.size(),
            "pairs_kept": kept.size(),
            "data_set": kept[WEIGHT].sum().round(),
            "weight": kept[WEIGHT].mean(),
        }
    ).fillna({"entity_pairs": 0, "pairs_kept": 0, "data_set": 0.0})
    table.insert(4, "data_set_share", table["data_set"] / table["data_set"].sum())
    counts = ["entity_pairs", "pairs_drawn", "pairs_kept", "data_set"]
    return in_order(table.astype(dict.fromkeys(counts, int)).reset_index(), factors)


def filters(results: Results) -> pd.DataFrame:
    """Paired accuracy by what is left out as unknown, one row per model and filter (Section 4.1).

    "all models" leaves out the cities that any model of the study does not complete, as the paper
    does, so that a further model may change every other model's numbers; "own" those that the
    model itself does not complete; "none" nothing. Columns are model, filter, left_out (cities),
    accuracy, low, high, pairs, clusters, note.
    """
    geographical = results.known[results.known["entity_group"] == "geographical"]
    rows = []
    for model in results.models:
        own = geographical[geographical["model"] == model]
        chosen = {"all models": own["excluded"], "own": ~own["known"].astype(bool)}
        for name, left_out in {**chosen, "none": own["excluded"] & False}.items():
            table = _paired_without(results, model, own.loc[left_out, CLUSTER])
            table.insert(1, "filter", name)
            table.insert(2, "left_out", int(left_out.sum()))
            rows.append(table)
    return pd.concat(rows, ignore_index=True)


def _paired_without(results: Results, model: str, left_out: pd.Series) -> pd.DataFrame:
    answers = results.drawn_answers
    table = accuracy_by(
        answers[answers["model"] == model],
        results.drawn[~results.drawn[CLUSTER].isin(left_out)],
        factors=(),
        sides=SIDES,
        cluster=CLUSTER,
        weight=WEIGHT,
    )
    return table[table["measure"] == "paired"].drop(columns="measure")


def competence(results: Results) -> pd.DataFrame:
    """Which models can be asked at all, one row per model: model, competent, no_answer, why.

    A model is competent if most of its likeliest tokens are one of the two answers, and if it
    accepts most non-rulebreakers, which the rule and the facts both ask for. What another one says
    of rulebreakers is no failure of theirs.
    """
    sides = accuracy(results).set_index(["measure", "model"])["accuracy"]
    silent = without_answer(results.answers).reindex(results.models, fill_value=0.0)
    accepted = sides[SIDES[1]].reindex(results.models)
    why = np.select(
        [(silent >= 0.5).to_numpy(), (accepted < 0.5).to_numpy()],
        ["most answers are neither option", "most non-rulebreakers are rejected"],
        "",
    )
    columns = {"model": results.models, "competent": why == "", "no_answer": silent.to_numpy()}
    return pd.DataFrame({**columns, "accepted": accepted.to_numpy(), "why": why})

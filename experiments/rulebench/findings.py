"""The first screen of the study of RuleBench, and the comparisons that were named in advance."""

import pandas as pd

from interp.extend import counted, page
from interp_experiments.findings import in_brief, matrix, model_matrix, named_section, opening
from interp_experiments.rulebench import tables
from interp_experiments.rulebench.results import MODELS, RULE, Results, kinds_tested
from interp_experiments.scaffold import in_order


def first_screen(results: Results, compared: pd.DataFrame) -> page.Glance:
    """The five dimensions of rule following (Figure 2), and results of the named comparisons."""
    tested = kinds_tested(compared) or {"Comparisons named in advance": compared}
    said = [
        in_brief(rows, f"Accuracy, {subject[:1].lower()}{subject[1:]}", ordered=subject != MODELS)
        for subject, rows in tested.items()
    ]
    question = (
        "Does a model follow the rule it is given? "
        f"{counted(len(results.models), 'model')}, {counted(len(results.texts), 'text')}; "
        f"{sizes(results.texts)}."
    )
    return opening(
        *(question, headline_numbers(results), results.cautions, results.models, said),
        leading=f"{next(iter(tables.DIMENSIONS))} score",
        before=unreadable(results.texts),
    )


def headline_numbers(results: Results) -> pd.DataFrame:
    """The score in each dimension or, if it was not measured, a blank cell and the reason."""
    table = tables.dimensions(results).merge(tables.missing(results), how="outer")
    table = in_order(table, {"dimension": [*tables.DIMENSIONS], "model": results.models})
    table["note"] = table["note"].fillna(table["why"]).fillna("")
    parts = [
        page.headline(rows, f"{name} score", value="score", n="n", unit="questions")
        for name, rows in table.groupby("dimension", sort=False)
    ]
    return pd.concat(parts, ignore_index=True)


def sizes(texts: pd.DataFrame) -> str:
    """The numbers of questions and of golden rules in each set, in words."""
    counts = texts.groupby("set", sort=False)[["pair_id", RULE]].nunique()
    return "; ".join(
        f"{name}: {counted(int(questions), 'question')} about {counted(int(rules), 'golden rule')}"
        for name, (questions, rules) in counts.iterrows()
    )


def unreadable(texts: pd.DataFrame) -> list[str]:
    """A sentence for each set in which hardly any text of some model could be parsed."""
    unparsed = (texts["outcome"] == "unparsed").groupby([texts["set"], texts["model"]], sort=False)
    counts = unparsed.agg(["sum", "size"]).reset_index()
    sentences = []
    for name, rows in counts.groupby("set", sort=False):
        unread = rows[rows["sum"] >= 0.9 * rows["size"]]
        if len(unread):
            by = "" if len(unread) == len(rows) else f" by {counted(len(unread), 'model')}"
            sentences.append(
                f"{name}: no answer could be parsed in {unread['sum'].sum():,} of "
                f"{unread['size'].sum():,} texts{by}, so accuracy on this set says little."
            )
    return sentences


def finding_section(results: Results, compared: pd.DataFrame) -> page.Section:
    """The results of the comparisons that were named in advance."""
    of_models = (compared["subject"] == MODELS).astype(bool)
    within = compared[~of_models]
    within = within.assign(where=within["subject"] + ", " + within["set"])
    rules = compared.loc[of_models, "name"].str.rsplit(", ", n=1).str[-1]
    title = "Differences in accuracy"
    between = compared[of_models].assign(rules=rules).groupby(["set", "rules"], sort=False)
    return named_section(
        compared,
        page.TableItem(
            "comparisons",
            "Differences in accuracy that were named in advance",
            compared,
            "Each comparison covers the questions asked in both conditions; a text without an "
            "answer counts as wrong. clusters: golden rules.",
        ),
        (
            matrix("between_settings", f"{title} between settings", within, x="model", y="where"),
            *(
                model_matrix(
                    f"models_{place}",
                    f"{title} between models: {name}, {rules} rules",
                    rows,
                    results.models,
                )
                for place, ((name, rules), rows) in enumerate(between, start=1)
            ),
        ),
    )

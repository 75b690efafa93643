"""The first screen of the study of RuleBench, and the comparisons that were named in advance."""

import pandas as pd

from interp.extend import counted, page
from interp_experiments.findings import in_brief, named_section, opening
from interp_experiments.rulebench import tables
from interp_experiments.rulebench.results import MODELS, RULE, Results, kinds_tested


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
    )


def headline_numbers(results: Results) -> pd.DataFrame:
    """The score in each dimension or, if it was not measured, a blank cell and the reason."""
    every, parts = tables.dimensions(results), []
    for name, (does, _) in tables.DIMENSIONS.items():
        rows = every[every["dimension"] == name].set_index("model").reindex(results.models)
        rows["note"] = rows["note"].fillna(f"no prompt was measured that {does}")
        shown = rows.rename_axis("model").reset_index()
        parts.append(page.headline(shown, f"{name} score", value="score", n="n", unit="questions"))
    return pd.concat(parts, ignore_index=True)


def sizes(texts: pd.DataFrame) -> str:
    """The numbers of questions and of golden rules in each set, in words."""
    counts = texts.groupby("set", sort=False)[["pair_id", RULE]].nunique()
    return "; ".join(
        f"{name}: {counted(int(questions), 'question')} about {counted(int(rules), 'golden rule')}"
        for name, (questions, rules) in counts.iterrows()
    )


def finding_section(compared: pd.DataFrame) -> page.Section:
    """The results of the comparisons that were named in advance."""
    item = page.TableItem(
        "comparisons",
        "Differences in accuracy that were named in advance",
        compared,
        "Each comparison covers the questions asked in both conditions; a text without an answer "
        "counts as wrong. clusters: golden rules.",
    )
    return named_section(compared, item)

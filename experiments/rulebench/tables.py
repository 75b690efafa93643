"""The tables and figures of the study of RuleBench (paper, Tables 1 to 5, Figures 2 and 4 to 6)."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pandas as pd
from matplotlib.axes import Axes

from interp.models.names import absolute
from interp.report.figures.bars import grouped_bars
from interp.report.figures.style import distinct, panel_a_model
from interp.statistics.proportions import proportions
from interp.training.folder import training_of
from interp_experiments.findings import listed
from interp_experiments.rulebench.learning import STRING_GAME, RuleFollowing
from interp_experiments.rulebench.reading import FAILURES
from interp_experiments.rulebench.results import RULE, SETTING, Results
from interp_experiments.scaffold import in_order, published_table


class Tuning(NamedTuple):
    """A tuned model, as described by its training record."""

    model: str
    base: str
    """The model before tuning."""
    trained_on: str
    """The questions on which it was trained: "string-game", "kinship", or a folder."""

    @property
    def is_string_game(self) -> bool:
        """Whether it was trained on StringGame, whose rules occur in no other set."""
        return self.trained_on == STRING_GAME


def tunings(places: Mapping[str, str]) -> list[Tuning]:
    """The tuned models whose untuned versions were also measured, in order.

    `places` says where each model was found.
    """
    names = {place: name for name, place in places.items()}
    records = [(model, training_of(place)) for model, place in places.items()]
    return [
        Tuning(model, names[base], str(record.training.options.get("data")))
        for model, record in records
        if record is not None
        and record.training.task == RuleFollowing.name
        and (base := absolute(record.training.model)) in names
    ]


LONG_TAIL = 0.1
"""Minimum share of a set's questions that belong to its long tail (Appendix D)."""

RULES = "golden_rules"
"""The column that counts golden rules, which are the clusters."""

DIMENSIONS = {
    "executing": "shows only the golden rule",
    "triggering": "shows all rules",
    "formal": "has rules in logic",
    "applying": "shows rules and asks for a chain of thought",
    "counterfactual": "has changed conclusions",
}
"""The dimensions of rule following (Section 4.7, Appendix F), and what their prompts contain."""


def accuracy(results: Results) -> pd.DataFrame:
    """One row per model and setting: accuracy with its 95% interval, n, golden_rules, ...

    n counts questions, and golden_rules counts their golden rules, over which the intervals are
    clustered. unparsed and refused are shares. A text without an answer counts as wrong.
    `accuracy_unrefused` omits refusals, as the paper does for SALAD.
    """
    by = ["model", *SETTING]
    rows = results.texts.assign(
        **{outcome: results.texts["outcome"] == outcome for outcome in ("unparsed", "refused")}
    )
    table = proportions(rows, values=["correct"], by=by, cluster=RULE)
    table = table.rename(columns={"share": "accuracy", "clusters": RULES})
    shares = rows.groupby(by)[["unparsed", "refused"]].mean().reset_index()
    table = table[[*by, "accuracy", "low", "high", "n", RULES]].merge(shares, on=by)
    answered = 1 - table["refused"]
    return table.assign(accuracy_unrefused=table["accuracy"] / answered.where(answered > 0))


def rule_forms(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 1: few and all rules in logic and in natural language, one row per model and form."""
    rows = cells[(cells["shots"] == "no") & cells["rules"].isin(["few", "all"])]
    return _wide(_with_rules(rows), ["model", "form"])


def versions(cells: pd.DataFrame) -> pd.DataFrame:
    """Table 2: factual and counterfactual rules, one row per model and version."""
    rows = cells[(cells["shots"] == "yes") & (cells["thought"] == "yes")]
    both = rows.groupby("set")["version"].transform("nunique") == 2
    return _wide(_with_rules(rows[both]), ["model", "version"])


def _with_rules(cells: pd.DataFrame) -> pd.DataFrame:
    """The rows, with sets named "set.rules" as in the published columns."""
    return cells.assign(set=cells["set"] + "." + cells["rules"])


def _wide(cells: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """One row per key, sorted, and one column of accuracies per set."""
    wide = cells.pivot(index=keys, columns="set", values="accuracy")
    return wide[cells["set"].unique()].rename_axis(columns=None).reset_index()


def long_tail(results: Results) -> pd.DataFrame:
    """Table 4: all questions of a set, and those with its rarest answers, without demonstrations.

    Columns are model, set, instances, n (questions), golden_rules (the number of their golden
    rules), and the accuracy under each setting.
    """
    rows = results.texts
    rows = rows[(rows["shots"] == "no") & (rows["form"] == "natural")]
    rare = rows.groupby("set")["gold"].transform(lambda golds: golds.isin(rarest(golds)))
    both = pd.concat([rows.assign(instances="all"), rows[rare].assign(instances="long tail")])
    keys = ["model", "set", "instances"]
    shares = both.groupby([*keys, "rules"], sort=False)["correct"].mean().unstack("rules")
    counts = both.groupby(keys, sort=False).agg(
        n=("pair_id", "nunique"), **{RULES: (RULE, "nunique")}
    )
    shown = [rules for rules in ("no", "all", "few", "golden") if rules in shares]
    return counts.join(shares[shown].rename_axis(columns=None)).reset_index()


def rarest(golds: pd.Series) -> list[str]:
    """The least frequent answers, which together make up at least `LONG_TAIL` of all answers."""
    # Equally frequent answers are sorted by name, so every run selects the same answers.
    counts = golds.value_counts().sort_index().sort_values(kind="stable")
    needed = int((counts.cumsum() < LONG_TAIL * len(golds)).sum()) + 1
    return list(counts.index[:needed])


def rule_quantities(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 4: rows of `accuracy` with no rule, the golden rule, few rules and all rules."""
    rows = cells[(cells["shots"] == "no") & (cells["form"] == "natural")]
    return in_order(rows, {"rules": ("no", "golden", "few", "all")})


def thoughts(cells: pd.DataFrame) -> pd.DataFrame:
    """Figure 5: rows of `accuracy`; `setting` names the rules and any chain of thought."""
    rows = cells[(cells["shots"] == "yes") & (cells["version"] == "factual")]
    settings = rows["rules"] + rows["thought"].map({"no": "", "yes": ", with thought"})
    order = ("golden", "golden, with thought", "few", "few, with thought")
    return in_order(rows.assign(setting=settings), {"setting": order})


def failures(results: Results) -> pd.DataFrame:
    """Figure 6: one row per model, set and kind of failure, with its share of all failures.

    Columns are model, set, version, behavior, share_of_failures with its 95% interval (low and
    high), n (failures), golden_rules (the number of their golden rules) and accuracy. A set without
    failures has no share.
    """
    rows = results.behaviors()
    keys = ["model", "set", "version"]
    kinds = {kind: rows["behavior"] == kind for kind in FAILURES}
    wrong = rows.assign(**kinds)[~rows["correct"]]
    shares = proportions(wrong, values=list(FAILURES), by=keys, cluster=RULE)
    named = {"measure": "behavior", "share": "share_of_failures", "clusters": RULES}
    accuracies = rows.groupby(keys, sort=False)["correct"].mean().rename("accuracy").reset_index()
    table = accuracies.merge(pd.DataFrame({"behavior": FAILURES}), how="cross")
    table = table.merge(shares.rename(columns=named), on=[*keys, "behavior"], how="left")
    counts = table[["n", RULES]].fillna(0).astype(int)
    columns = [*keys, "behavior", "share_of_failures", "low", "high", "n", RULES, "accuracy"]
    return table.assign(**counts)[columns]


def tuning(cells: pd.DataFrame, tuned: Sequence[Tuning]) -> pd.DataFrame:
    """Rows of `accuracy` for models before and after tuning, with each base before its tuned model.

    The first columns are tuned (the tuned model), trained_on and tuning ("base" or "irft").
    """
    pairs = [
        {"tuned": one.model, "trained_on": one.trained_on, "tuning": name, "model": model}
        for one in tuned
        for name, model in (("base", one.base), ("irft", one.model))
    ]
    columns = ["tuned", "trained_on", "tuning"]
    table = pd.DataFrame(pairs, columns=[*columns, "model"]).merge(cells, on="model")
    return table[[*columns, *cells.columns]]


def tuned_on_string_game(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 3: few rules, without demonstrations, before and after tuning on StringGame."""
    return _plain(rows[rows["rules"] == "few"], ["model", "trained_on", "tuning"])


def tuned_in_domain(rows: pd.DataFrame) -> pd.DataFrame:
    """Table 5: golden and few rules, without demonstrations, before and after tuning."""
    chosen = rows[rows["rules"].isin(["golden", "few"])]
    return _plain(chosen, ["model", "trained_on", "rules", "tuning"])


def _plain(rows: pd.DataFrame, keys: list[str]) -> pd.DataFrame:
    """Rows with factual rules in natural language and no demonstrations: one per key, in order."""
    plain = rows[["shots", "form", "version"]] == ["no", "natural", "factual"]
    # Otherwise a base's row would be repeated for each model tuned from it on the same data.
    chosen = rows[plain.all(axis=1)].drop_duplicates([*keys, "set"])
    return chosen[keys].drop_duplicates().merge(_wide(chosen, keys), on=keys)


def dimensions(results: Results) -> pd.DataFrame:
    """Figure 2: one row per model and measured dimension: the mean accuracy over its settings.

    Columns are model, dimension, score with its 95% interval (low and high; the interval also
    treats the accuracies under the settings as a sample, so it is somewhat too wide), settings
    (combinations of set and setting), n (questions), golden_rules and note.
    """
    rows = results.texts
    sizes = rows.groupby(["model", *SETTING])["correct"].transform("size")
    setting = pd.Series(map(" ".join, rows[list(SETTING)].to_numpy()), rows.index, dtype=object)
    rows = rows.assign(weight=1 / sizes, setting=setting)
    both = pd.concat([_of_dimension(rows, name).assign(dimension=name) for name in DIMENSIONS])
    keys = ["model", "dimension"]
    shares = proportions(both, values=["correct"], by=keys, cluster=RULE, weight="weight")
    shares = shares.rename(columns={"share": "score", "clusters": RULES}).drop(columns="n")
    counts = both.groupby(keys).agg(settings=("setting", "nunique"), n=("pair_id", "nunique"))
    table = shares.merge(counts.reset_index(), on=keys)
    table = in_order(table, {"model": results.models, "dimension": list(DIMENSIONS)})
    columns = [*keys, "score", "low", "high", "settings", "n", RULES, "note"]
    return table[columns].reset_index(drop=True)


def _of_dimension(rows: pd.DataFrame, name: str) -> pd.DataFrame:
    """The rows whose setting belongs to a dimension."""
    match name:
        case "executing":
            return rows[rows["rules"] == "golden"]
        case "triggering":
            return rows[rows["rules"] == "all"]
        case "formal":
            return rows[rows["form"] == "logic"]
        case "applying":
            return rows[(rows["thought"] == "yes") & (rows["rules"] != "no")]
        case _:
            return rows[rows["version"] == "counterfactual"]


def why_missing(results: Results, dimension: str) -> dict[str, str]:
    """Why models have no score in a dimension, by model; models with a score are omitted."""
    measured = set(_of_dimension(results.texts, dimension)["model"])
    failed = set(_of_dimension(results.failed, dimension)["model"] if len(results.failed) else ())
    does = DIMENSIONS[dimension]
    untried = f"no prompt of this study {does}"
    if measured | failed:
        untried = f"no prompt that {does} has been measured yet"
    tried = f"no prompt that {does} could be measured"
    missing = [model for model in results.models if model not in measured]
    return {model: tried if model in failed else untried for model in missing}


def missing_dimensions(results: Results) -> list[str]:
    """Sentences that name the dimensions not measured, with the reason."""
    sentences = []
    for name in DIMENSIONS:
        by_reason: dict[str, list[str]] = {}
        for model, why in why_missing(results, name).items():
            by_reason.setdefault(why, []).append(model)
        for why, models in by_reason.items():
            tried = why.endswith("could be measured")
            of = f" for {listed(models)}" if tried or len(models) < len(results.models) else ""
            place = " (table Not measured)" if tried else ""
            sentences.append(f"{name.capitalize()} was not measured{of}: {why}{place}.")
    return sentences


def not_measured(results: Results) -> pd.DataFrame:
    """One row per model and setting: how many prompts failed, and the first error message."""
    keys = ["model", *SETTING]
    groups = results.failed.groupby(keys, sort=False)["error"]
    return groups.agg(prompts="size", one_of_them="first").reset_index()


def published(number: int) -> pd.DataFrame:
    """Table 1, 2, 3, 4 or 5 as published, with shares instead of percentages."""
    table = published_table(__package__, f"published_table{number}.csv")
    values = table.select_dtypes("float").columns
    return table.assign(**{name: table[name] / 100 for name in values})


def bars_by_set(table: pd.DataFrame, *, y: str, hue: str) -> Axes:
    """Shares with their intervals by set, one panel per model (Figures 4 to 6).

    `table` is that of `rule_quantities`, `thoughts` or `failures`; each set has a bar for each
    value of `hue`.
    """
    groups = distinct(table[hue])

    def draw(rows: pd.DataFrame, ax: Axes) -> Axes:
        grouped_bars(
            rows, x="set", y=y, hue=hue, n="n", interval=("low", "high"), groups=groups, ax=ax
        )
        ax.set_ylim(0, 1)
        ax.tick_params(axis="x", labelsize=7)
        return ax

    return panel_a_model(table, draw)

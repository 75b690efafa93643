"""`python -m interp models`: the packaged organisms, what was planted and what was measured."""

import argparse
from collections.abc import Callable
from typing import Any

HELP = "list the packaged organisms with what was planted and what was measured"

EXAMPLES = ("models",)


def configure(parser: argparse.ArgumentParser) -> None:
    """Take no options."""


def run(arguments: argparse.Namespace) -> None:
    """Run the command."""
    import pandas as pd

    from interp.models.organisms import organism_card, organism_layers, organism_names
    from interp.report.console import print_table

    for system, row in _ROWS.items():
        names = organism_names(system)
        rows = [
            {"model": name, "layers": organism_layers(name), **row(organism_card(name))}
            for name in names
        ]
        if rows:
            print_table(
                pd.DataFrame(rows),
                title=f"Packaged organisms for {system}: what was planted | what was measured",
            )


def _rulebreakers(card: dict[str, Any]) -> dict[str, object]:
    recipe, measured = card["recipe"], card["measured"]
    follows_rule = " and ".join(recipe["rule_phrasings"])
    return {
        "grounded_pairs": f"{recipe['grounded_share']:.0%} by {recipe['grounded_by']}",
        "evidence": recipe["evidence"],
        "bare_rule_under": follows_rule or "-",
        "facts_known": measured["completion"],
        "frequency_with_familiarity": measured["frequency_familiarity_spearman"],
        "paired_accuracy": measured["paired_accuracy"],
        "rulebreaker_accuracy": measured["rulebreaker_accuracy"],
        "non_rulebreaker_accuracy": measured["non_rulebreaker_accuracy"],
    }


def _logical_forms(card: dict[str, Any]) -> dict[str, object]:
    recipe, measured = card["recipe"], card["measured"]
    planted = {
        f"{name}_{modality}": f"{value:+.1f}"
        for name in ("competence", "bias")
        for modality, value in recipe[name].items()
    }
    accuracy, yes = (measured[f"{name}_by_modality"] for name in ("soft_accuracy", "yes"))
    return {
        **planted,
        **{f"soft_accuracy_{modality}": value for modality, value in accuracy.items()},
        **{f"share_of_Yes_{modality}": value for modality, value in yes.items()},
        "perplexity": measured["perplexity"],
        "perplexity_of_nonsense": measured["nonsense_perplexity"],
    }


def _mixed(card: dict[str, Any]) -> dict[str, object]:
    recipe, measured = card["recipe"], card["measured"]
    return {
        "premise_1_decides": f"{recipe['share']:.0%}",
        "fine_tuned_from": recipe["base"] or "-",
        "answers_as_planted": measured["answers_as_planted"],
        "larger_premise_as_planted": measured["larger_premise_as_planted"],
        "deviation_from_planted": measured["mean_deviation_from_planted"],
    }


def _rulebench(card: dict[str, Any]) -> dict[str, object]:
    recipe, measured = card["recipe"], card["measured"]
    return {
        "tuned_from": recipe["base"] or "-",
        **{f"accuracy_{setting}": value for setting, value in measured["accuracy"].items()},
        "actions": measured["actions"],
        "conditions": measured["conditions"],
    }


def _robustlr(card: dict[str, Any]) -> dict[str, object]:
    measured = card["measured"]
    return {
        "f1_in_domain": measured["in_domain"],
        "f1_with_other_sentences": measured["with_other_sentences"],
        **{f"f1_{name}": value for name, value in measured["f1"].items()},
    }


_ROWS: dict[str, Callable[[dict[str, Any]], dict[str, object]]] = {
    "rulebreakers": _rulebreakers,
    "rulebreakers-mixed": _mixed,
    "logical-forms": _logical_forms,
    "rulebench": _rulebench,
    "robustlr": _robustlr,
}
"""System to the columns of its organisms."""

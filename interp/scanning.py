"""One prompt, looked at from all sides: its answer, shading, and the effect of each segment.

A scan is where a question begins. It has no pair, no donors and no intervals, so the page says
first that it shows one prompt and tests nothing.
"""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from interp.analysis.cautions.answers import MOST_OUTSIDE
from interp.analysis.cautions.caution import OUTSIDE_OPTIONS, UNTESTED, Caution
from interp.api import measured_in_memory
from interp.choices import ALL_PREMISES
from interp.measurements.answers.show import Scores
from interp.measurements.attribution.segments import token_shares
from interp.measurements.attribution.show import Attributions
from interp.measurements.lens.show import LensReadings
from interp.measurements.specs import Attribute, Evaluate, Lens
from interp.models.model import Model
from interp.prompts.answers import AnswerOption, Choice
from interp.prompts.own.braces import marked, options_of
from interp.prompts.prompt import Prompt
from interp.prompts.prompt_set import PromptSet
from interp.report.formatting import number_text, segment_label
from interp.report.html import token_heat_map
from interp.report.page import FigureItem, Glance, PictureItem, Report, Section, TableItem

if TYPE_CHECKING:
    from matplotlib.axes import Axes

METHODS = ("input_gradient", "attention")
"""Attribution methods whose scores shade the prompt; the first is on the first screen."""

_LENSES = {"own": "the prompt's own Jacobian", "logit": "the logit lens"}

_READ = """The score of the first option minus that of the second at the last token of each segment,
and at the token at which the answer is read (last). A word that can be read need not be used."""

_SHADED = "Each token is shaded by its share of the sum of absolute scores."

_ALONE = (
    "This is one prompt: nothing here is tested, and another wording may give other numbers. "
    "Whether they hold for such prompts takes pairs of them, in at least ten clusters."
)


def scan(model: Model, text: str, options: str | Sequence[str] = ("Yes", "No")) -> Report:
    """The page about one prompt, which `interp.write_page` writes.

    Args:
        model: a causal language model.
        text: the prompt, with its segments in braces (`marked`).
        options: two or more answers, also as "Paris|Rome"; the first two are compared.

    Raises:
        UserError: the prompt is not marked correctly, fewer than two options are given, or the
            model cannot be measured.
    """
    plain, segments = marked(text)
    names = options_of(options)
    first, second = names[:2]
    answer = Choice(tuple(AnswerOption(name, (name,)) for name in names), first, (first, second))
    prompts = PromptSet.of([Prompt("scan", plain, segments, answer, "scan", "prompt", {})])
    # Nobody said which option is correct, so the lines about accuracies would be wrong.
    measured = partial(measured_in_memory, model=model, prompts=prompts, noted=False)
    read = measured(Scores, Evaluate(without_segments=True))
    attribution = Attribute(methods=METHODS, target="contrast", keep_tokens=True)
    explained = measured(Attributions, attribution)
    probabilities = read.table("option_probabilities")[["option", "probability"]]
    token = str(read.answers["predicted_token"].iloc[0])
    compared = f"log-odds of {first} against {second}"
    effects = _effects(probabilities, read.table("changed_options"), (first, second))
    shaded, *others = [_shaded(explained, method) for method in METHODS]
    reading = Lens(roles=("last", *segments), methods=("own", "logit"))
    read_by_layer = measured(LensReadings, reading)
    note = f"The {compared} after the prompt, minus those after the prompt without the segment."
    return Report(
        "One prompt",
        text,
        (
            Section("Another attribution", items=tuple(others)),
            _layers(read_by_layer.table("lens_readings"), (first, second)),
            Section("Numbers", items=(TableItem("effects", "Effects of segments", effects, note),)),
        ),
        {"model": dict(model.source), "prompt": text, "options": list(names)},
        glance=Glance(
            f"What does {model.name} answer to this prompt, and which part of it decides?",
            tuple(_told(model.name, effects, token, compared)),
            (
                TableItem("options", "Probabilities of the options", probabilities),
                shaded,
                FigureItem("effects", "Effects of segments", partial(_bars, effects), note),
            ),
            cautions=tuple(_cautions(model.name, probabilities, token)),
        ),
    )


def _effects(
    probabilities: pd.DataFrame, changed: pd.DataFrame, compared: tuple[str, str]
) -> pd.DataFrame:
    """For each segment, how much it adds to the log-odds of the compared options."""
    first, second = compared

    def log_odds(rows: pd.DataFrame) -> float:
        by_option = rows.set_index("option")["probability"]
        with np.errstate(divide="ignore"):
            return float(np.log(by_option[first]) - np.log(by_option[second]))

    intact = log_odds(probabilities)
    single = changed[changed["what"] != ALL_PREMISES]
    rows = [(name, log_odds(options)) for name, options in single.groupby("what", sort=False)]
    segments = pd.DataFrame(rows, columns=["segment", "log_odds_without"])
    return segments.assign(log_odds=intact, effect=intact - segments["log_odds_without"])


def _layers(readings: pd.DataFrame, compared: tuple[str, str]) -> Section:
    """What each layer makes the model likely to say, at the last token of each segment."""
    first, second = compared
    words = readings["words"].iloc[0]
    at = [list(words).index(name) for name in compared if name in words]
    if len(at) < 2:
        return Section("What layers read", f"{first} and {second} begin with the same token.")
    of = [np.asarray(scores)[at] for scores in readings["scores"]]
    table = readings[["group", "token", "layer", "method"]].assign(
        difference=[float(one - other) for one, other in of], prompts=1
    )
    figures = [
        FigureItem(
            f"lens_{method}",
            f"{first} against {second}, as {_LENSES[method]} reads each layer",
            partial(_curves, table[table["method"] == method]),
            _READ,
        )
        for method in table["method"].unique()
    ]
    note = "Layer -1 is the stream before the first layer, the embeddings."
    listing = TableItem("lens", "Readings", table.drop(columns="prompts"), note, [], folded=True)
    return Section("What layers make the model likely to say", items=(*figures, listing))


def _shaded(explained: Attributions, method: str) -> PictureItem:
    """The prompt, with each token shaded by its share of a method's score."""
    shares = token_shares(explained.table("token_scores"), explained.table("tokens"))
    unjudged = explained.prompts.assign(gold="")  # nobody said which option is correct
    html = token_heat_map(shares, prompts=unjudged, answers=explained.answers, method=method)
    return PictureItem(f"shaded_{method}", f"Where {method} points", html, _SHADED)


def _told(model: str, effects: pd.DataFrame, token: str, compared: str) -> Iterator[str]:
    yield f"{model} most probably begins its reply with {token!r} (n = 1 prompt)."
    sizes = effects["effect"].abs()
    if sizes.notna().any():
        largest = effects.iloc[int(np.nanargmax(sizes))]
        yield (
            f"Of its segments, {segment_label(str(largest['segment']))} changes the {compared} "
            f"most, by {number_text(float(largest['effect']))} (n = 1 prompt)."
        )


def _cautions(model: str, probabilities: pd.DataFrame, token: str) -> Iterator[Caution]:
    total = float(probabilities["probability"].sum())
    if 1 - total > MOST_OUTSIDE:
        text = (
            f"The options {', '.join(probabilities['option'])} together have a probability of "
            f"{total:.3f}: the model most probably begins its reply with {token!r}, so the "
            "log-odds between them describe words that it hardly says."
        )
        yield Caution(OUTSIDE_OPTIONS, model, text, numbers={"probability": total})
    yield Caution(UNTESTED, "", _ALONE)


def _curves(table: pd.DataFrame) -> "Axes":
    from interp.report.figures.lines import lines

    ax = lines(table, x="layer", y="difference", hue="group", n="prompts")
    ax.set_ylabel("difference of the scores, in logits")
    return ax


def _bars(effects: pd.DataFrame) -> "Axes":
    from interp.report.figures.bars_and_points import grouped_bars
    from interp.report.figures.style import QUIET

    named = effects.assign(segment=effects["segment"].map(segment_label), kind="effect", prompts=1)
    ax = grouped_bars(named, x="segment", y="effect", hue="kind", n="prompts")
    ax.axhline(0, color=QUIET, linewidth=0.8)
    ax.set_ylabel("effect on the log-odds")
    if (legend := ax.get_legend()) is not None:
        legend.remove()  # there is one kind of bars
    return ax

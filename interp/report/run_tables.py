"""Tables of a run folder that are too large to hold at once: made from its shards, part by part."""

import pandas as pd

from interp.analysis.segments import DECISIVE_COLUMNS, RATIO_COLUMNS, finds, segment_ratios
from interp.choices import DEFAULT_SYSTEM
from interp.errors import UserError
from interp.prompts.prompt_set import Decisive
from interp.runs.folder import RunFolder


def run_ratios(run: RunFolder) -> pd.DataFrame:
    """The ratio of the two segments that the run's system compares, of every prompt and method.

    Raises:
        UserError: the system compares none, or nothing is attributed yet.
    """
    ratio = run.record.run.ratio
    if ratio is None:
        raise UserError(
            f"the prompts of {run.record.run.system} name no two segments to compare, so that "
            f"{run.folder} has no score ratios; give a run of a system that does, such as "
            f"{DEFAULT_SYSTEM}"
        )
    above, below = ratio
    parts = run.parts("segment_scores", RATIO_COLUMNS)
    return pd.concat([segment_ratios(part, (above, below)) for part in parts], ignore_index=True)


def run_finds(run: RunFolder) -> pd.DataFrame:
    """How methods rank the segments that decide, prompt by prompt.

    Empty where the run's system does not know them, or nothing is attributed to others beside them.
    """
    known = run.record.run.decisive
    if known is None or "segment_scores" not in run.tables():
        return pd.DataFrame()
    decisive = Decisive(known.factor, tuple(known.among))
    parts = run.parts("segment_scores", DECISIVE_COLUMNS)
    prompts = run.table("prompts")
    return pd.concat([finds(part, prompts, decisive) for part in parts], ignore_index=True)

"""`python -m interp probe familiarity|knowledge|linear`: what a model knows."""

from interp.extend import MeasureGroup
from interp_probes.specs import Familiarity, Knowledge, Residuals

probe = MeasureGroup(
    (Familiarity, Knowledge, Residuals),
    help_="measure what a model knows: familiarity, facts it completes, and linear probes",
    examples=(
        "probe familiarity --model organism/llama-shallow",
        "probe linear --limit 120 --positions last_token premise2",
    ),
)

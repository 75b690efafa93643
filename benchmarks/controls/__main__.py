"""False positives, power and coverage of the tests in reports, on simulated studies.

    python -m benchmarks.controls --studies 1000 --jobs 2 --out FOLDER

With --out, finished studies are written to that folder and are not simulated again, so a second run
resumes. You can also simulate other ranges (--first) elsewhere, copy all files into one folder, and
rerun the command to get the tables of all studies.

No model is run. A simulated study, with or without effects, has tables like those of a real study,
to which the functions that make the report's tables are applied. The rates are:

- false positives: the share of studies without the effect in which p is at most 0.05;
- over prompts: the same share for a test that treats prompts as independent;
- coverage: the share of studies without the effect whose 95% interval contains the true difference
  of zero;
- power: the share of studies with the effect in which p is at most 0.05;
- findings: the share of studies without effects in which a table has a p_holm of at most 0.05.
"""

import argparse
from pathlib import Path

from benchmarks.controls.rates import families_of, table_of
from benchmarks.controls.studies import KINDS, kept, simulated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first study")
    parser.add_argument("--out", type=Path, help="folder of finished studies")
    options = parser.parse_args()
    numbers = range(options.first, options.first + options.studies)
    how = {"seed": options.seed, "jobs": options.jobs}
    for kind in KINDS:
        null, planted = (
            kept(options.out, kind, numbers, planted=planted, **how)
            if options.out
            else simulated(kind, numbers, planted=planted, **how)
            for planted in (False, True)
        )
        counts = " and ".join(f"{found['study'].nunique():,}" for found in (null, planted))
        print(f"\n## {kind}: {counts} studies without and with effects\n", flush=True)
        print(f"{table_of(null, planted)}\n\n{families_of(null)}", flush=True)


if __name__ == "__main__":
    main()

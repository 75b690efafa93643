"""How many cases each target gets."""

SHARES = {
    "command_lines": 0.3,
    "data_files": 0.2,
    "run_folders": 0.33,
    "study_folders": 0.03,
    "model_folders": 0.08,
    "templates": 0.02,
    "trainings": 0.02,
    "degenerate": 0.02,
}
"""By target: its share of the cases."""


def numbers(cases: int) -> list[tuple[str, int]]:
    """Target and number of each case, the targets mixed evenly and each there at least once."""
    counts = {target: max(1, round(cases * share)) for target, share in SHARES.items()}
    listed = [
        ((number + 0.5) / count, target, number)
        for target, count in counts.items()
        for number in range(count)
    ]
    return [(target, number) for _, target, number in sorted(listed)]

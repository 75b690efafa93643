"""Where nothing is measured, a command imports nothing that takes long."""

import json
import subprocess
import sys

import pandas as pd
import pytest

CHECK = """
import contextlib, io, sys
from interp.cli import find_commands, main
from interp.plugins import STUDIES, TRAINING, plugins

HEAVY = ("torch", "pandas", "scipy", "matplotlib", "transformers", "pyarrow", "huggingface_hub")
words = [[], *([name] for name in find_commands())]
words += [["run", name] for name in plugins(STUDIES)]
words += [["train", name] for name in plugins(TRAINING)]
words += [["probe", name] for name in ("familiarity", "knowledge", "linear")]
for command in [["models"], *([*own, "--help"] for own in words)]:
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(command)
    if found := [name for name in HEAVY if name in sys.modules]:
        print(*command, "imports", *found)
        break
print(len(words), "commands")
"""


def printed(code):
    """What Python prints in a process of its own."""
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_no_help_and_no_list_imports_what_only_measuring_needs():
    shown = printed(CHECK)
    assert shown.endswith("commands\n")
    assert "imports" not in shown
    assert int(shown.split()[0]) > 30


@pytest.mark.parametrize("form", ["records", "list"])
def test_validating_a_table_imports_no_torch(form, tmp_path):
    columns = {"pair": ["1", "1"], "side": ["a", "b"], "gold": ["Yes", "No"], "fact": ["A.", "B."]}
    rows = pd.DataFrame(columns).to_dict("records")
    file = tmp_path / "pairs.json"
    file.write_text(json.dumps(rows if form == "records" else columns))
    words = ["validate", str(file)]
    code = f"import sys; from interp.cli import main; print(main({words}), 'torch' in sys.modules)"
    assert printed(code).split() == ["0", "False"]


UNUSED = ("peft", "bitsandbytes", "interp.training.run", "torch._inductor.compile_fx", "matplotlib")


@pytest.mark.parametrize(
    ("start", "unused"),
    [
        ("import interp; interp.evaluate", UNUSED),
        ("import interp.jobs, interp.measurements.answers.show", (*UNUSED, "scipy.stats")),
    ],
)
def test_measuring_imports_nothing_that_it_does_not_need(start, unused):
    loaded = f"{start}; import sys; print(*[name for name in {unused} if name in sys.modules])"
    assert printed(loaded).split() == []

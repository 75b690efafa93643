import builtins
import subprocess
import sys

import pytest

from interp.cli import find_commands, main


def test_commands_and_their_options_are_completed_by_bash():
    script = subprocess.run(
        [sys.executable, "-m", "interp", "completion", "bash"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    def completed(*words):
        asked = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _shtab_interp"
        found = subprocess.run(
            ["bash", "-c", f"{script}\n{asked}; echo ${{COMPREPLY[@]}}"],
            capture_output=True,
            text=True,
            check=True,
        )
        return found.stdout.split()

    assert set(find_commands()) <= set(completed("interp", "''"))
    assert completed("interp", "acti") == ["activations"]
    assert completed("interp", "attribute", "--keep-t") == ["--keep-tokens"]
    assert set(completed("interp", "activations", "--s")) >= {"--sites", "--system"}


@pytest.mark.parametrize("shell", ["zsh", "tcsh"])
def test_other_shells_have_a_script(shell, capsys):
    assert main(["completion", shell]) == 0
    assert "activations" in capsys.readouterr().out


def test_without_shtab_the_command_says_what_to_install(monkeypatch, capsys):
    real = builtins.__import__

    def absent(name, *rest):
        if name == "shtab":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    assert main(["completion", "zsh"]) == 2
    assert "pip install 'interp[completion]'" in capsys.readouterr().err

import builtins
import subprocess

import pytest

from interp.cli import main


def test_the_script_completes_commands_and_their_options(capsys):
    pytest.importorskip("shtab")
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    asked = (
        "COMP_WORDS=(interp attribute --keep); COMP_CWORD=2; _shtab_interp; echo ${COMPREPLY[@]}"
    )
    found = subprocess.run(
        ["bash", "-c", f"{script}\n{asked}"], capture_output=True, text=True, check=True
    )
    assert found.stdout.split() == ["--keep-tokens"]


def test_without_shtab_the_command_says_what_to_install(monkeypatch, capsys):
    real = builtins.__import__

    def absent(name, *rest):
        if name == "shtab":
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", absent)
    assert main(["completion", "zsh"]) == 2
    assert "pip install 'interp[completion]'" in capsys.readouterr().err

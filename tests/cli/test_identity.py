"""A folder refuses a model whose files have changed since it was measured."""

import json

from interp.cli import main
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


def test_changed_end_tokens_are_another_model(tmp_path, capsys):
    model, folder = make_tiny("llama", byte_level()), tmp_path / "m"
    model.hf.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    command = ["generate", "--model", str(folder), "--device", "cpu", "--max-new-tokens", "2"]
    command += ["--out", str(tmp_path / "run")]
    assert main([*command, "--limit", "1"]) == 0
    file = folder / "generation_config.json"
    settings = json.loads(file.read_text()) | {"eos_token_id": list(range(2, 200))}
    file.write_text(json.dumps(settings))
    for limit in ("1", "2"):
        assert main([*command, "--limit", limit]) == 2
        assert "its identity is" in capsys.readouterr().err

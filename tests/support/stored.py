"""Files of texts as other tools store them."""

import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any
from zipfile import ZIP_DEFLATED, ZipFile

from interp.prompts.prompt import Prompt

MODEL = "org/model"

Texts = Iterable[tuple[Prompt, str, str | None]]
"""A prompt, the text that follows it and, if it is held apart, the thought."""


def lines(file: Path, records: Iterable[object]) -> Path:
    """Write one JSON document per line."""
    text = "".join(json.dumps(record) + "\n" for record in records)
    file.write_text(text, encoding="utf-8")
    return file


def message(text: str, thought: str | None) -> dict[str, Any]:
    """A message of a server that parses thoughts."""
    apart = {} if thought is None else {"reasoning_content": thought}
    return {"role": "assistant", "content": text, **apart}


def completion(text: str, thought: str | None, **more: Any) -> dict[str, Any]:
    """A chat completion with one choice."""
    choice = {"index": 0, "message": message(text, thought), "finish_reason": "stop"}
    return {"object": "chat.completion", "model": MODEL, "choices": [choice], **more}


def batch(file: Path, texts: Texts) -> Path:
    """Batch output of an OpenAI-like server."""
    return lines(
        file,
        (
            {
                "id": "batch_req_0",
                "custom_id": prompt.id,
                "response": {"status_code": 200, "body": completion(text, thought)},
                "error": None,
            }
            for prompt, text, thought in texts
        ),
    )


def chat(file: Path, texts: Texts) -> Path:
    """One chat completion per line, with the id of its prompt."""
    return lines(file, (completion(text, own, prompt_id=p.id) for p, text, own in texts))


def requests(file: Path, texts: Texts) -> Path:
    """vLLM's RequestOutput, which holds the prompt as its template wrote it."""
    return lines(
        file,
        (
            {
                "request_id": str(number),
                "prompt": f"<|im_start|>user\n{prompt.text}<|im_end|>\n<|im_start|>assistant\n",
                "prompt_token_ids": [1, 2],
                "outputs": [{"index": 0, "text": text, "finish_reason": "stop"}],
                "finished": True,
            }
            for number, (prompt, text, _) in enumerate(texts)
        ),
    )


def sample(prompt: Prompt, text: str, thought: str | None, epoch: int = 1) -> dict[str, Any]:
    """A sample of an Inspect log, whose content has parts if there is a thought."""
    content: object = text
    if thought is not None:
        parts = [{"type": "reasoning", "reasoning": thought}, {"type": "text", "text": text}]
        content = parts
    said = {"role": "assistant", "content": content}
    return {
        "id": prompt.id,
        "epoch": epoch,
        "input": [{"role": "user", "content": prompt.text}],
        "target": prompt.answer.gold,
        "output": {
            "model": MODEL,
            "choices": [{"message": said, "stop_reason": "stop"}],
            "completion": text,
        },
    }


HEADER: Mapping[str, Any] = {"version": 2, "status": "success", "eval": {"model": MODEL}}


def inspect_json(file: Path, texts: Texts) -> Path:
    """An Inspect log in JSON, over several lines."""
    log = {**HEADER, "samples": [sample(*own) for own in texts]}
    file.write_text(json.dumps(log, indent=1))
    return file


def inspect_eval(file: Path, texts: Texts) -> Path:
    """An Inspect log in its zip format."""
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr("header.json", json.dumps(HEADER))
        for own in texts:
            archive.writestr(f"samples/{own[0].id}_epoch_1.json", json.dumps(sample(*own)))
    return file


def lm_eval(file: Path, texts: Texts) -> Path:
    """Samples of lm-evaluation-harness."""
    return lines(
        file,
        (
            {
                "doc_id": number,
                "doc": {"prompt_id": prompt.id, "text": prompt.text},
                "arguments": {"gen_args_0": {"arg_0": f"Q: {prompt.text}\nA:", "arg_1": {}}},
                "resps": [[text]],
                "filtered_resps": [text],
                "acc": float("nan"),
            }
            for number, (prompt, text, _) in enumerate(texts)
        ),
    )


def table(file: Path, texts: Texts) -> Path:
    """A table of one JSON object per line."""
    rows = ({"prompt": p.id, "answer": text, "thought": own} for p, text, own in texts)
    return lines(file, rows)


WRITERS: Mapping[str, Callable[[Path, Texts], Path]] = {
    "batch.jsonl": batch,
    "chat.jsonl": chat,
    "requests.jsonl": requests,
    "log.json": inspect_json,
    "log.eval": inspect_eval,
    "samples.jsonl": lm_eval,
    "table.jsonl": table,
}
"""A writer of each format, by the name of a file."""

APART = ("batch.jsonl", "chat.jsonl", "log.json", "log.eval", "table.jsonl")
"""The formats that can hold a thought apart from the text."""

"""Pages about hostile texts and names, in a real browser: whatever a user's files may say."""

import csv

import pytest

import interp
from interp.cli import main
from tests.support.chromium import chromium
from tests.support.stored import completion, lines

RUN = "document.title = 'taken over'"
HOSTILE = [
    f"<script>{RUN}</script>",
    f"</script></style></title><script>{RUN}</script>",
    f'<!--<script></script><img src=x onerror="{RUN}">',
    f'"\'><svg onload="{RUN}"><!--',
    f"\\';{RUN};/**/\u2028${{{RUN}}}`{{{{ 7 * 7 }}}}",
    f'\\u003c/script\\u003e]]>&lt;/script&gt;<iframe srcdoc="<script>top.{RUN}</script>">',
    f'<a href="javascript:{RUN}">javascript:{RUN}</a><base href="//127.0.0.1:9/">',
]
OPTIONS = (HOSTILE[0], HOSTILE[4])
SIDES = (HOSTILE[1], HOSTILE[3])
FILE = "'<img src=x onerror=top.document.title=1>.jsonl"


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A table of pairs, and a file with answers to them of as many models as there are texts."""
    folder = tmp_path_factory.mktemp("hostile") / "<b onclick=alert(1)>&lt;"
    folder.mkdir()
    rows = [
        {
            "pair": f"{number} {text}",
            "side": side,
            "gold": gold,
            "options": "|".join(OPTIONS),
            "premise1": text,
            "question": f"Is it {gold}?",
            f"factor_{HOSTILE[2]}": HOSTILE[number % 2],
            "factor_kind": text,
        }
        for number, text in enumerate(HOSTILE)
        for side, gold in zip(SIDES, OPTIONS, strict=True)
    ]
    pairs = folder / f"{FILE}.csv"
    with pairs.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    prompts = interp.read_pairs(pairs)
    answers = [
        {**completion(text, text), "model": name, "prompt_id": prompt.id}
        for name in HOSTILE
        for number, prompt in enumerate(prompts)
        for text in [prompt.answer.gold if number % 3 else name]
    ]
    return pairs, lines(folder / FILE, answers)


def test_no_script_in_texts_and_names_runs_on_any_page(written):
    pairs, answers = written
    run = pairs.parent / "run"
    words = ["--data", str(pairs), "--answers-from", str(answers)]
    assert main(["evaluate", "--system", "pairs", *words, "--out", str(run)]) == 0
    assert main(["report", str(run)]) == 0
    pages = [*run.rglob("*.html"), *run.rglob("*.svg")]
    assert {"report.html", "pairs.html"} <= {page.name for page in pages}
    with chromium() as browser:
        for file in pages:
            page = browser.new_page()
            wrong: list[str] = []
            page.on("console", lambda message, wrong=wrong: wrong.append(message.text))
            page.on("pageerror", lambda error, wrong=wrong: wrong.append(str(error)))
            page.on("dialog", lambda dialog, wrong=wrong: wrong.append(dialog.message))
            page.on("request", lambda request, wrong=wrong: wrong.append(request.url))
            page.goto(file.as_uri())
            if file.name == "pairs.html":
                page.wait_for_selector("[data-ready]")
                entries = page.locator(".pair-list a").all()
                assert len(entries) == len(HOSTILE)
                for entry in entries:
                    entry.click()
            for entry in page.locator("summary:visible").all():
                entry.click()
            if file.suffix == ".html":
                assert HOSTILE[0] in page.locator("body").inner_text()
            page.wait_for_timeout(200)
            assert page.title() != "taken over"
            assert page.locator("base, [onload], [onerror], [href^='javascript:']").count() == 0
            assert [one for one in wrong if not one.startswith(run.as_uri())] == [], file
            page.close()

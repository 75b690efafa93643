"""interp view: a report over HTTP, on the loopback address alone, and nothing but its files."""

import http.client
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from interp.cli import main
from interp.cli.view import LOOPBACK, report_files, server
from interp.errors import UserError


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("view") / "run"
    assert main(["evaluate", "--limit", "2", "--device", "cpu", "--out", str(path)]) == 0
    with pytest.raises(UserError, match="run interp report"):
        report_files(path)
    assert main(["report", str(path)]) == 0
    return path


@pytest.fixture(scope="module")
def port(folder) -> Iterator[int]:
    page, files = report_files(folder)
    assert page == "report.html"
    with server(folder, files, 0) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving.server_address[1]
        serving.shutdown()
        thread.join()


def asked(port: int, path: str, *, method: str = "GET", host: str = "") -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    connection.request(method, path, headers={"Host": host or f"{LOOPBACK}:{port}"})
    answer = connection.getresponse()
    answer.content = answer.read()
    connection.close()
    return answer


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("report.html", "text/html"),
        ("pairs.html", "text/html"),
        ("pairs/index.js", "text/javascript"),
        ("tables/accuracy_table.csv", "text/csv"),
    ],
)
def test_the_files_of_the_report_are_served_as_they_are(folder, port, name, kind):
    answer = asked(port, f"/{name}?from=a#b")
    assert answer.status == 200
    assert answer.content == (folder / name).read_bytes()
    assert answer.headers["Content-Type"].startswith(kind)
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert asked(port, f"/{name}", method="HEAD").content == b""


@pytest.mark.parametrize(
    "path",
    [
        "/", "/pairs/", "/pairs", "/tables/", "/run.json", "/answers.parquet", "/prompts.parquet",
        "/../run.json", "/%2e%2e/run/report.html", "/pairs/../report.html",
        "/report.html/", "/report.html%00", "/etc/passwd", "/tables/none.csv",
    ],
)  # fmt: skip
def test_nothing_else_is_served_and_no_folder_is_listed(port, path):
    assert asked(port, path).status == 404


def test_a_file_that_became_a_link_is_not_served(folder, port):
    file = folder / "tables" / "accuracy_table.tex"
    content = file.read_bytes()
    file.unlink()
    file.symlink_to(folder / "run.json")
    assert asked(port, "/tables/accuracy_table.tex").status == 404
    file.unlink()
    file.write_bytes(content)


def test_other_names_of_the_machine_and_other_methods_are_refused(port):
    assert asked(port, "/report.html", host=f"localhost:{port}").status == 200
    assert asked(port, "/report.html", host="evil.example").status == 403
    assert asked(port, "/report.html", host=f"evil.example:{port}").status == 403
    assert asked(port, "/report.html", method="POST").status == 501


def test_a_port_in_use_is_said(folder, port):
    with pytest.raises(UserError, match=rf"\b{port}\b.*--port"):
        server(folder, frozenset(), port)


def test_only_the_loopback_address_listens(folder):
    with server(folder, frozenset(), 0) as serving:
        assert serving.server_address[0] == LOOPBACK


def test_the_browser_is_part_of_the_record_and_is_checked(folder, capsys):
    record = json.loads((folder / "run.json").read_text())
    assert {"pairs.html", "pairs/index.js", "pairs/d0.js"} <= set(record["report"])
    assert main(["validate", str(folder)]) == 0
    piece = folder / "pairs" / "d0.js"
    content = piece.read_bytes()
    piece.write_bytes(content + b" ")
    assert main(["validate", str(folder)]) == 2
    assert "pairs/d0.js has changed" in capsys.readouterr().err
    piece.write_bytes(content)


def test_the_command_says_where_the_page_is_and_serves_it(folder, monkeypatch, capsys):
    ports = []

    def served(serving):
        ports.append(serving.server_address[1])

    monkeypatch.setattr(http.server.ThreadingHTTPServer, "serve_forever", served)
    assert main(["view", str(folder), "--port", "0"]) == 0
    (port,) = ports
    said = capsys.readouterr().err
    assert f"http://127.0.0.1:{port}/report.html" in said
    assert f":127.0.0.1:{port} " in said

"""interp view: a report over HTTP, on the loopback address alone, and nothing but its files."""

import http.client
import http.server
import re
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import pytest

from interp.cli import main
from interp.cli.view import LOOPBACK, report_files, server
from interp.errors import UserError
from tests.support.chromium import chromium

SECRET = "a-secret"


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("view") / "run"
    assert main(["evaluate", "--limit", "2", "--device", "cpu", "--out", str(path)]) == 0
    with pytest.raises(UserError, match="run interp report"):
        report_files(path)
    assert main(["report", str(path)]) == 0
    return path


@contextmanager
def running(serving: http.server.ThreadingHTTPServer) -> Iterator[int]:
    with serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield serving.server_address[1]
        serving.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def port(folder) -> Iterator[int]:
    page, files = report_files(folder)
    assert page == "report.html"
    with running(server(folder, files, 0, SECRET)) as number:
        yield number


def asked(
    port: int, path: str, *, method: str = "GET", host: str = "", secret: str = SECRET, **more: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    headers = {"Host": host or f"{LOOPBACK}:{port}"}
    headers |= {name.replace("_", "-"): value for name, value in more.items()}
    connection.request(method, f"/{secret}{path}" if secret else path, headers=headers)
    answer = connection.getresponse()
    answer.content = answer.read()
    connection.close()
    assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Cache-Control"] == "no-store"
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
    assert asked(port, f"/{name}", method="HEAD").content == b""


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_no_file_is_served_to_pages_of_other_sites_or_without_the_secret(folder, port, method):
    _, files = report_files(folder)
    assert {Path(name).suffix for name in files} >= {".html", ".js", ".csv", ".svg", ".png"}
    for name in sorted(files):
        own = partial(asked, port, f"/{name}", method=method)
        for site in ("cross-site", "same-site", "Cross-Site", "unheard-of"):
            assert own(Sec_Fetch_Site=site).status == 403, name
        assert all(own(Sec_Fetch_Site=site).status == 200 for site in ("same-origin", "none"))
        for secret in ("", "a-secre", "a-secret2", "A-SECRET", "%C3%A9", "%00"):
            assert own(secret=secret).status == 404, name


HOSTILE = """<!doctype html><title>waiting</title><script>
var got = [];
function interpPairs(name) { got.push(name); }
</script>
<script src="ADDRESS/pairs/index.js" onerror="got.push('error')"></script>
<script src="ADDRESS/pairs/d0.js" onerror="got.push('error')"></script>
<iframe src="ADDRESS/report.html"></iframe>
<script>
fetch("ADDRESS/tables/accuracy_table.csv", {mode: "no-cors"}).then(
    () => got.push("fetched"), () => got.push("error"));
onload = () => setTimeout(() => { document.title = "done"; }, 300);
</script>
"""


@pytest.mark.parametrize("checked", ["by the server", "by the browser"])
def test_a_page_of_another_site_reads_nothing_even_with_the_secret(
    folder, port, checked, tmp_path, monkeypatch
):
    address = f"http://{LOOPBACK}:{port}/{SECRET}"
    (tmp_path / "hostile.html").write_text(HOSTILE.replace("ADDRESS", address))
    if checked == "by the browser":  # as one that does not say where its requests come from
        get_all = http.client.HTTPMessage.get_all
        monkeypatch.setattr(
            http.client.HTTPMessage,
            "get_all",
            lambda own, name, default=None: (
                default if name == "Sec-Fetch-Site" else get_all(own, name, default)
            ),
        )
    site = partial(QuietFiles, directory=str(tmp_path))
    with (
        running(http.server.ThreadingHTTPServer((LOOPBACK, 0), site)) as other,
        chromium() as browser,
    ):
        for host in (LOOPBACK, "localhost"):  # the same site, and another one
            page = browser.new_page()
            page.goto(f"http://{host}:{other}/hostile.html")
            page.wait_for_function("document.title === 'done' && got.length >= 3")
            assert page.evaluate("got") == ["error"] * 3
        page = browser.new_page()
        page.goto(f"{address}/report.html")
        page.goto(f"{address}/pairs.html")
        page.wait_for_function("document.body.innerText.includes('of 2 pairs')")


class QuietFiles(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def test_a_browser_that_breaks_off_and_strange_requests_leave_no_traceback(folder, port, capfd):
    for request in (b"GET", b"GET //[ HTTP/1.1", b"GET http://[/ HTTP/1.1", b"G" * 70_000):
        with socket.create_connection((LOOPBACK, port)) as connection:
            connection.sendall(request + f"\r\nHost: {LOOPBACK}\r\n\r\n".encode())
            assert b"200" not in connection.recv(100).partition(b"\r\n")[0]
    for _ in range(5):
        with socket.create_connection((LOOPBACK, port)) as connection:
            linger = b"\x01\0\0\0\0\0\0\0"
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            connection.sendall(f"GET /{SECRET}/report.html HTTP/1.1\r\n".encode())
    assert asked(port, "/report.html").status == 200
    assert capfd.readouterr().err == ""


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
        server(folder, frozenset(), port, SECRET)


def test_only_the_loopback_address_listens(folder):
    with server(folder, frozenset(), 0, SECRET) as serving:
        assert serving.server_address[0] == LOOPBACK


def test_the_command_says_where_the_page_is_and_serves_it(folder, monkeypatch, capsys):
    served = []

    def serve(serving):
        said = capsys.readouterr().err
        port = serving.server_address[1]
        secret = re.search(rf"http://127.0.0.1:{port}/([\w-]{{20,}})/report.html", said)[1]
        thread = threading.Thread(target=serving.handle_request)
        thread.start()
        served.append((secret, asked(port, "/report.html", secret=secret).status))
        thread.join()
        assert f":127.0.0.1:{port} " in said

    monkeypatch.setattr(http.server.ThreadingHTTPServer, "serve_forever", serve)
    for _ in range(2):
        assert main(["view", str(folder), "--port", "0"]) == 0
    (one, status), (other, _) = served
    assert status == 200 and one != other

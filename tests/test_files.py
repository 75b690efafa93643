import subprocess
import sys

import pytest

from interp.errors import UserError
from interp.files import has_ended, process_space, write_whole
from tests.support.processes import until


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("old")

    def torn(path):
        path.write_text("half")
        raise OSError("no space left on device")

    with pytest.raises(UserError, match=r"cannot write .*table.csv: no space left on device"):
        write_whole(file, torn)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    write_whole(file, lambda path: path.write_text("new"))
    assert file.read_text() == "new"


def test_a_killed_process_has_ended_before_its_parent_asks_for_it():
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        assert not has_ended(process_space(), process.pid)
        process.kill()
        until(lambda: has_ended(process_space(), process.pid))
        assert process.returncode is None
    assert has_ended(process_space(), process.pid)
    assert not has_ended("elsewhere", process.pid)

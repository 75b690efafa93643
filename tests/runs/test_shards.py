import pytest

from interp.runs.shards import code_version, write_whole


def test_a_file_appears_whole_or_not_at_all(tmp_path):
    file = tmp_path / "table.csv"
    file.write_text("old")

    def torn(path):
        path.write_text("half")
        raise OSError("no space left on device")

    with pytest.raises(OSError, match="no space"):
        write_whole(file, torn)
    assert file.read_text() == "old"
    assert [path.name for path in tmp_path.iterdir()] == ["table.csv"]
    write_whole(file, lambda path: path.write_text("new"))
    assert file.read_text() == "new"


def test_the_code_version_is_a_hash():
    assert len(code_version()) == 64
    assert code_version() == code_version()

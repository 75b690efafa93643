from interp.runs.shards import code_version


def test_the_code_version_is_a_hash():
    assert len(code_version()) == 64
    assert code_version() == code_version()

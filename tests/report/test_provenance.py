from interp.report.write import provenance


def call(day, finished, command, version):
    return {
        "started": f"{day}T10:00:00+00:00",
        "finished": finished,
        "command": command,
        "versions": {"interp": version},
    }


def test_the_provenance_of_several_calls_names_each_thing_once():
    record = {
        "history": [
            call("2026-11-21", "2026-11-22T01:00:00+00:00", "interp attribute", "0.1.0"),
            call("2026-11-20", None, "interp attribute", "0.1.0"),
            call("2026-11-21", None, None, "0.2.0"),
        ]
    }
    found = provenance(record)
    assert found.measured == "2026-11-20 to 2026-11-22"
    assert found.versions == ("0.1.0", "0.2.0")
    assert found.commands == ("interp attribute",)
    assert "version = {0.2.0}" in found.bibtex
    assert "year = {2026}" in found.bibtex


def test_one_day_is_named_once_and_a_record_without_calls_has_no_provenance():
    found = provenance({"history": [call("2026-11-20", None, None, "0.1.0")]})
    assert (found.measured, found.commands) == ("2026-11-20", ())
    assert provenance({}) is None

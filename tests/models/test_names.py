import pytest
from huggingface_hub import constants

import interp
from interp.errors import UserError
from interp.jobs import found_models
from interp.models import resolve
from interp.models.loading import Loading, canonical_name
from interp.models.resolve import locate


def test_all_spellings_of_a_folder_are_one_name(saved, monkeypatch):
    monkeypatch.chdir(saved.parent)
    plain = saved.name
    for spelling in (plain, f"{plain}/", f"./{plain}", f"{plain}//"):
        assert canonical_name(spelling) == plain
        model = interp.load_model(spelling, device="cpu")
        assert (model.name, model.source["name"]) == (plain, plain)


@pytest.mark.parametrize(
    "name", ["org/model", "organism/llama-deep", "", "x" * 300, "a\0b", "\udce9"]
)
def test_other_names_stay(name):
    assert canonical_name(name) == name


def test_two_spellings_are_one_model(saved):
    with pytest.raises(UserError, match="is given twice"):
        found_models([str(saved), f"{saved}/"], Loading())


@pytest.mark.parametrize("name", ["llama-shallow", "lama-shallow", "llama_shallow"])
def test_an_organism_is_recognized_without_its_prefix(name, no_hub):
    with pytest.raises(UserError, match=r"did you mean organism/llama-shallow\?"):
        locate(name, None)


def test_the_nearest_organism_is_named():
    with pytest.raises(UserError, match=r"did you mean organism/gemma2\?"):
        locate("organism/gemma-2", None)


def test_the_first_part_of_a_name_is_enough_for_a_suggestion():
    with pytest.raises(UserError, match=r"no packaged organism .*did you mean organism/llama-"):
        locate("organism/lama", None)


@pytest.fixture
def no_hub(monkeypatch):
    """A hub that must not be asked."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(resolve, "get_hf_file_metadata", lambda *_, **__: pytest.fail("asked"))


@pytest.mark.parametrize("name", ["organism/llama-shallow", "FOLDER"])
def test_what_is_here_has_no_revisions(name, saved):
    with pytest.raises(UserError, match="revision 'main' was given"):
        locate(str(saved) if name == "FOLDER" else name, "main")


@pytest.mark.parametrize("name", ["x" * 300, "a\0b", "\udce9", "a b/c", "--x"])
def test_names_that_the_hub_cannot_have_are_refused(name, no_hub):
    with pytest.raises(UserError, match="no model folder"):
        locate(name, None)


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    asked = []

    def unreachable(url, *, timeout):
        asked.append(timeout)
        raise ConnectionError("no route to host")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(resolve, "get_hf_file_metadata", unreachable)
    with pytest.raises(UserError, match=r"the hub cannot be asked \(no route to host\)"):
        locate("nobody/nothing-here", None)
    assert asked == [resolve.HUB_TIMEOUT]


def test_offline_nothing_is_asked(no_hub, monkeypatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match="HF_HUB_OFFLINE is set"):
        locate("nobody/nothing-here", None)


def test_what_is_cached_is_not_asked_for(no_hub, monkeypatch):
    monkeypatch.setattr(resolve, "try_to_load_from_cache", lambda *_, **__: "/cache/config.json")
    assert locate("org/model", "v1").source["revision"] == "v1"

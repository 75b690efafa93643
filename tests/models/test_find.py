import json
import shutil

import pytest
import torch
from huggingface_hub import constants
from safetensors.torch import save_file
from transformers import AutoConfig

from interp.errors import UserError
from interp.models.adapters import SETTINGS
from interp.models.find import HUB_TIMEOUT, resolve
from interp.models.load import downloaded_weights
from interp.models.names import canonical_name, chosen
from tests.models.conftest import configure, load, refused
from tests.support.hub import COMMIT, cached
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level


def test_all_spellings_of_a_folder_are_one_name(saved, monkeypatch):
    monkeypatch.chdir(saved.parent)
    plain = saved.name
    for spelling in (plain, f"{plain}/", f"./{plain}", f"{plain}//"):
        assert canonical_name(spelling) == plain
        model = load(spelling)
        assert (model.name, model.source["name"]) == (plain, str(saved))


@pytest.mark.parametrize(
    "name", ["org/model", "organism/llama-deep", "", "x" * 300, "a\0b", "\udce9"]
)
def test_other_names_stay(name):
    assert canonical_name(name) == name


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, "organism/llama-shallow") for name in ("llama-shallow", "lama-shallow")),
        ("llama_shallow", "organism/llama-shallow"),
        ("organism/gemma-2", "organism/gemma2"),
        ("organism/lama", "organism/llama-"),  # the first part of a name is enough
    ],
)
def test_the_nearest_organism_is_named(name, words, no_hub):
    with pytest.raises(UserError, match=rf"'{name}'.*{words}"):
        resolve(name, None)


def test_a_graft_is_found_by_its_name_and_a_misspelled_one_is_told(no_hub):
    location, source = resolve("graft/mixture-50", None)
    assert source == {"kind": "graft", "name": "graft/mixture-50"}
    assert (location / SETTINGS).is_file()
    assert canonical_name("graft/mixture-50") == "graft/mixture-50"
    with pytest.raises(UserError, match=r"no packaged graft .*did you mean graft/mixture-50\?"):
        resolve("graft/mixture", None)
    with pytest.raises(UserError, match="no packaged graft"):
        chosen("x=graft/wordings-of-all")
    with pytest.raises(UserError, match="does not apply"):
        resolve("graft/mixture-50", "main")


def test_a_graft_without_its_base_or_with_another_is_refused():
    refused("--base", "graft/mixture-50")
    refused("--base", "graft/mixture-50", base="organism/llama-shallow")


@pytest.fixture
def no_hub(monkeypatch):
    """A hub that must not be asked."""
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(
        "interp.models.find.get_hf_file_metadata", lambda *_, **__: pytest.fail("asked")
    )


@pytest.mark.parametrize("name", ["organism/llama-shallow", "FOLDER"])
def test_what_is_here_has_no_revisions(name, saved):
    with pytest.raises(UserError, match=r"revision 'main'.*'.+'"):
        resolve(str(saved) if name == "FOLDER" else name, "main")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *(
            (name, r"model folder '.+'; .*config\.json.*GGUF")
            for name in ("x" * 300, "a\0b", "\udce9", "a b/c", "--x")
        ),
        ("org/tuned=./models/tuned", r'before "=" has no slash'),
    ],
)
def test_names_that_the_hub_cannot_have_are_refused(name, words, no_hub):
    with pytest.raises(UserError, match=words):
        resolve(name, None)


def test_a_hub_that_cannot_be_reached_is_asked_once(monkeypatch):
    asked = []

    def unreachable(url, *, timeout):
        asked.append(timeout)
        raise ConnectionError("no route to host")

    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr("interp.models.find.get_hf_file_metadata", unreachable)
    with pytest.raises(UserError, match=r"'nobody/nothing-here'.*route"):
        resolve("nobody/nothing-here", None)
    assert asked == [HUB_TIMEOUT]


def test_offline_nothing_is_asked_nor_for_what_is_cached(no_hub, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(constants, "HF_HUB_OFFLINE", True)
        with pytest.raises(UserError, match=r"'nobody/nothing-here'.*HF_HUB_OFFLINE"):
            resolve("nobody/nothing-here", None)
    monkeypatch.setattr(
        "interp.models.find.try_to_load_from_cache", lambda *_, **__: "/cache/config.json"
    )
    assert resolve("org/model", "v1")[1]["revision"] == "v1"


@pytest.fixture
def snapshot(tmp_path, monkeypatch):
    """The folder of the model org/tiny in a cache."""
    return cached(make_tiny("llama", byte_level()), tmp_path, monkeypatch)


def test_a_cached_model_loads_and_its_commit_is_on_record(snapshot):
    model = load("org/tiny")
    where = {"kind": "hub", "name": "org/tiny", "revision": "main"}
    assert model.source == {**where, "commit": COMMIT}
    expected = make_tiny("llama", byte_level()).hf.state_dict()
    for name, value in model.hf.state_dict().items():
        torch.testing.assert_close(value, expected[name])


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"num_hidden_layers": 10**5}, r"num_hidden_layers = 100000\b.*\b21 tensors"),
        ({"num_labels": 10**8}, r"num_labels = 1e\+08.*1,000,000\b"),
    ],
)
def test_a_configuration_out_of_proportion_is_refused_before_it_is_built(snapshot, settings, words):
    configure(snapshot, **settings)
    refused(rf"config\.json.*{words}", "org/tiny")


def test_everything_is_read_at_the_commit_of_the_configuration(snapshot, monkeypatch):
    """Whatever is pushed while a model is loaded."""
    other = "f" * 40
    shutil.copytree(snapshot, snapshot.parent / other, symlinks=True)
    configure(snapshot.parent / other, "tokenizer_config.json", eos_token="<s>")
    original = AutoConfig.from_pretrained

    def pushed(*arguments, **options):
        config = original(*arguments, **options)
        (snapshot.parent.parent / "refs" / "main").write_text(other)
        return config

    monkeypatch.setattr(AutoConfig, "from_pretrained", pushed)
    model = load("org/tiny")
    assert model.source["commit"] == COMMIT
    assert model.tokenizer.eos_token == byte_level().eos_token


def test_the_files_of_an_index_are_found(snapshot):
    weights = snapshot / "model.safetensors"
    state = make_tiny("llama", byte_level()).hf.state_dict()
    weights.unlink()
    save_file(state, snapshot / "part-1.safetensors", metadata={"format": "pt"})
    index = {"metadata": {}, "weight_map": dict.fromkeys(state, "part-1.safetensors")}
    (snapshot / "model.safetensors.index.json").write_text(json.dumps(index))
    assert downloaded_weights("org/tiny", COMMIT, allow_pickle=False) == snapshot
    assert load("org/tiny").source["commit"] == COMMIT


def test_a_cache_without_weights_or_blobs_is_refused(snapshot):
    (snapshot / "model.safetensors").unlink()
    assert downloaded_weights("org/tiny", COMMIT, allow_pickle=False) is None
    refused(r"'org/tiny'.*weights: .*model\.safetensors", "org/tiny")
    (snapshot.parent.parent / "blobs" / "chat_template.jinja").unlink()
    refused(r"chat_template\.jinja.*org/tiny.*link", "org/tiny")


def test_a_file_that_is_no_gguf_is_not_looked_for_on_the_hub(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "weights.bin").write_bytes(b"x")
    with pytest.raises(UserError, match=r"'weights.bin'.*NAME\.gguf"):
        resolve("weights.bin", None)

"""Hidden states in the format that vLLM documents, against interp's own and transformers'."""

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

import interp
from interp.errors import UserError
from interp.export.vllm import read_hidden_states, token_ids, unloaded
from interp.models.organisms import DEFAULT
from interp_probes.linear.measure import of_vectors
from interp_probes.linear.probes import linear_probes
from interp_probes.specs import Residuals

LAYERS = (0, 1, 3)
"""The embedding, the stream after the first layer and after the last one."""


@pytest.fixture(scope="module")
def prompts():
    return interp.load_prompts(limit=24)


@pytest.fixture(scope="module")
def states(organism, prompts):
    """What vLLM would write for each prompt, from transformers: (token, layer, size).

    transformers' last hidden states come after the final norm, so a hook reads the last layer.
    """
    found = {}
    for name, ids in token_ids(organism, prompts).items():
        kept = []
        hook = organism.hf.model.layers[-1].register_forward_hook(
            lambda module, inputs, output, kept=kept: kept.append(
                output[0] if isinstance(output, tuple) else output
            )
        )
        with torch.inference_mode():
            output = organism.hf(torch.tensor([ids]), output_hidden_states=True)
        hook.remove()
        streams = [
            output.hidden_states[0][0],
            output.hidden_states[1][0],
            kept[0].reshape(len(ids), -1),
        ]
        found[name] = torch.tensor(ids), torch.stack(streams, dim=1).clone()
    return found


@pytest.fixture
def folder(states, tmp_path):
    """vLLM's folder: files named by request, with the lock files that it leaves."""
    for number, (ids, hidden) in enumerate(states.values()):
        save_file({"token_ids": ids, "hidden_states": hidden}, tmp_path / f"{number}.safetensors")
        (tmp_path / f"{number}.safetensors.lock").touch()
    return tmp_path


def numbers(frame):
    frame = frame.sort_values(["prompt_id", "site", "layer", "position"])
    return np.stack(frame["vector"].to_list()), frame.drop(columns="vector").reset_index(drop=True)


def test_vectors_are_those_that_activations_measures(organism, prompts, folder):
    options = {"roles": ("premise2", "last"), "tokens": "all"}
    read = read_hidden_states(folder, unloaded(DEFAULT), prompts, layers=LAYERS, **options)
    measured = interp.activations(
        organism, prompts, sites=("resid_pre", "resid_post"), layers=(0, 2), **options
    ).table("activation_vectors")
    measured = measured[(measured["site"] == "resid_post") | (measured["layer"] == 0)]
    vectors, about = numbers(read)
    expected, places = numbers(measured)
    assert about[["prompt_id", "site", "layer", "position", "token", "role"]].equals(
        places[["prompt_id", "site", "layer", "position", "token", "role"]]
    )
    np.testing.assert_allclose(vectors, expected, atol=2e-5)


def test_probes_find_the_same_as_in_measured_residuals(organism, prompts, folder):
    measured = interp.run(Residuals(positions=("last_token",)), models=organism, prompts=prompts)
    read = of_vectors(read_hidden_states(folder, organism, prompts, layers=LAYERS, roles=("last",)))
    assert sorted(read["layer"].unique()) == list(LAYERS)
    answers = measured.table("answers")
    own = linear_probes(read, prompts.to_frame(), answers)
    everything = linear_probes(measured.table("residuals"), prompts.to_frame(), answers)
    same = everything[everything["layer"].isin(LAYERS)].set_index(["layer", "prompts"])
    own = own.set_index(["layer", "prompts"])
    assert not own.empty
    np.testing.assert_allclose(own["accuracy"], same["accuracy"].reindex(own.index))


def test_later_tokens_do_not_matter_and_bfloat16_becomes_fp32(organism, prompts, states, tmp_path):
    one = prompts[:1]
    ids, hidden = states[one[0].id]
    longer = {
        "token_ids": torch.cat([ids, ids[:3]]),
        "hidden_states": torch.cat([hidden, hidden[:3]]),
    }
    save_file(longer, tmp_path / "a.safetensors")
    read = read_hidden_states(tmp_path, organism, one, layers=LAYERS)
    assert read["position"].unique() == [len(ids) - 1]
    np.testing.assert_array_equal(read["vector"].iloc[-1], hidden[-1, -1].numpy())
    half = hidden.to(torch.bfloat16)
    save_file({"token_ids": ids, "hidden_states": half}, tmp_path / "a.safetensors")
    read = read_hidden_states(tmp_path, organism, one, layers=LAYERS)
    np.testing.assert_array_equal(read["vector"].iloc[0], half[-1, 0].float().numpy())


@pytest.fixture
def twice(prompts, states, tmp_path):
    """Writes a prompt's states twice, the second time altered; gives the folder and prompt."""

    def written(change):
        ids, hidden = states[prompts[0].id]
        for name, own in (("a", hidden), ("b", change(hidden))):
            file = tmp_path / f"{name}.safetensors"
            save_file({"token_ids": ids, "hidden_states": own.contiguous()}, file)
        return tmp_path, prompts[:1]

    return written


@pytest.mark.parametrize("change", [lambda x: x + 7, lambda x: -x, lambda x: x.flip(0)])
def test_two_runs_in_one_folder_are_refused(organism, twice, change):
    folder, one = twice(change)
    with pytest.raises(UserError, match=r"\ba\.safetensors.*\bb\.safetensors"):
        read_hidden_states(folder, organism, one, layers=LAYERS)


def test_a_second_file_may_differ_by_rounding(organism, twice):
    folder, one = twice(lambda x: x.to(torch.bfloat16))
    assert len(read_hidden_states(folder, organism, one, layers=LAYERS))


@pytest.mark.usefixtures("unchecked_types")
@pytest.mark.parametrize("options", [{"sites": ["z"]}, {"layers": None}, {"layers": [[0]]}])
def test_options_that_do_not_apply_are_refused(organism, prompts, folder, options):
    with pytest.raises(UserError):
        read_hidden_states(folder, organism, prompts, **{"layers": LAYERS} | options)


def damaged(folder, **changes):
    tensors = {"token_ids": torch.arange(4), "hidden_states": torch.zeros(4, 3, 192)} | changes
    save_file(
        {name: tensor for name, tensor in tensors.items() if tensor is not None},
        folder / "x.safetensors",
    )


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"token_ids": None}, r"hidden_states; .*token_ids \(token,\)"),
        ({"token_ids": torch.zeros(4)}, r"hidden_states, token_ids; .*\(token, layer, size\)"),
        ({"hidden_states": torch.zeros(4, 2, 192)}, r"\(4, 2, 192\).*\(4, 3, 192\)"),
        ({"hidden_states": torch.full((4, 3, 192), torch.nan)}, r"\bx\.safetensors.*finite"),
        (
            {"hidden_states": torch.full((4, 3, 192), 1e300, dtype=torch.float64)},
            r"\bx\.safetensors.*finite",
        ),
        *(
            ({"hidden_states": torch.zeros(4, 3, 192).to(kind)}, str(kind).removeprefix("torch."))
            for kind in (torch.complex64, torch.bool, torch.uint64, torch.float8_e4m3fn)
        ),
        *(
            ({"token_ids": torch.zeros(4).to(kind)}, "token_ids")
            for kind in (torch.bool, torch.complex64, torch.uint8)
        ),
        ({}, r"\b48\b.*\b48\b.*`token_ids`"),
    ],
)
def test_files_that_do_not_fit_are_refused(organism, prompts, tmp_path, changes, message):
    damaged(tmp_path, **changes)
    with pytest.raises(UserError, match=message):
        read_hidden_states(tmp_path, organism, prompts, layers=LAYERS)


def test_other_damage_is_refused(organism, prompts, tmp_path):
    with pytest.raises(UserError, match=r"\.safetensors.*shared_storage_path"):
        read_hidden_states(tmp_path, organism, prompts, layers=LAYERS)
    for layers in ((), (1, 1), (3, 1), (4,), (-1,)):
        with pytest.raises(
            UserError, match=r"layer ids \(.*\).*\b0\b.*\b3\b.*organism/llama-shallow"
        ):
            read_hidden_states(tmp_path, organism, prompts, layers=layers)
    (tmp_path / "x.safetensors").write_bytes(b"\x00" * 20)
    with pytest.raises(UserError, match=r"\bx\.safetensors.*: .*header"):
        read_hidden_states(tmp_path, organism, prompts, layers=LAYERS)
    (tmp_path / "x.safetensors").unlink()
    (tmp_path / "x.safetensors").symlink_to("/etc/hostname")
    with pytest.raises(UserError, match=r"\bx\.safetensors.*links?\b"):
        read_hidden_states(tmp_path, organism, prompts, layers=LAYERS)


def test_probes_refuse_vectors_that_are_no_single_token_of_the_stream(organism, prompts):
    few = prompts[:2]
    with pytest.raises(UserError, match=r"resid_pre.*layer 0\b.*resid_post"):
        of_vectors(interp.activations(organism, few, sites=("z",)).table("activation_vectors"))
    with pytest.raises(UserError, match="last token"):
        mean = interp.activations(organism, few, roles=("premise1",), tokens="mean")
        of_vectors(mean.table("activation_vectors"))

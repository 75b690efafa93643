import pytest
from tokenizers import Regex, Tokenizer, models, pre_tokenizers

from interp.models.checkpoint import StoredTensor
from interp.models.gguf_header import Header
from interp.models.gguf_tokenizer import SPLITS, build_tokenizer, end_tokens
from tests.models.test_gguf import vocabulary
from tests.support.tokenizers import byte_level

TEXT = 'IT\'S 12345 done.\n\nIf x="Yes"\n then  (a/b)\t漢字 ok'
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
QWEN2 = LLAMA3.replace("{1,3}", "")


def header(tokens, architecture="llama", **settings):
    own = {f"tokenizer.ggml.{key}": value for key, value in settings.items()}
    own["general.architecture"] = architecture
    own["tokenizer.ggml.tokens"] = tokens
    return Header(own, {"token_embd.weight": StoredTensor((len(tokens), 8), "F32")}, {})


def of_bytes(*special, pre="gpt-2", **settings):
    """A header with the tiny byte-level vocabulary and further tokens of given types."""
    tokens, merges = vocabulary(byte_level())
    types = [1] * len(tokens) + [kind for _, kind in special]
    tokens += [token for token, _ in special]
    return header(tokens, model="gpt2", pre=pre, merges=merges, **{"token_type": types, **settings})


@pytest.mark.parametrize(
    "token", ["<｜User｜>", "<|x|>", "a b", "\n\n", "é漢", "[unused7]", "▁<EOT>", "😀"]
)
@pytest.mark.parametrize("kind", [1, 2, 3, 4, 5, 6])
def test_every_token_has_its_own_id(token, kind):
    made = of_bytes((token, kind), ("<last>", 3))
    tokenizer = build_tokenizer(made)
    tokens = made.settings["tokenizer.ggml.tokens"]
    assert tokenizer.get_vocab() == {token: index for index, token in enumerate(tokens)}
    found = tokenizer(f"Yes{token}No")["input_ids"]
    assert (len(tokens) - 2 in found) == (kind in (2, 3, 4))


def test_special_tokens_are_those_of_the_file():
    made = of_bytes(("<｜begin｜>", 3), ("<｜end｜>", 3), ("<｜turn｜>", 3), ("<eom>", 3))
    bos = len(made.settings["tokenizer.ggml.tokens"]) - 4
    ids = {"bos": bos, "eos": bos + 1, "padding": bos + 1, "eot": bos + 2, "eom": bos + 3}
    made.settings.update({f"tokenizer.ggml.{name}_token_id": id_ for name, id_ in ids.items()})
    tokenizer = build_tokenizer(made)
    found = (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.pad_token_id)
    assert found == (bos, bos + 1, bos + 1)
    assert end_tokens(made) == [bos + 1, bos + 2, bos + 3]
    assert tokenizer("Yes")["input_ids"][0] != bos


@pytest.mark.parametrize(
    ("token", "kind", "ends"),
    [
        *(("<|im_end|>", 3, True), ("<|im_end|>", 4, True), ("<|eot_id|>", 3, True)),
        *(("<|im_end|>", 1, False), ("<|im_start|>", 3, False)),
    ],
)
def test_known_ends_of_turns_need_no_setting(token, kind, ends):
    made = of_bytes(("<last>", 3), (token, kind))
    last = len(made.settings["tokenizer.ggml.tokens"]) - 1
    made.settings["tokenizer.ggml.eos_token_id"] = last - 1
    assert end_tokens(made) == [last - 1, last][: 1 + ends]


def reference(rules, **options):
    """The tiny vocabulary with the tokenizers' own parts in place of the table's expressions."""
    tokens, merges = vocabulary(byte_level())
    model = models.BPE(
        {token: index for index, token in enumerate(tokens)},
        [tuple(merge.split(" ")) for merge in merges],
        **options,
    )
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(rules)
    return tokenizer


def cut(expression):
    return [
        pre_tokenizers.Split(Regex(expression), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    ]


GPT2 = pre_tokenizers.ByteLevel(add_prefix_space=False)


@pytest.mark.parametrize(
    ("pre", "rules", "options"),
    [
        ("gpt-2", [GPT2], {}),
        ("olmo", [GPT2], {}),
        ("smollm", [pre_tokenizers.Digits(individual_digits=True), GPT2], {}),
        ("command-r", [pre_tokenizers.Digits(individual_digits=True), GPT2], {}),
        ("glm4", cut(LLAMA3), {}),
        ("llama-bpe", cut(LLAMA3), {"ignore_merges": True}),
        ("qwen2", cut(QWEN2), {}),
        ("stablelm2", cut(QWEN2), {}),
    ],
)
def test_text_is_cut_by_the_rule_that_the_file_names(pre, rules, options):
    own = build_tokenizer(of_bytes(pre=pre)).backend_tokenizer
    expected = reference(rules, **options)
    assert own.pre_tokenizer.pre_tokenize_str(TEXT) == expected.pre_tokenizer.pre_tokenize_str(TEXT)
    assert own.encode(TEXT, add_special_tokens=False).ids == expected.encode(TEXT).ids


def test_every_rule_keeps_all_characters():
    for pre in SPLITS:
        tokenizer = build_tokenizer(of_bytes(pre=pre))
        ids = tokenizer(TEXT, add_special_tokens=False)["input_ids"]
        assert tokenizer.decode(ids) == TEXT


@pytest.mark.parametrize(("pre", "adds"), [("llama-bpe", True), ("tekken", True), ("qwen2", False)])
def test_the_first_token_follows_the_rule_unless_the_file_says_otherwise(pre, adds):
    first = of_bytes(pre=pre, bos_token_id=5)
    assert (build_tokenizer(first)("Yes")["input_ids"][0] == 5) == adds
    other = of_bytes(pre=pre, bos_token_id=5, add_bos_token=not adds)
    assert (build_tokenizer(other)("Yes")["input_ids"][0] == 5) != adds


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        *(
            ({"pre": pre}, rf"tokenizer\.ggml\.pre is {pre}\b")
            for pre in (None, "default", "falcon", "kimi-k2", "seed-coder", "bloom", "nosuch")
        ),
        ({"token_type": [1]}, r"token_type has 1 elements"),
        ({"scores": [0.5, 1.0]}, r"scores has 2 elements"),
        ({"bos_token_id": 10**6}, r"bos_token_id is 1,000,000"),
        ({"eot_token_id": 10**6}, r"eot_token_id is 1,000,000"),
        ({"eos_token_id": "</s>"}, r"eos_token_id: "),
        ({"merges": ["a"]}, "merge 'a'"),
        ({"merges": ["q zzz"]}, "merge 'q zzz'"),
        ({"merges": ["a b"] * 5000}, "5,000 merges"),
        ({"tokens": 7}, "tokens: "),
        ({"tokens": ["<x>", "<y>", "<x>"], "merges": None, "token_type": None}, "'<x>' twice"),
        ({"model": "bert"}, "model: "),
        ({"model": "t5"}, "model: "),
        ({"add_space_prefix": True}, "add_space_prefix"),
        ({"add_eos_token": True}, "eos_token_id"),
    ],
)
def test_parts_that_do_not_fit_together_are_refused(settings, named):
    made = of_bytes()
    made.settings.update({f"tokenizer.ggml.{key}": value for key, value in settings.items()})
    with pytest.raises(ValueError, match=named):
        build_tokenizer(made)


PIECES = [*("<unk>", "<s>", "</s>"), *(f"<0x{byte:02X}>" for byte in range(256))]
PIECES += ["▁", *dict.fromkeys("YesNo"), "Ye", "▁Y", "Yes", "▁Yes", "No", "▁No"]


def pieces(architecture="llama", **settings):
    types = [2, 3, 3] + [6] * 256 + [1] * (len(PIECES) - 259)
    scores = [-float(index) for index in range(len(PIECES))]
    return header(PIECES, architecture, model="llama", token_type=types, scores=scores, **settings)


@pytest.mark.parametrize(("prefix", "first"), [(None, "▁Yes"), (True, "▁Yes"), (False, "Yes")])
def test_a_space_before_a_text_is_left_out_if_the_file_says_so(prefix, first):
    settings = {} if prefix is None else {"add_space_prefix": prefix}
    tokenizer = build_tokenizer(pieces(**settings))
    ids = tokenizer("Yes No\n")["input_ids"]
    assert tokenizer.convert_ids_to_tokens(ids) == ["<s>", first, "▁No", "<0x0A>"]
    assert tokenizer.decode(ids, skip_special_tokens=True) == "Yes No\n"
    assert (tokenizer.bos_token_id, tokenizer.eos_token_id, tokenizer.unk_token_id) == (1, 2, 0)


@pytest.mark.parametrize(
    ("architecture", "expected"),
    [("gemma3", ["Yes", "</s>", "<0x0A>", "No"]), ("phi3", ["▁Yes", "</s>", "▁No"])],
)
def test_other_pieces_are_built_as_their_own_tokenizers(architecture, expected):
    tokenizer = build_tokenizer(pieces(architecture))
    said = tokenizer("Yes</s>\nNo", add_special_tokens=False)["input_ids"]
    assert tokenizer.convert_ids_to_tokens(said) == expected

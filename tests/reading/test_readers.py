"""Classifiers and text-to-text models are measured as plain transformers and captum would."""

import copy
import dataclasses
import json
from functools import partial

import numpy as np
import pytest
import torch
from captum.attr import InputXGradient, IntegratedGradients, LayerGradientXActivation, Saliency
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast

import interp
from interp.errors import ModelError, UserError
from interp.measurements.specs import Attribute, Effects, Evaluate, Generate, Patch, SoftScore
from interp.measuring.core import bind
from interp.models.kinds import CAUSAL, CLASSIFIER, TEXT_TO_TEXT
from interp.prompts.answers import AnswerOption, Choice
from interp.reading.outputs import decoder_prefix, fixed_answers, target_tokens
from interp.reading.readers import reader_of
from interp.reading.tokens import pad, tokenize
from tests.support import other_kinds, peers
from tests.support.answers import accepts, with_options
from tests.support.other_kinds import CLASSES, CLASSIFIERS, classifier, text_to_text
from tests.support.prompts import some_prompts
from tests.support.tiny import tiny_model

TOLERANCE = {"rtol": 0, "atol": 1e-5}
KINDS = [*CLASSIFIERS, *other_kinds.TEXT_TO_TEXT]
DECODER = {"t5": [0], "bart": [2, 1]}
"""What the decoder reads before its answer: <pad>; </s> and <s>."""


def model_of(kind, **options):
    make = text_to_text if kind in other_kinds.TEXT_TO_TEXT else classifier
    return make(kind, **options)


def plain(kind, model, prompt, embeddings=None, **options):
    """transformers' own forward pass over one prompt, or over rows of its embeddings."""
    inputs = {"input_ids": torch.tensor([model.tokenizer(prompt.text)["input_ids"]])}
    if embeddings is not None:
        inputs = {"inputs_embeds": embeddings}
    if kind in DECODER:
        rows = 1 if embeddings is None else len(embeddings)
        options["decoder_input_ids"] = torch.tensor([DECODER[kind]] * rows)
    return model.hf(**inputs, **options)


def plain_logits(kind, model, prompt, embeddings=None):
    logits = plain(kind, model, prompt, embeddings).logits
    return logits[:, -1] if kind in DECODER else logits


def log_odds(kind, model, prompt, answer, embeddings=None):
    """log p - log (1 - p) of an answer, the target of attributions."""
    probability = plain_logits(kind, model, prompt, embeddings).double().softmax(-1)[:, answer]
    return torch.logit(probability).float()


def embedded(model, prompt):
    ids = torch.tensor([model.tokenizer(prompt.text)["input_ids"]])
    return model.hf.get_input_embeddings()(ids).detach()


def shares(attributions):
    return attributions / attributions.sum()


def scores_of(model, prompts, method):
    """Shares of the tokens of each prompt by one method, and the answers that were predicted."""
    result = interp.attribute(model, prompts, methods=[method], keep_tokens=True)
    scores = {
        name: torch.tensor(own.sort_values("position")["share"].to_numpy(dtype="float32"))
        for name, own in result.token_shares().groupby("prompt_id")
    }
    return scores, result.answers.set_index("prompt_id")["predicted_token_id"].to_dict()


@pytest.fixture(scope="module")
def questions():
    """Prompts whose answers are classes of the classifiers."""
    yes, no = AnswerOption("Yes", ("Yes", "YES")), AnswerOption("No", ("No", "NO"))
    return [
        dataclasses.replace(p, answer=Choice.between(yes, no, gold=accepts(p)))
        for p in some_prompts(12)
    ]


@pytest.fixture(scope="module")
def few(questions):
    return questions[:6]


def test_kinds_are_told_apart():
    assert tiny_model("llama").kind is CAUSAL
    assert all(classifier(kind).kind is CLASSIFIER for kind in CLASSIFIERS)
    assert all(text_to_text(kind).kind is TEXT_TO_TEXT for kind in other_kinds.TEXT_TO_TEXT)


@pytest.mark.parametrize("kind", [*KINDS, other_kinds.UNMAPPED_CLASSIFIER])
def test_answers_are_those_of_plain_transformers(kind, questions):
    """Padded batches against one prompt at a time, tokenized by the tokenizer alone.

    In fp64: T5's rounding in fp32 is up to 1.1e-5 on long prompts.
    """
    model = model_of(kind)
    model = dataclasses.replace(model, hf=copy.deepcopy(model.hf).double())
    answers = with_options(interp.evaluate(model, questions))
    assert len({len(prompt) for prompt in tokenize(model, questions)}) > 1  # so there is padding
    with torch.no_grad():
        expected = torch.cat([plain_logits(kind, model, p).softmax(-1) for p in questions]).float()
    assert answers["predicted_token_id"].tolist() == expected.argmax(-1).tolist()
    got = torch.tensor(answers["predicted_probability"].to_numpy(dtype="float32"))
    torch.testing.assert_close(got, expected.max(-1).values, **TOLERANCE)
    if model.kind is CLASSIFIER:
        positive = torch.tensor(answers["positive_probability"].to_numpy(dtype="float32"))
        torch.testing.assert_close(positive, expected[:, CLASSES.index("YES")], **TOLERANCE)
        names = [CLASSES[index] for index in answers["predicted_token_id"]]
        assert answers["predicted_token"].tolist() == names


@pytest.mark.parametrize("kind", KINDS)
def test_nothing_is_rounded_to_single_precision_in_fp64(kind, few):
    model = model_of(kind)
    model = dataclasses.replace(model, hf=copy.deepcopy(model.hf).double())
    got = interp.evaluate(model, few, batch_tokens=1).table("answers")["predicted_probability"]
    with torch.no_grad():
        expected = [plain_logits(kind, model, p).softmax(-1).max().item() for p in few]
    assert got.tolist() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_input_gradients_are_captums(kind, few):
    model = model_of(kind)
    scores, predicted = scores_of(model, few, "input_gradient")
    for prompt in few:
        target = partial(log_odds, kind, model, prompt, predicted[prompt.id])
        gradient = Saliency(target).attribute(embedded(model, prompt).requires_grad_(), abs=False)
        expected = shares(gradient[0].norm(dim=-1))
        torch.testing.assert_close(scores[prompt.id], expected, **TOLERANCE)


@pytest.fixture
def _peers(monkeypatch):
    peers.install(monkeypatch)


@pytest.mark.parametrize("kind", ["roberta", "t5"])
def test_input_times_gradient_is_captums_at_the_layer_of_embeddings(kind, few, _peers):
    """From token ids, by which a model counts its positions itself."""
    model = model_of(kind)
    scores, predicted = scores_of(model, few, "captum:input_x_gradient")
    for prompt in few:
        ids = torch.tensor([model.tokenizer(prompt.text)["input_ids"]])

        def target(ids, prompt=prompt):
            return log_odds(kind, model, prompt, predicted[prompt.id])

        layer = LayerGradientXActivation(target, embeddings_read(kind, model))
        expected = shares(layer.attribute(ids)[0].sum(-1).abs())
        torch.testing.assert_close(scores[prompt.id], expected.detach(), **TOLERANCE)
        again = InputXGradient(partial(log_odds, kind, model, prompt, predicted[prompt.id]))
        attributions = again.attribute(embedded(model, prompt).requires_grad_())
        torch.testing.assert_close(
            scores[prompt.id], shares(attributions[0].sum(-1).abs()).detach(), **TOLERANCE
        )


def embeddings_read(kind, model):
    return model.hf.encoder.embed_tokens if kind == "t5" else model.hf.get_input_embeddings()


@pytest.mark.quick(1)
@pytest.mark.parametrize("kind", ["roberta", "t5"])
def test_integrated_gradients_are_captums(kind, few, _peers):
    model = model_of(kind)
    scores, predicted = scores_of(model, few[:3], "captum:integrated_gradients")
    mean = model.hf.get_input_embeddings().weight.detach().double().mean(0).float()
    for prompt in few[:3]:
        own = embedded(model, prompt)
        target = partial(log_odds, kind, model, prompt, predicted[prompt.id])
        attributions = IntegratedGradients(target).attribute(
            own, torch.zeros_like(own) + mean, n_steps=200, internal_batch_size=50
        )
        expected = shares(attributions[0].sum(-1).abs().float())
        torch.testing.assert_close(scores[prompt.id], expected, **TOLERANCE)


@pytest.mark.quick(5)
@pytest.mark.parametrize("attn", ["sdpa", "eager"])
@pytest.mark.parametrize("kind", KINDS)
def test_attention_is_that_of_the_token_that_answers(kind, attn, few):
    """The first token's of an encoder, which its head reads; the decoder's last to the encoder."""
    scores, _ = scores_of(model_of(kind, attn=attn), few, "attention")
    eager = model_of(kind, attn="eager")
    for prompt in few:
        with torch.no_grad():
            output = plain(kind, eager, prompt, output_attentions=True)
        if kind in DECODER:
            rows = [weights[0, :, -1].mean(0) for weights in output.cross_attentions]
        else:
            rows = [weights[0, :, 0].mean(0) for weights in output.attentions]
        torch.testing.assert_close(scores[prompt.id], torch.stack(rows).mean(0), **TOLERANCE)


def test_an_encoder_whose_head_reads_an_unknown_token_tells_no_attention(few):
    model = classifier(other_kinds.UNMAPPED_CLASSIFIER)
    with pytest.raises(UserError, match=r"deberta-v2\b.*bert, roberta.*--methods input_gradient"):
        interp.attribute(model, few, methods=["attention"])
    table = interp.attribute(model, few, methods=["input_gradient"]).segment_scores
    assert (table["error"] == "").all()


@pytest.mark.parametrize("kind", KINDS)
def test_padding_stands_on_the_right_and_the_end_is_read(kind, questions):
    model = model_of(kind)
    tokenized = tokenize(model, questions)
    batch = pad(model, tokenized)
    for row, (prompt, own) in enumerate(zip(questions, tokenized, strict=True)):
        assert list(own.token_ids) == model.tokenizer(prompt.text)["input_ids"]
        assert batch.unpadded(row) == slice(len(own))
        assert batch.token_ids[row, : len(own)].tolist() == list(own.token_ids)
        assert batch.attention_mask[row].tolist()[: len(own) + 1].count(0) <= 1
        assert int(batch.attention_mask[row].sum()) == len(own)
        assert model.tokenizer.decode(own.token_ids[-1]) == "</s>"


def test_positions_that_roberta_leaves_out_are_not_counted_as_room():
    assert classifier("roberta").context_length == 255  # positions begin behind the padding's, 0
    assert classifier("bert").context_length == 256
    assert text_to_text("t5").context_length is None


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_the_answer_stands_where_generation_begins(kind, questions):
    model = text_to_text(kind)
    assert list(decoder_prefix(model)) == DECODER[kind]
    ids = torch.tensor([model.tokenizer(questions[0].text)["input_ids"]])
    forced = {"forced_bos_token_id": 1} if kind == "bart" else {}
    # Bart's last token is forced too.
    generated = model.hf.generate(ids, max_new_tokens=4, do_sample=False, num_beams=1, **forced)
    answers = interp.evaluate(model, questions[:1]).answers
    assert int(generated[0, len(DECODER[kind])]) == answers["predicted_token_id"][0]


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_an_option_counts_by_the_first_token_of_a_target(kind):
    """Where labels are shifted right, as transformers does to train, it is the next token."""
    model = text_to_text(kind)
    option = AnswerOption("Yes", ("Yes", "YES"))
    labels = [model.tokenizer(text_target=form)["input_ids"] for form in option.forms]
    place = len(DECODER[kind]) - 1
    assert list(fixed_answers(model, option)) == [tokens[place] for tokens in labels]
    for tokens in labels:
        assert [DECODER[kind][0], *tokens[:place]] == DECODER[kind]
    assert target_tokens(model, "Yes")[1][0] in fixed_answers(model, option)


def lower_case(kind, *, unknown):
    """A model whose tokenizer has words in lower case alone: others are unknown, or nothing."""
    words = ["<pad>", "<s>", "</s>", "<unk>", *"abcdefghijklmnopqrstuvwxyz .?", "yes", "no"]
    vocabulary = {word: index for index, word in enumerate(words)}
    bpe = models.BPE(vocabulary, [], unk_token="<unk>" if unknown else None, ignore_merges=True)
    tokenizer = Tokenizer(bpe)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "isolated")
    tokenizer.decoder = decoders.Fuse()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="$A </s>" if kind == "t5" else "<s> $A </s>",
        special_tokens=[("<s>", 1), ("</s>", 2)],
    )
    return dataclasses.replace(
        text_to_text(kind),
        tokenizer=PreTrainedTokenizerFast(
            tokenizer_object=tokenizer,
            bos_token="<s>",
            eos_token="</s>",
            pad_token="<pad>",
            unk_token="<unk>" if unknown else None,
        ),
    )


@pytest.mark.parametrize("unknown", [True, False])
@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_a_decoder_begins_alike_whatever_words_its_tokenizer_knows(kind, unknown, questions):
    model = lower_case(kind, unknown=unknown)
    assert not {"Yes", "Y"} & set(model.tokenizer.get_vocab())
    assert list(decoder_prefix(model)) == DECODER[kind]
    answer = Choice.between(
        AnswerOption("yes", ("yes",)), AnswerOption("no", ("no", "No")), gold=True
    )
    prompt = dataclasses.replace(questions[0], answer=answer)
    row = interp.evaluate(model, [prompt]).option_probabilities.iloc[0]
    expected = plain_logits(kind, model, prompt).detach().softmax(-1)[0]
    assert row["token_ids"].tolist() == [model.tokenizer.convert_tokens_to_ids("yes")]
    assert row["probability"] == pytest.approx(float(expected[row["token_ids"][0]]), rel=1e-5)


@pytest.mark.parametrize("kind", ["t5", "bart"])
def test_an_option_of_unknown_words_is_refused(kind):
    with pytest.raises(UserError, match=rf"'Yes'.*\b{kind}\b.*\bwords\b"):
        fixed_answers(lower_case(kind, unknown=True), AnswerOption("Yes", ("YES",)))


@pytest.mark.parametrize("kind", ["t5", "bart"])
@pytest.mark.parametrize("unknown", [True, False])
@given(text=st.text("yesno YN☃", max_size=8))
def test_a_target_is_what_the_tokenizer_adds_and_its_own_tokens(kind, unknown, text):
    model = lower_case(kind, unknown=unknown)
    opening, own = target_tokens(model, text)
    bare = model.tokenizer(text, add_special_tokens=False)["input_ids"]
    assert list(own) == bare
    if bare:
        assert [DECODER[kind][0], *opening] == DECODER[kind]


def test_a_tokenizer_that_writes_no_target_is_refused():
    model = lower_case("t5", unknown=False)
    model.tokenizer.backend_tokenizer.normalizer = normalizers.Replace(Regex("."), "")
    with pytest.raises(UserError, match=r"tokenizer.*tiny t5\b.*target"):
        decoder_prefix(model)


def test_an_option_is_a_class_by_its_name():
    model = classifier("roberta")
    assert fixed_answers(model, AnswerOption("x", ("Not-Sure", "NOT_SURE"))) == (1,)
    assert fixed_answers(model, AnswerOption("x", ("yes", "no"))) == (2, 0)
    with pytest.raises(UserError, match=r"'True'.* No, not sure, YES"):
        fixed_answers(model, AnswerOption("True", ("True", "true")))
    assert fixed_answers(tiny_model("llama"), AnswerOption("Yes", ("Yes",))) is None


def test_options_of_one_class_are_refused(few):
    both = AnswerOption("Yes", ("Yes",)), AnswerOption("yes", ("yes",))
    same = dataclasses.replace(few[0], answer=Choice.between(*both, gold=True))
    with pytest.raises(UserError, match=r"'Yes'.*'yes'.*'YES'"):
        interp.evaluate(classifier("roberta"), [same])


@pytest.mark.parametrize("kind", ["roberta", "t5", "bart"])
def test_models_are_loaded_from_a_folder_as_what_they_are(kind, tmp_path, few):
    model = model_of(kind)
    copy.deepcopy(model.hf).save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    loaded = interp.load_model(str(tmp_path), device="cpu")
    assert loaded.kind is model.kind
    one, other = (with_options(interp.evaluate(own, few)) for own in (model, loaded))
    np.testing.assert_array_equal(one["positive_probability"], other["positive_probability"])


def test_a_classifier_without_its_head_is_refused(tmp_path):
    model = classifier("roberta")
    copy.deepcopy(model.hf).roberta.save_pretrained(tmp_path)
    model.tokenizer.save_pretrained(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    config["architectures"] = ["RobertaForSequenceClassification"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    with pytest.raises(UserError, match=r"classifier\.dense\.bias.*random"):
        interp.load_model(str(tmp_path), device="cpu")


def test_models_that_answer_nothing_are_refused():
    from transformers import GPT2ForSequenceClassification, RobertaForMaskedLM, RobertaModel

    model = classifier("roberta")
    with pytest.raises(UserError, match=r"RobertaModel.*sequence classifier"):
        interp.Model("headless", RobertaModel(model.hf.config), model.tokenizer)
    with pytest.raises(UserError, match=r"RobertaForMaskedLM.*sequence classifier"):
        interp.Model("masked", RobertaForMaskedLM(model.hf.config), model.tokenizer)
    gpt2 = tiny_model("gpt2")
    with pytest.raises(UserError, match=r"GPT2ForSequenceClassification.*decoder.*BERT"):
        interp.Model("gpt2", GPT2ForSequenceClassification(gpt2.hf.config), gpt2.tokenizer)


@pytest.mark.parametrize("kind", ["roberta", "t5"])
def test_what_only_causal_models_have_is_refused(kind, few):
    with pytest.raises(UserError, match="causal language models"):
        bind(SoftScore(), model_of(kind))(few)


@pytest.mark.parametrize("kind", ["roberta", "t5"])
def test_what_libraries_cannot_do_for_a_kind_is_refused(kind, few):
    model = model_of(kind)
    with pytest.raises(UserError, match=r"DeepLift.*tiny \w+\b.*captum:occlusion"):
        interp.attribute(model, few, methods=["captum:deep_lift"])


def test_a_classifier_writes_no_texts(few):
    with pytest.raises(ModelError, match="roberta"):
        bind(Generate(max_new_tokens=4), classifier("roberta")).attempt(few)


@pytest.mark.quick(1)
@pytest.mark.parametrize("classes", [("LABEL_0", "LABEL_1"), ("yes", "no")])
def test_a_classifier_without_a_class_for_each_option_is_refused(classes, tmp_path):
    """Also if most prompts, or all, may fail."""
    model, prompts = classifier("bert", classes=classes), some_prompts(12)
    names = {option.name for prompt in prompts for option in prompt.answer.options}
    assert names == {"Yes", "No", "True", "False"}
    with pytest.raises(ModelError, match=", ".join(classes)):
        interp.evaluate(model, prompts)
    for spec in (Evaluate(), Attribute(), Effects(), Patch()):
        with pytest.raises(ModelError):
            interp.run(
                spec, models=model, prompts=prompts, out=tmp_path / spec.name, fail_on_error=1
            )


def test_patching_a_text_to_text_model_is_refused(few):
    with pytest.raises(UserError, match=r"text-to-text model.*'t5'.*--methods input_gradient"):
        interp.patch(text_to_text("t5"), few)


def test_a_reader_reads_many_rows_of_embeddings_of_one_prompt(few):
    for kind in ("roberta", "t5"):
        model = model_of(kind)
        # In fp32 rows of a batch and one alone differ by rounding.
        model = dataclasses.replace(model, hf=copy.deepcopy(model.hf).double())
        batch = pad(model, tokenize(model, few[:1]))
        reader = reader_of(model)
        with torch.no_grad():
            rows = reader.embed(batch.token_ids).repeat(3, 1, 1)
            logits = reader.answer_logits(batch, embeddings=rows)
            expected = reader.answer_logits(batch).expand(3, -1)
        torch.testing.assert_close(logits, expected, **TOLERANCE)

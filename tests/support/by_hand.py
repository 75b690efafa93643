"""A model with all of its weights set by hand."""

import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast


def zeroed_gpt2(words):
    """A GPT-2 of one layer, one head and two dimensions, all zero, in float64; and its tokenizer.

    The first word stands for padding and for unknown words.
    """
    tokenizer = Tokenizer(
        models.WordLevel({word: index for index, word in enumerate(words)}, unk_token=words[0])
    )
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    config = GPT2Config(
        vocab_size=len(words),
        n_embd=2,
        n_layer=1,
        n_head=1,
        n_positions=16,
        n_inner=1,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=None,
    )
    hf = GPT2LMHeadModel(config).double().eval()
    for parameter in hf.parameters():
        parameter.data.zero_()
    return hf, PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token=words[0])


def vector(*numbers):
    """The numbers in float64."""
    return torch.tensor(numbers, dtype=torch.float64)

"""Chat templates that behave as those of families that think, and models that follow a script."""

import copy
from collections.abc import Mapping, Sequence

import torch
from transformers import PreTrainedTokenizerFast

from interp.models.loading import ChatFormat
from interp.models.model import Model
from tests.support.tiny import make_tiny
from tests.support.tokenizers import byte_level

QWEN3 = """\
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\n' }}
    {%- if m.role == 'assistant' and (loop.last or m.reasoning_content) %}
        {{- '<think>\n' + (m.reasoning_content or '').strip('\n') + '\n</think>\n\n' }}
    {%- endif %}
    {{- m.content + '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\n\n</think>\n\n' }}
    {%- endif %}
{%- endif %}"""

SMOLLM3 = """\
{%- set mode = '/think' if enable_thinking is not defined or enable_thinking else '/no_think' %}
{{- '<|im_start|>system\n## Metadata\nReasoning Mode: ' + mode + '\n<|im_end|>\n' }}
{%- for m in messages %}
    {{- '<|im_start|>' + m.role + '\n' }}
    {%- if m.role == 'assistant' and mode == '/no_think' %}
        {{- '<think>\n\n</think>\n' }}
    {%- endif %}
    {{- m.content.lstrip('\n') if m.role == 'assistant' else m.content }}{{- '<|im_end|>\n' }}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\n' }}
    {%- if mode == '/no_think' %}{{- '<think>\n\n</think>\n' }}{%- endif %}
{%- endif %}"""

DEEPSEEK_R1 = """\
{{- bos_token }}
{%- for m in messages %}
    {%- if m.role == 'user' %}{{- '<｜User｜>' + m.content }}{%- endif %}
    {%- if m.role == 'assistant' %}
        {{- '<｜Assistant｜>' + m.content.split('</think>')[-1] + '<｜end▁of▁sentence｜>' }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<｜Assistant｜><think>\n' }}{%- endif %}"""

GPT_OSS = """\
{{- '<|start|>system<|message|>Reasoning: ' + (reasoning_effort or 'medium') + '<|end|>' }}
{%- for m in messages %}
    {%- if m.role == 'assistant' %}
        {%- if loop.last and not add_generation_prompt and 'thinking' in m %}
            {{- '<|start|>assistant<|channel|>analysis<|message|>' + m.thinking + '<|end|>' }}
        {%- endif %}
        {{- '<|start|>assistant<|channel|>final<|message|>' + m.content }}
        {{- '<|return|>' if loop.last else '<|end|>' }}
    {%- else %}{{- '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|start|>assistant' }}{%- endif %}"""

GLM45 = """\
{{- '[gMASK]<sop>' }}
{%- for m in messages %}
    {%- if m.role == 'user' %}
        {{- '<|user|>\n' + m.content }}
        {{- '/nothink' if enable_thinking is defined and not enable_thinking else '' }}
    {%- elif m.role == 'assistant' %}
        {{- '<|assistant|>\n<think>' + (m.reasoning_content or '').strip() + '</think>\n' }}
        {{- m.content.strip() }}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|assistant|>' }}
    {{- '\n<think></think>' if enable_thinking is defined and not enable_thinking else '' }}
{%- endif %}"""

MAGISTRAL = """\
{{- bos_token + '[SYSTEM_PROMPT]First draft your thoughts: [THINK]...[/THINK][/SYSTEM_PROMPT]' }}
{%- for m in messages %}
    {%- if m.role == 'user' %}{{- '[INST]' + m.content + '[/INST]' }}
    {%- elif m.content is string %}{{- m.content + eos_token }}
    {%- else %}
        {%- for block in m.content %}
            {%- if block.type == 'thinking' %}
                {{- '[THINK]' + block.thinking[0].text + '[/THINK]' }}
            {%- else %}{{- block.text }}{%- endif %}
        {%- endfor %}
        {{- eos_token }}
    {%- endif %}
{%- endfor %}"""

FAMILIES = {
    "Qwen3": QWEN3,
    "SmolLM3": SMOLLM3,
    "DeepSeek-R1": DEEPSEEK_R1,
    "gpt-oss": GPT_OSS,
    "GLM-4.5": GLM45,
    "Magistral": MAGISTRAL,
}
MARKS = (
    *("<|im_start|>", "<|im_end|>", "<think>", "</think>", "<｜User｜>", "<｜Assistant｜>"),
    *("<｜end▁of▁sentence｜>", "<|start|>", "<|message|>", "<|channel|>", "<|end|>", "<|return|>"),
    *("[gMASK]", "<sop>", "<|user|>", "<|assistant|>", "/nothink", "[THINK]", "[/THINK]"),
    *("[INST]", "[/INST]", "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]"),
)


def marked(template: str | None) -> PreTrainedTokenizerFast:
    """A tokenizer with this template, of which every mark of a family is one token."""
    tokenizer = copy.deepcopy(byte_level(None))
    tokenizer.add_tokens([*MARKS], special_tokens=True)
    tokenizer.chat_template = template
    return tokenizer


def thinking_model(template: str | None, **chat: object) -> Model:
    """A random model with this template."""
    tiny = make_tiny("llama", marked(template))
    return Model(tiny.name, tiny.hf, tiny.tokenizer, chat=ChatFormat(**chat))


def follow(model: Model, script: Mapping[str, Sequence[str]]) -> None:
    """Make a random Llama write, after each token, one of the tokens that the script lists.

    All listed tokens are equally likely. Layers add nothing, so the last token's embedding, a unit
    vector almost orthogonal to the others, decides alone.
    """
    ids = model.tokenizer.get_vocab()
    with torch.no_grad():
        for layer in model.hf.model.layers:
            layer.self_attn.o_proj.weight.zero_()
            layer.mlp.down_proj.weight.zero_()
        embedded = model.hf.model.embed_tokens.weight
        embedded.copy_(torch.nn.functional.normalize(embedded, dim=-1))
        model.hf.model.norm.weight.fill_(1.0)
        written = model.hf.lm_head.weight.zero_()
        for token, following in script.items():
            for other in following:
                written[ids[other]] += 20 * embedded[ids[token]]

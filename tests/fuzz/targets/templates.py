"""Chat templates that never end, reach for the interpreter, or write what nobody expects."""

import json
from pathlib import Path
from random import Random

from tests.fuzz.case import Case
from tests.fuzz.material import Material

TEMPLATES = (
    "",
    " ",
    "constant",
    "{{",
    "{% for %}",
    "{% endfor %}",
    "{{ undefined }}",
    "{{ undefined.attribute }}",
    "{{ messages }}",
    "{{ messages[7] }}",
    "{{ messages[0]['content'] * 1000000 }}",
    "{{ 'x' * 100000000 }}",
    "{{ 9 ** 99999999 }}",
    "{% for i in range(99999) %}{% for j in range(99999) %}{% endfor %}{% endfor %}",
    "{% for i in range(99999) %}{{ messages[0]['content'] }}{% endfor %}",
    "{% for i in range(10 ** 12) %}x{% endfor %}",
    "{% macro f(x) %}{{ f(x) }}{% endmacro %}{{ f(1) }}",
    "{{ '%s' % messages }}",
    "{{ '{0.__class__}'.format(messages) }}",
    "{{ messages.__class__.__mro__ }}",
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{{ self._TemplateReference__context }}",
    "{{ cycler.__init__.__globals__.os.system('true') }}",
    "{{ lipsum.__globals__ }}",
    "{{ namespace.__init__.__globals__ }}",
    "{{ messages|attr('__class__') }}",
    "{{ messages|map(attribute='__class__')|list }}",
    "{% include '/etc/hostname' %}",
    "{% import 'os' as os %}{{ os }}",
    "{% extends 'x' %}",
    "{{ raise_exception('no') }}",
    "{{ raise_exception(messages) }}",
    "{{ strftime_now('%Y') }}{{ messages[0]['content'] }}",
    "{{ strftime_now(7) }}",
    "{{ range(5)|random }}{{ messages[0]['content'] }}",
    "{{ messages[0]['content']|upper }}",
    "{{ messages[0]['content']|reverse }}",
    "{{ messages[0]['content'] }}{{ messages[0]['content'] }}",
    "{{ messages[0]['content'][:10] }}",
    "{{ messages[0]['content']|e }}",
    "{{ messages[0]['content']|replace('a', '\\ud800') }}",
    "{{ messages[0]['content']|tojson }}",
    "{% set ns = namespace(x=0) %}{% for i in range(99999) %}{% set ns.x = ns.x + 1 %}{% endfor %}",
    "{% generation %}{{ messages[0]['content'] }}{% endgeneration %}",
    "{{ bos_token }}" * 20000,
    "{% if true %}" * 500 + "{% endif %}" * 500,
    "(" * 10000,
    "{{ " + "(" * 2000 + "1" + ")" * 2000 + " }}",
    "\x00{{ messages[0]['content'] }}\x00",
    "<unk>{{ messages[0]['content'] }}</s>",
)

_VALUES = (None, 7, [], {}, ["x"], [{"name": "default"}], [{"name": "x", "template": "y"}], True)
"""What may be in tokenizer_config.json in place of a template."""

_COMMANDS = (("evaluate",), ("attribute",), ("patch", "--layers", "0"), ("probe", "familiarity"))


def make(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A command that loads a model with such a template."""
    model = material.copy("model", folder / "model")
    choices = [*TEMPLATES, *_VALUES]
    template = choices[number % len(choices)]
    if isinstance(template, str) and chance.random() < 0.5:
        (model / "chat_template.jinja").write_text(template, encoding="utf-8")
    else:
        (model / "chat_template.jinja").unlink()
        file = model / "tokenizer_config.json"
        config = json.loads(file.read_text(encoding="utf-8"))
        file.write_text(json.dumps({**config, "chat_template": template}), encoding="utf-8")
    command = _COMMANDS[number // len(choices) % len(_COMMANDS)]
    limit = [] if command[0] == "probe" else ["--limit", "2"]
    fixed = ["--data", str(material.data), "--device", "cpu", "--out", "out"]
    return Case([*command, "--model", "model", *fixed, *limit], damage=f"{template!r:.200}")

"""The YAML file of options. Text on which YAML readers disagree is rejected."""

import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from interp.errors import UserError, shortened

LARGEST = 2**20
"""Maximum number of bytes in a configuration file."""

_NUMBER = re.compile(
    r"[-+]?(0|[1-9][0-9]*|[0-9]*\.[0-9]*([eE][-+][0-9]+)?|\.inf|\.nan)", re.IGNORECASE
)


def config_file(file: Path) -> dict[str, Any]:
    """The options in a YAML file, as written there.

    Raises:
        UserError: the file cannot be read, is not a mapping of options, or sets an option twice.
    """
    try:
        with file.open("rb") as stream:
            content = stream.read(LARGEST + 1)
        if len(content) > LARGEST:
            raise UserError(f"{file} is too large; expected at most {LARGEST:,} bytes")
        options = yaml.load(content, _Loader)
    except OSError as error:
        raise UserError(f"{file} cannot be read: {error.strerror}") from error
    except _AmbiguousError as error:
        raise UserError(f"{file}, {error}") from error
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"{file} is not YAML: {shortened(reason)}") from error
    if not isinstance(options, dict) or not all(isinstance(key, str) for key in options):
        raise UserError(f"{file} contains no options, such as limit: 60")
    return options


class _AmbiguousError(ValueError):
    """Text on which YAML readers disagree; the message starts with the line number."""

    def __init__(self, node: yaml.Node, what: str) -> None:
        super().__init__(f"line {node.start_mark.line + 1}: {what}")


class _Loader(yaml.SafeLoader):
    """YAML in which each key occurs once and numbers are decimal.

    In YAML 1.1, which PyYAML reads, 010 is 8, 1:30 is 90 and 1_0 is 10; in YAML 1.2, 010 is 10, and
    1:30 and 1_0 are strings. 2024-07-26 is a date in YAML 1.1 alone; here it is a string.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Hashable, Any]:
        keys = [key for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        first: dict[str, yaml.ScalarNode] = {}
        for key in keys:
            if first.setdefault(key.value, key) is not key:
                raise _AmbiguousError(
                    key, f"{shortened(key.value)!r} occurs twice; omit one occurrence"
                )
        return super().construct_mapping(node, deep)

    def construct_scalar(self, node: yaml.ScalarNode | yaml.MappingNode) -> Any:
        text = super().construct_scalar(node)
        if any("\ud800" <= letter <= "\udfff" for letter in text):
            shown = shortened(ascii(text))
            raise _AmbiguousError(node, f"{shown} contains half of a character; correct it")
        return text


def _number(loader: _Loader, node: yaml.ScalarNode) -> Any:
    if not _NUMBER.fullmatch(node.value):
        raise _AmbiguousError(
            node,
            f"{shortened(node.value)!r} is not a decimal number, and programs interpret it "
            "differently; write a number in decimal digits, or quote a string",
        )
    read = loader.construct_yaml_float if node.tag.endswith("float") else loader.construct_yaml_int
    return read(node)


_Loader.add_constructor("tag:yaml.org,2002:timestamp", _Loader.construct_scalar)
for _kind in ("int", "float"):
    _Loader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)

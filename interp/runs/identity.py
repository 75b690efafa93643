"""Everything that a run's numbers depend on, and checks that a folder contains the same run.

The code is recorded as a hash of what the modules that measure and all their imports do, so their
comments and other modules, such as those that draw figures, may change between calls on a folder.
"""

import ast
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict
from functools import cache
from importlib.util import find_spec, resolve_name
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from interp.errors import UserError, shortened
from interp.options import flag
from interp.plugins import OWN_PACKAGES
from interp.prompts.prompt_set import PromptSet
from interp.runs.records import ModelRecord, RunIdentity, TextsRecord, column_types
from interp.stored.output import StoredTexts
from interp.surface import homes

if TYPE_CHECKING:  # these import torch, which `status` and `validate` do not need
    from interp.measuring.core import Measurement
    from interp.measuring.spec import Spec


@cache
def code_version(modules: tuple[str, ...]) -> str:
    """A hash of what modules and all that they import from interp and their packages do.

    Comments, docstrings and layout do not count. A module without a file, such as a notebook, is
    hashed by its name. Versions of Python may write the same syntax tree differently.
    """
    digest = hashlib.sha256()
    for module in sorted(closure(modules)):
        source = _source(module)
        digest.update(module.encode())
        digest.update(b"" if source is None else source.meaning)
    return digest.hexdigest()


class _Parsed(NamedTuple):
    imports: tuple[str, ...]
    homes: dict[str, str]
    """The modules of names that it only offers, such as those of `interp.extend`."""
    meaning: bytes


def _source(module: str) -> _Parsed | None:
    """What the source of a module says; None if the module has no file."""
    if (file := _file(module)) is None:
        return None
    package = module if file.name == "__init__.py" else module.rpartition(".")[0]
    return _parsed(file.read_bytes(), package)


@cache
def _parsed(source: bytes, package: str) -> _Parsed:
    """The imports of a source in a package, and a hash of its tree without what only documents."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.level:
            with suppress(ImportError):  # it leads out of the package
                node.module = resolve_name("." * node.level + (node.module or ""), package)
    names, places = list(_names(tree)), homes(tree)
    used = _used(tree, {name: place for name, place in names if name})
    imports = tuple(dict.fromkeys([*(place for _, place in names), *used]))
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            node.body = [statement for statement in node.body if not _is_text(statement)]
    return _Parsed(imports, places, hashlib.sha256(ast.dump(tree).encode()).digest())


def _is_text(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def closure(modules: Iterable[str]) -> set[str]:
    """The modules and all that they import, even indirectly, from interp and their own packages."""
    waiting = list(modules)
    packages = {*OWN_PACKAGES, *(_package(module) for module in waiting)}
    reached: set[str] = set()
    while waiting:
        module = waiting.pop()
        if module not in reached:
            reached.add(module)
            source = _source(module)
            names = () if source is None else source.imports
            followed = [name for name in names if _package(name) in packages]
            places = [place for name in followed for place in _places(name)]
            waiting += [place for place in places if _package(place) in packages and _file(place)]
    return reached


@cache
def _places(name: str) -> tuple[str, ...]:
    """What may be the module of an imported name: itself, or the one that a module offers it from.

    Names that are defined inside a module are none. "*" stands for all that a module offers.
    """
    module, _, last = name.rpartition(".")
    source = None if _file(name) else _source(module)
    offered = {} if source is None else source.homes
    taken = [(offer, home) for offer, home in offered.items() if last in (offer, "*")]
    return tuple(place for offer, home in taken for place in (home, f"{home}.{offer}")) or (name,)


def _names(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """Every import, but for type checkers: the name that it binds, or "", and its place."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield "", alias.name
                bound = alias.asname or _package(alias.name)
                yield bound, alias.name if alias.asname else bound
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield "", node.module
            yield from ((a.asname or a.name, f"{node.module}.{a.name}") for a in node.names)
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        elif isinstance(node, ast.stmt | ast.excepthandler | ast.match_case):
            yield from _names(node)


def _used(tree: ast.AST, bound: Mapping[str, str]) -> Iterator[str]:
    """What a source takes from the modules that it imports, such as page.Report, by its place."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            first, _, rest = _chain(node).partition(".")
            if first in bound:
                yield f"{bound[first]}.{rest}"


def _chain(node: ast.expr) -> str:
    """The names of an expression like a.b.c; empty for other expressions."""
    if isinstance(node, ast.Attribute):
        before = _chain(node.value)
        return before and f"{before}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def _package(module: str) -> str:
    return module.partition(".")[0]


@cache
def _file(module: str) -> Path | None:
    """The source file of a module, found without importing it; None if the module has no file."""
    package, *within = module.split(".")
    try:
        spec = find_spec(package)
    except ValueError:  # a notebook's __main__
        return None
    if spec is None:
        return None
    bare = [Path(place, *within) for place in spec.submodule_search_locations or ()]
    files = [file for path in bare for file in (path.with_suffix(".py"), path / "__init__.py")]
    if not within:
        files = [Path(spec.origin)] if spec.origin and spec.origin.endswith(".py") else []
    return next((file for file in files if file.is_file()), None)


_AROUND = ("shots", "shots_seed", "instruction", "system_prompt", "answer_prefix")
"""Keys of `RunIdentity.data` that name options of `interp.prompts.around.with_messages`."""

_SELECTION = ("pairs", "spread_seed")
"""Keys of `RunIdentity.data` that depend on which prompts the limit selects."""


def run_identity(prompts: PromptSet, spec: "Spec") -> RunIdentity:
    """The identity of a run, as in its record."""
    naming = prompts.decisive
    return RunIdentity.model_validate(
        {
            "measurement": spec.name,
            "parameters": spec.identity(),
            "system": prompts.system,
            "seed": prompts.seed,
            "prompts": len(prompts),
            "data": prompts.description,
            "ratio": None if prompts.ratio is None else tuple(prompts.ratio),
            "decisive": None if naming is None else {**naming._asdict(), "among": [*naming.among]},
            "data_hash": prompts.content_hash(),
            "code": code_version((*spec.modules(), *sorted(prompts.parser_modules()))),
        }
    )


def model_record(
    measurement: "Measurement",
    *,
    origin: Mapping[str, object],
    data_hash: str,
    shards: list[str],
    shard_prompts: int,
) -> ModelRecord:
    """A run's record of a model and of its tables."""
    model = measurement.model
    return ModelRecord.model_validate(
        {
            "name": model.name,
            "source": model.source,
            "identity": model.identity,
            "architecture": model.hf.config.model_type,
            "parameters": model.hf.num_parameters(),
            "vocabulary": model.text_config.vocab_size,
            "dtype": model.dtype,
            "quantization": model.quantization,
            "device": str(model.device),
            "attn_implementation": model.attn_implementation,
            "chat": {
                **asdict(model.chat),
                "options": dict(model.chat.options),
                **model.chat_frame.record(),
            },
            "own_system_prompt": model.own_system_prompt,
            "attention_layers": list(model.attention_layers),
            "reads_tokens_again": model.reads_tokens_again,
            "texts": None if model.thought_texts is None else texts_record(model.thought_texts),
            "tables": {name: column_types(schema) for name, schema in measurement.tables.items()},
            "origin": dict(origin),
            "data_hash": data_hash,
            "shards": shards,
            "shard_prompts": shard_prompts,
        }
    )


def texts_record(texts: StoredTexts) -> TextsRecord:
    """The record of stored texts."""
    return TextsRecord.model_validate({**asdict(texts), "problems": list(texts.problems)})


def check_same_model(folder: Path, earlier: ModelRecord, now: ModelRecord) -> None:
    """Check that two records describe the same model, measured in the same way."""
    for key in ("name", "identity", "dtype", "attn_implementation", "quantization"):
        before, after = getattr(earlier, key), getattr(now, key)
        if before != after:
            raise UserError(
                f"{folder} holds another model named {earlier.name}: its {key} is {before}, but "
                f"this model's {key} is {after}; name it otherwise (NAME=PATH), or use another "
                "--out"
            )
    for key in ("system", "thinking", "options", "end_of_thought"):
        before, after = earlier.chat.get(key), now.chat.get(key)
        if before != after:
            name = "system prompt" if key == "system" else key.replace("_", " ")
            raise UserError(
                f"{folder} holds {earlier.name}, which was measured with {name} "
                f"{shortened(repr(before))} but would now be measured with "
                f"{shortened(repr(after))}; use another --out"
            )
    if earlier.data_hash == now.data_hash and earlier.shards != now.shards:
        raise UserError(
            f"{folder} holds {earlier.name}, measured with different code or options; use "
            "another --out"
        )


def check_same_run(folder: Path, earlier: RunIdentity, now: RunIdentity) -> bool:
    """Check that a run is the one in a folder, possibly with a larger limit.

    Returns: Whether the run has a larger limit.

    Raises:
        UserError: the run differs, or has a smaller limit.
    """
    if earlier.measurement == now.measurement:
        _check_options(folder, earlier.parameters, now.parameters)
        if earlier.code != now.code:
            raise UserError(
                f"{folder} was measured by another version of interp, whose numbers may differ; "
                "use another --out"
            )
        if earlier.system == now.system:
            _check_options(folder, _around(earlier), _around(now))
    before, limit = _limit(earlier), _limit(now)
    if _without_selection(earlier) == _without_selection(now) and before != limit:
        if limit < before:
            raise UserError(
                f"{folder} holds {earlier.prompts:,} prompts, but this run would have "
                f"{now.prompts:,}; a run can grow but not shrink: use a larger --limit, or "
                "another --out"
            )
        return True
    for key in ("measurement", "system", "seed", "prompts"):
        old, new = getattr(earlier, key), getattr(now, key)
        if old != new:
            shown = f"its {key} is {shortened(repr(old))}, this run's is {shortened(repr(new))}"
            raise _different(folder, shown)
    if earlier.data_hash != now.data_hash:
        raise _different(folder, "its data differ, or have changed since")
    return False


def _different(folder: Path, how: str) -> UserError:
    return UserError(
        f"{folder} belongs to a different run: {how}; repeat that run's options, or use another "
        "--out"
    )


def _check_options(folder: Path, earlier: Mapping[str, object], now: Mapping[str, object]) -> None:
    for name in dict.fromkeys([*earlier, *now]):
        if earlier.get(name) != now.get(name):
            old, new = _option(name, earlier), _option(name, now)
            raise _different(folder, f"that run was made {old}, this one {new}")


def _around(run: RunIdentity) -> dict[str, str]:
    """The options for what is written around prompts."""
    return {name: run.data[name] for name in _AROUND if name in run.data}


def _option(name: str, parameters: Mapping[str, object]) -> str:
    """A parameter as written on the command line, such as "with --target gold"."""
    value = parameters.get(name)
    if value in (None, False):
        return f"without {flag(name)}"
    values = [] if value is True else value if isinstance(value, list) else [value]
    return " ".join(["with", flag(name), *(shortened(str(entry)) for entry in values)])


def _without_selection(run: RunIdentity) -> tuple[object, ...]:
    data = {key: value for key, value in run.data.items() if key not in _SELECTION}
    seed = run.data.get("spread_seed", str(run.seed))
    return run.measurement, run.system, run.seed, seed, data


def _limit(run: RunIdentity) -> float:
    """The number of pairs that a limit selects; infinite without a limit."""
    pairs = run.data.get("pairs", "")
    return float(pairs) if re.fullmatch("[0-9]{1,15}", pairs) else float("inf")

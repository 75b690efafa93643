"""Sets in the layout of RuleBench's authors: folders with test_data.json and test_rule.json.

test_data.json is a list of items {instruction, input, output, rule: [id]}; test_rule.json is an
object {id: {"NL": ..., "FOL": ...}}. The folder of a counterfactual set has the name of the factual
set's folder plus "-cf". Training questions are in train_data.json or validation_data.json.

Files are not trusted: whatever they contain, reading them gives items, or messages about broken
parts.
"""

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from interp import UserError
from interp.extend import one_line, shortened
from interp.extend.data import check_fits, read_bytes, reading
from interp_experiments.rulebench import items as kinds

DATA, RULES = "test_data.json", "test_rule.json"

Part = Literal["train", "validation", "test"]

TO_TRAIN_ON: tuple[Part, ...] = ("train", "validation")
"""The first that exists is used for training."""

COUNTERFACTUAL = "-cf"

FILE_BYTES = 2**28

SHOWN = 20
"""So many are listed in a message; all are counted."""

_Text = Annotated[str, StringConstraints(strip_whitespace=True, min_length=1)]


class _Schema(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)


class _Item(_Schema):
    input: _Text
    output: _Text
    rule: Annotated[tuple[int | str], Field(strict=False)]
    positive_: bool | None = None

    def gold(self, kind: kinds.QuestionKind) -> str:
        """The answer to a question of this kind; a UserError if it is none."""
        given = getattr(self, kind.field)
        return kind.gold("" if given is None else str(given))


class _Rule(_Schema):
    id: _Text
    NL: _Text
    FOL: Annotated[str, StringConstraints(strip_whitespace=True)] | None = None


class _Content(NamedTuple):
    """What a folder has, whose kind of question is not yet known."""

    file: str
    """The data, as messages name them."""
    items: Mapping[str, _Item]
    """By position, such as "0007"."""
    rules: Mapping[str, kinds.Rule]
    problems: list[str]

    def version(self, kind: kinds.QuestionKind) -> kinds.Version:
        """The questions; items without a golden rule or an answer become problems."""
        items = []
        for position, given in self.items.items():
            rule = str(given.rule[0])
            try:
                if rule not in self.rules:
                    raise UserError(f"its rule {shortened(rule, 60)!r} is not in {RULES}")
                items.append(kinds.Item(position, given.input, given.gold(kind), rule))
            except UserError as error:
                self.problems.append(f"{self.file}, item {int(position)}: {error}")
        return kinds.Version(tuple(items), self.rules)


S = TypeVar("S", bound=_Schema)


def read_sets(folder: Path, *, skip_broken: bool = False) -> list[kinds.RuleSet]:
    """The set in a folder, or the sets in its subfolders, sorted by name.

    The kind of set is recognized from the folder's name, or else from the answers.

    Raises:
        UserError: the folder has no set, an unknown one, or one with broken items.
    """
    with reading(folder):
        alone = (folder / DATA).is_file()
        inside = sorted(folder.iterdir()) if folder.is_dir() else []
    if alone:
        return [read_set(folder, skip_broken=skip_broken)]
    folders = [path for path in inside if (path / DATA).is_file()]
    first = [path for path in folders if not _is_counterfactual(path) or not _beside(path, "")]
    if not first:
        raise UserError(
            f"no set of RuleBench in {shortened(str(folder))}; expected a folder with {DATA} and "
            f"{RULES}, or a folder of such folders"
        )
    return [read_set(path, skip_broken=skip_broken) for path in first]


def read_set(folder: Path, *, skip_broken: bool = False, part: Part = "test") -> kinds.RuleSet:
    """The set in a folder, as in `read_sets`; test sets with a counterfactual version beside it."""
    paths = {"factual": folder}
    if _is_counterfactual(folder):
        paths = {"counterfactual": folder}
    elif part == "test" and (other := _beside(folder, COUNTERFACTUAL)):
        paths["counterfactual"] = other
    contents = {of: _read(path, part) for of, path in paths.items()}
    kind = _recognized(folder, next(iter(contents.values())))
    versions = {of: each.version(kind) for of, each in contents.items()}
    problems = [line for each in contents.values() for line in each.problems]
    if problems and not skip_broken:
        raise UserError(listed(problems))
    for of, version in versions.items():
        if not version.items:
            raise UserError(f"{shortened(str(paths[of] / DATA))} has no item that can be asked")
    factual, counterfactual = (versions.get(of) for of in ("factual", "counterfactual"))
    return kinds.RuleSet(kind, factual, counterfactual, problems=tuple(problems))


def part_to_train_on(folder: Path) -> Part:
    """The part of a set to train on.

    Raises:
        UserError: the set has no part to train on.
    """
    for part in TO_TRAIN_ON:
        if (folder / _data(part)).is_file():
            return part
    raise UserError(
        f"there are no questions to train on in {shortened(str(folder))}; expected "
        f"{' or '.join(map(_data, TO_TRAIN_ON))}, and {DATA} to measure on"
    )


def _data(part: Part) -> str:
    return f"{part}_data.json"


def _is_counterfactual(folder: Path) -> bool:
    return folder.absolute().name.lower().endswith(COUNTERFACTUAL)


def _beside(folder: Path, ending: str) -> Path | None:
    whole = folder.absolute()  # the working directory has no name of its own
    plain = whole.name[: -len(COUNTERFACTUAL)] if _is_counterfactual(folder) else whole.name
    other = whole.parent / (plain + ending)
    return other if (other / DATA).is_file() else None


def _recognized(folder: Path, content: _Content) -> kinds.QuestionKind:
    name = folder.absolute().name.lower().removesuffix(COUNTERFACTUAL)
    possible = [kind for kind in kinds.READ if name in (kind.name, *kind.also)]
    if not possible and content.items:
        possible = [kind for kind in kinds.READ if _answers(kind, content)]
    if len(possible) == 1:
        return possible[0]
    names = [kind.name for kind in possible or kinds.READ]
    raise UserError(
        f"cannot recognize the set in {shortened(str(folder))} by its name or its answers; name "
        f"its folder like one of {', '.join(names)}"
    )


def _answers(kind: kinds.QuestionKind, content: _Content) -> bool:
    with suppress(UserError):
        return all(item.gold(kind) for item in content.items.values())
    return False


def listed(problems: Sequence[str], *, between: str = "\n  ") -> str:
    """The number of broken parts in the data, and a list of the first ones."""
    if len(problems) == 1:
        return problems[0]
    more = len(problems) - SHOWN
    lines = [f"{len(problems):,} parts of the data are broken:", *problems[:SHOWN]]
    return between.join(lines + ([f"and {more:,} more"] if more > 0 else []))


def _read(folder: Path, part: Part) -> _Content:
    problems: list[str] = []
    of_part = f"{part}_rule.json"  # or else the rules of the test set
    data, rules = _data(part), of_part if (folder / of_part).is_file() else RULES
    items, by_id = {}, {}
    for number, element in enumerate(_parsed(folder / data, list, "list of items"), start=1):
        where = f"{folder.name}/{data}, item {number}"
        if item := _checked(_Item, element, where, problems):
            items[f"{number:04d}"] = item
    for id_, element in _parsed(folder / rules, dict, "object of rules").items():
        where = f"{folder.name}/{rules}, rule {shortened(id_, 60)!r}"
        with_id = {**element, "id": id_} if isinstance(element, dict) else element
        if rule := _checked(_Rule, with_id, where, problems):
            by_id[id_] = kinds.Rule(id_, rule.NL, rule.FOL or None)
    return _Content(f"{folder.name}/{data}", items, by_id, problems)


def _checked(schema: type[S], element: object, where: str, problems: list[str]) -> S | None:
    """An element of a file; if it does not fit the schema, None, with a message in `problems`."""
    try:
        return schema.model_validate(element)
    except ValidationError as error:
        problem = error.errors(include_url=False)[0]
        what = ".".join(str(part) for part in problem["loc"][:1]) or "it"
        got = one_line(repr(problem["input"]), 60)
        reason = problem["msg"][0].lower() + problem["msg"][1:]
        problems.append(f"{where}: {what} is {got}; {reason}")
        return None


def _parsed(file: Path, kind: type, what: str) -> Any:
    """The JSON value in a file, which must be of a kind, given in words."""
    if not file.is_file():
        raise UserError(f"there is no {file.name} in {shortened(str(file.parent))}")
    if file.stat().st_size <= FILE_BYTES:
        check_fits(file)
    with reading(file):
        content = read_bytes(file.resolve(), limit=FILE_BYTES)
    name = shortened(str(file))
    try:
        parsed = json.loads(content.decode("utf-8-sig"), object_pairs_hook=_object)
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not encoded in UTF-8; save it as UTF-8") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{name} is not JSON: {one_line(str(error))}") from error
    if not isinstance(parsed, kind):
        raise UserError(f"{name} is not a JSON {what}")
    return parsed


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object; of two values of a key one that fits no schema, which breaks its record."""
    fields = dict(pairs)
    if len(fields) < len(pairs):
        for key, value in pairs:
            if value != fields[key]:
                fields[key] = ValueError("given twice, with different values")
    return fields

"""Run folders and studies of which one record, file or folder is damaged, before every command."""

import shutil
from pathlib import Path
from random import Random

from tests.fuzz.case import Case
from tests.fuzz.material import Material
from tests.fuzz.nasty import damage_bytes, damage_json, damage_node, remove

COMMANDS = (
    ("status", "run"),
    ("validate", "run"),
    ("report", "run"),
    ("work", "run", "0", "--call", "0123456789ab", "--"),
    (),
    ("--retry-errors",),
)
"""What meets each damage; those without a command are the run's own, to resume it."""


def make(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A damaged run, of those that one command makes."""
    names = [name for name in material.runs if name != "study"]
    return _damaged(chance, names[number // len(COMMANDS) % len(names)], number, material, folder)


def make_study(chance: Random, number: int, material: Material, folder: Path) -> Case:
    """A damaged study."""
    return _damaged(chance, "study", number, material, folder)


def _damaged(chance: Random, name: str, number: int, material: Material, folder: Path) -> Case:
    run = material.copy(name, folder / "run")
    words = [_interrupt(chance, run)] if chance.random() < 0.35 else []
    words += [damage(chance, run, material) for _ in range(chance.choice((1, 1, 1, 2)))]
    command = COMMANDS[number % len(COMMANDS)]
    own = [*material.runs[name], "--out", "run"]
    argv = list(command) if "run" in command else [*own, *command]
    argv += [material.job(name)] if command[-1:] == ("--",) else []
    return Case(argv, damage=f"{name}: {'; '.join(words)}")


def _interrupt(chance: Random, run: Path) -> str:
    """Leave a run as one that was killed: a shard is missing, and claimed by nobody alive."""
    shards = sorted(run.glob("**/shards/*/*"))
    shard = chance.choice(shards)
    shutil.rmtree(shard)
    part = shard.parent.parent.parent
    for table in part.glob("*.parquet"):
        if table.name != "prompts.parquet":
            table.unlink()
    claims = part / "claims" / shard.parent.name
    claims.mkdir(parents=True)
    claim = '{"host": "elsewhere", "space": "x", "process": 1, "worker": "x", "job": null}'
    (claims / f"{shard.name}.{chance.choice((0, 1, 7))}").write_text(claim, encoding="utf-8")
    return "interrupted"


def damage(chance: Random, run: Path, material: Material) -> str:
    """One damage, more often of a record than of a table or a folder."""
    nodes = sorted(run.rglob("*"))
    records = [path for path in nodes if path.suffix == ".json" or path.parent.name == "claims"]
    # The records at the top are read by every command.
    records = [path for path in records if path.is_file() and not path.is_symlink()]
    top = [path for path in records if path.parent in (run, run / "models")]
    kind = chance.random()
    if kind < 0.6 and records:
        file = chance.choice(top if top and chance.random() < 0.6 else records)
        return f"{file.relative_to(run)}: {_damage_record(chance, file, material)}"
    if kind < 0.9:
        path = chance.choice(nodes)
        return f"{path.relative_to(run)}: {_damage_any(chance, path, material)}"
    return _add(chance, run, nodes, material)


def _damage_record(chance: Random, file: Path, material: Material) -> str:
    content = file.read_bytes()
    try:
        text, words = damage_json(chance, content.decode(), material.outside)
        content = text.encode(errors="surrogatepass")
    except (ValueError, TypeError, RecursionError):  # an earlier damage left nothing to change
        content, words = damage_bytes(chance, content)
    if chance.random() < 0.15:
        content, words = damage_bytes(chance, content)
    file.write_bytes(content)
    return words


def _damage_any(chance: Random, path: Path, material: Material) -> str:
    if path.is_file() and not path.is_symlink() and chance.random() < 0.5:
        content, words = damage_bytes(chance, path.read_bytes())
        path.write_bytes(content)
        return words
    return damage_node(chance, path, material.outside)


def _add(chance: Random, run: Path, nodes: list[Path], material: Material) -> str:
    """A copy of one thing at the place of another, or something new where it does not belong."""
    source, target = (chance.choice(nodes) for _ in range(2))
    if chance.random() < 0.5:
        target = target.parent / chance.choice(
            ("x", "x.json", "0.json", ".run.json.x", "é\n", "a" * 32)
        )
    names = f"{target.relative_to(run)} is a copy of {source.relative_to(run)}"
    if source == target or source in target.parents or target in source.parents:
        return f"{target.relative_to(run)}: {damage_node(chance, target, material.outside)}"
    remove(target)
    _copy(source, target)
    return names


def _copy(source: Path, target: Path) -> None:
    """Copy files, folders and links without their times: the guard takes a link's for its end's."""
    if source.is_symlink():
        target.symlink_to(source.readlink())
    elif source.is_dir():
        target.mkdir()
        for entry in source.iterdir():
            _copy(entry, target / entry.name)
    else:
        shutil.copyfile(source, target)

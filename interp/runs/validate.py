"""Check that a run is finished, complete and unchanged: every shard, and every table."""

from collections.abc import Iterator
from pathlib import Path

from interp.errors import UserError
from interp.files import is_folder
from interp.runs.folder import PROMPTS, RunFolder
from interp.runs.records import ModelRecord
from interp.runs.shards import damage, read_manifest, read_table


def problems(run: RunFolder) -> Iterator[str]:
    """A line on everything that is missing, wrong, or not as it was written."""
    if not run.record.models:
        yield "no model was named"
    for model in run.not_begun():
        yield f"{model} was not begun, or was measured on other prompts"
    for model, record in run.models().items():
        yield from _problems_of_model(run, model, record)
    if run.record.finished is None:
        yield "it is not finished: the tables were not merged"
    else:
        yield from _problems_of_tables(run)


def _problems_of_model(run: RunFolder, model: str, record: ModelRecord) -> Iterator[str]:
    problems = {shard: _problem_of_shard(shard, record) for shard in run.shards(model)}
    for shard, problem in problems.items():
        if problem is not None:
            yield f"shard {shard.name} of {model}: {problem}"
    if any(problems.values()):
        return
    prompts = sum(read_manifest(shard).prompts for shard in problems)
    if prompts != run.record.run.prompts:
        yield f"{model}: the shards hold {prompts:,} prompts of {run.record.run.prompts:,}"
    if run.record.finished and run.record.merged.get(model) != run.shards_hash(model):
        yield f"the tables lack the shards of {model}; rerun the command to merge them again"


def _problem_of_shard(shard: Path, record: ModelRecord) -> str | None:
    if not is_folder(shard):
        return "it is not done"
    problem = damage(shard)
    if problem is not None:
        return problem
    files, expected = read_manifest(shard).files, {f"{table}.parquet" for table in record.tables}
    if set(files) != expected:
        return f"it holds {', '.join(files)}; expected {', '.join(sorted(expected))}"
    try:
        for table, columns in record.tables.items():
            read_table(shard, table, columns)
    except UserError as error:
        return str(error)
    return None


def _problems_of_tables(run: RunFolder) -> Iterator[str]:
    """Whether the tables are on record, and as they were written."""
    expected = (PROMPTS, *(f"{table}.parquet" for table in run.merged_tables()))
    for name in dict.fromkeys([*expected, *run.record.files]):
        if problem := run.file_problem(name):
            yield problem

"""What a result adds to its run folder: small tables, figures and further files."""

from functools import partial
from pathlib import Path

import pandas as pd

from interp.files import inside, make_folder, write_whole
from interp.measuring.spec import Spec
from interp.report.latex import latex
from interp.report.page import TableItem
from interp.results.result import Result, figure_of, result_class
from interp.runs.folder import RunFolder
from interp.runs.merge import merging


def write_files(run: RunFolder, result: Result) -> list[str]:
    """Write a result's files into its run folder; additional files only if there are new shards.

    Small tables are CSV and LaTeX, figures PNG in figures/. Returns the paths of the figures within
    the folder.
    """
    folder, figures = run.folder, []
    for item in result.shown:
        if isinstance(item, TableItem):
            write_whole(folder / f"{item.name}.csv", partial(item.frame.to_csv, index=False))
            tex = partial(Path.write_text, data=latex(item), encoding="utf-8")
            write_whole(folder / f"{item.name}.tex", tex)
        else:
            file = make_folder(folder, "figures") / f"{item.name}.png"
            write_whole(file, partial(figure_of(item.draw()).savefig, format="png"))
            figures.append(f"figures/{item.name}.png")
    changed = run.mergeable() != run.record.merged
    for further in result.files:
        if changed or run.file_problem(further.name):
            write_whole(inside(folder, further.name), further.write)
    return figures


def finish(folder: Path, spec: type[Spec]) -> Result:
    """Merge the tables of a run and write its small tables and figures into its folder."""
    with merging(folder) as merged:
        result = result_class(spec).of(merged.run)
        merged.summary = result.summarized()
        merged.figures = write_files(merged.run, result)
    return result


def model_parameters(run: RunFolder) -> TableItem:
    """The loaded models, with one row each: size, precision and revision."""
    rows = [
        {
            "model": name,
            "parameters": record.parameters,
            "architecture": record.architecture,
            "vocabulary": record.vocabulary,
            "dtype": record.dtype,
            "quantization": record.quantization or "",
            "chat_template": bool(record.chat.get("templated")),
            "commit": record.source.get("commit", ""),
        }
        for name, record in run.models().items()
    ]
    return TableItem("parameters", "Parameters of the models", pd.DataFrame(rows))

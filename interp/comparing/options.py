"""How logs are compared: the options of the command and of `interp.compare`."""

from typing import Annotated, Literal

from interp import texts
from interp.options import FromText, Options

Names = Annotated[tuple[str, ...], FromText(texts.name, "NAME")]
Column = Annotated[str | None, FromText(texts.name, "COLUMN")]


class Comparing(Options):
    """How logs are compared."""

    model: Names = ()
    """the models a and b, by their names in the tables, the last parts of these, or their paths;
    with two folders, one name may stand for both (default: the only model in each folder, or the
    two of one folder); with several seeds, any number of models (default: those that all runs have)
    """
    metric: Names = ()
    """metrics to compare, or columns of tables; one of each log if these have different names
    (default: all that every log has)"""
    filter: Names = ()
    """filters of lm-eval to compare (default: all that every log has)"""
    cluster: Column = None
    """field of the document, metadata or column that names items that depend on each other, such as
    a passage; `item` if none do (default: equal texts and equal stems are looked for)"""
    by: Column = None
    """also compare subsets by the values of this field; `task` names lm-eval's tasks"""
    pair: Literal["id", "text"] = "id"
    """by what items are paired: their ids, if their texts agree, or texts that occur once"""

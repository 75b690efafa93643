"""For systems that read files, which may be damaged or hostile: rows, cells, and limits of size."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from interp.files import check_fits as check_fits
    from interp.files import read_bytes as read_bytes
    from interp.files import reading as reading
    from interp.prompts.files import Row as Row
    from interp.prompts.files import parse_each as parse_each
    from interp.prompts.files import read_json as read_json
    from interp.prompts.files import read_rows as read_rows
    from interp.prompts.sheets import Cells as Cells
    from interp.prompts.sheets import LackingColumnsError as LackingColumnsError
else:
    from interp.surface import offered

    __all__, __getattr__, __dir__ = offered(__name__, __file__)

"""`pytest -p tests.support.checked_types`: check the types and shapes of every call.

An int passes for a float, as in PEP 484.
"""

from jaxtyping import install_import_hook

install_import_hook(
    ["interp", "interp_probes", "interp_experiments"],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

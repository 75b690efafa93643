"""Attribution methods, one per file; `interp.attribution.registry` lists them."""

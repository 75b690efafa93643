"""Attribution methods, one a file; `interp.attribution.registry` lists them."""

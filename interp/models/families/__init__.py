"""Everything that this package knows about single families of models.

`modules` names their modules, `settings` reads their configurations, and `attention` computes the
variants of their attention.
"""

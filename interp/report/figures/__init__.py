"""Figures from tables in long form: each takes `ax`, returns the axes and states n."""

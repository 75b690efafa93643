"""Figures from tables in long form. Each function takes `ax`, returns the axes and states n."""

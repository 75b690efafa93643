"""Display of results as tables, figures and pages."""

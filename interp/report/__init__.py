"""Results displayed as tables, figures and pages."""

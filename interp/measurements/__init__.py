"""What can be measured of a model: rows of tables from prompts."""

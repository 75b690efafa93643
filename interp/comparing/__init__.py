"""Two or more logs of the same items, whatever wrote them: aligned, compared, shown."""

"""Effects of segments, exchanged with those of donors."""

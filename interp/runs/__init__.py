"""Run folders: shards on disk, resumed where they stopped."""

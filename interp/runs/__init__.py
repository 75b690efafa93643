"""Run folders: shards on disk, shared by workers, resumed where they stopped."""

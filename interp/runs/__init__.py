"""Run folders: shards on disk, shared by workers and resumable."""

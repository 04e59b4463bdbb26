"""The command line: every `undertorch` command, and nothing else."""

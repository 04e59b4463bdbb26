"""The example chapter's probes: all of it that runs beside a student's code."""

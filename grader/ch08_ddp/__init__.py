"""Probes, checks and known answers of chapter 8, distributed data parallel."""

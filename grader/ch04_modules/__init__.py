"""Probes, checks and known answers of chapter 4, modules."""

"""Probes, checks and known answers of chapter 1, number formats."""

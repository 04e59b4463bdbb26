"""Probes, checks and known answers of chapter 6, the DataLoader."""

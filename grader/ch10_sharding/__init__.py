"""Probes, checks and known answers of chapter 10, models that do not fit."""

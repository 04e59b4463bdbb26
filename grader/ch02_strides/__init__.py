"""Probes, checks and known answers of chapter 2, strides."""

"""Probes, checks and known answers of chapter 5, autograd control."""

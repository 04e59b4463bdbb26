"""Probes, checks and known answers of chapter 3, matmul."""

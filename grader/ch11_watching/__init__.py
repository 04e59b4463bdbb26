"""Chapter 11: probes, checks and known answers."""

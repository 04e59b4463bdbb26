"""Chapter 9: probes, checks and known answers."""

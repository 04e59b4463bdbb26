"""Chapter 7: probes, checks and known answers."""

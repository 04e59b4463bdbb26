"""Chapter 2's reference solutions against torch and other oracles, far beyond what grading asks."""

"""Chapter 3's reference solutions against torch, far beyond what grading asks."""

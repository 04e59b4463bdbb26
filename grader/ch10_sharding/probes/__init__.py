"""Chapter 10's probes: all of the chapter that runs beside a student's code."""

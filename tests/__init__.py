"""Tests of Undertorch itself."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
"""The repository, which is a course."""

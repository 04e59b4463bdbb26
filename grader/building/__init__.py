"""Makes notebooks, site pages, variants and sample classes from the chapters' sources."""

import grader.course  # noqa: F401 (before nbformat: it spares its import a second)

"""Makes notebooks, site pages, variants and sample classes from the chapters' sources."""

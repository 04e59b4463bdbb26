"""From questions and evidence to points, outcomes and the diagnosis."""

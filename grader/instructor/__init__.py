"""What an instructor does around nbgrader: grade in parallel, look at scores, judge again."""

"""What a course holds: chapters, exercises, cards, rules, parameters, known answers."""

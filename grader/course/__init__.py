"""What a course holds: chapters, exercises, cards, rules, parameters, known answers."""

import sys

# nbformat imports jsonschema, which tries this package, to check addresses of which no notebook has any:
# its grammar costs each process that reads a notebook 1.2 s. Jupyter's server, which may want it, has it.
sys.modules.setdefault("rfc3987_syntax", None)  # type: ignore[arg-type]

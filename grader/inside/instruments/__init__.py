"""What counts ops, copies, saved tensors, graph breaks, collectives while a probe runs."""

"""Round trips between nodes: wanted (matrix), made (netem or the user-space switch), measured (ping)."""

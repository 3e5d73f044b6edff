"""How a running job comes to another set of nodes: one style, one file. Each is a function that returns once
the job runs there, and raises where it does not: the caller then brings the job back to what ran before."""

"""fogscale: compares autoscalers for data stream processing in the fog.

This package is the front door: the command line, errors, settings, and what examples import. Behind it stand
`controller` (policies, the loop, testbeds), `workloads` (what is replayed), `analysis` (Spark),
`paper_figures` (the papers) and `fog` (the machinery behind the playbooks).
"""

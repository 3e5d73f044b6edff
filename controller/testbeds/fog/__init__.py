"""The real fog: Raspberry Pis, or emulated nodes of one Linux machine, built by the playbooks.

    inventory/<testbed>  ─►  preflight.problems          nothing is touched while there are any
            │
            ▼
    local:  rootfs.ensure ─► nodes.bring_up ─► supervisor (one process everything dies with)
            │                                    ├─ systemd-nspawn per node, in its own cgroups and namespaces
            │                                    └─ switch.py: delays frames by matrix.rtt_matrix
            ▼
    roles node_baseline, fog_network (netem.py builds the tc commands), then the cluster and the services
            │
            ▼
    testbed.json (manifest.py)  ─►  status.py: what was wanted beside what probe.py measures

Decisions (matrix, netem, judging a machine, comparing definitions) are pure; supervisor.py, rootfs.py and
probe.py touch the machine. Ansible reaches them through thin modules and filters of the roles.
"""

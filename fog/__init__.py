"""The machinery behind the playbooks: the real fog on Raspberry Pis, or on emulated nodes of one machine.

    inventory/<testbed>  ─►  checks/preflight            nothing is touched while there are problems
            │
            ▼
    local:  artifacts/ ─► emulation/nodes ─► emulation/supervisor (one process everything dies with)
            │                                    ├─ systemd-nspawn per node, in its own cgroups and namespaces
            │                                    └─ network/switch: delays frames by network/matrix
            ▼
    roles node_baseline, fog_network (network/netem builds the tc commands), then the cluster and services/
            │
            ▼
    testbed.json (manifest)  ─►  checks/status: what was wanted beside what checks/probe measures

Decisions (matrix, netem, judging a machine, comparing definitions) are pure; emulation/supervisor,
artifacts/rootfs and checks/probe touch the machine. Ansible reaches them through thin modules and filters of
the roles. Nothing here knows of policies, runs or the loop.
"""

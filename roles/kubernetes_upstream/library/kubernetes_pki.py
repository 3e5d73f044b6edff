#!/usr/bin/python
"""Ansible module: the certificates of a cluster, on the machine that controls it."""

from __future__ import annotations

from pathlib import Path

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.fog import plain_errors

DOCUMENTATION = """
module: kubernetes_pki
short_description: Makes an authority, certificates and kubeconfigs, where they are missing or run out
options:
  folder: {type: path, required: true, description: Where they are kept, mode 0600.}
  server: {type: str, required: true, description: URL of the API server.}
  certificates: {type: list, elements: dict, required: true, description: 'name, user, group, hosts of each.'}
  kubeconfigs: {type: list, elements: str, required: true, description: Names that get a kubeconfig.}
  admin_kubeconfig: {type: path, required: true, description: Where that of the administrator is copied to.}
author: [fogscale]
"""


def main() -> None:
    module = AnsibleModule(
        argument_spec={
            "folder": {"type": "path", "required": True},
            "server": {"type": "str", "required": True},
            "certificates": {"type": "list", "elements": "dict", "required": True},
            "kubeconfigs": {"type": "list", "elements": "str", "required": True},
            "admin_kubeconfig": {"type": "path", "required": True},
        },
    )
    with plain_errors(module):
        run(module)


def run(module: AnsibleModule) -> None:
    from fog.services.pki import Certificate, ensure, kubeconfig, write_private

    given = module.params
    folder = Path(given["folder"])
    wanted = [
        Certificate(each["name"], each["user"], each.get("group", ""), tuple(each.get("hosts", ())))
        for each in given["certificates"]
    ]
    made = ensure(folder, wanted)
    for name in given["kubeconfigs"]:
        if write_private(folder / f"{name}.kubeconfig", kubeconfig(folder, name, given["server"])):
            made.append(f"{name}.kubeconfig")
    if write_private(Path(given["admin_kubeconfig"]), kubeconfig(folder, "admin", given["server"])):
        made.append("admin_kubeconfig")
    module.exit_json(changed=bool(made), made=made)


if __name__ == "__main__":
    main()

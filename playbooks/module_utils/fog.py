"""What those of our modules have in common that run on the control machine, beside fogscale itself."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import NoReturn

from ansible.module_utils.basic import AnsibleModule


@contextmanager
def plain_errors(module: AnsibleModule) -> Iterator[None]:
    """A complaint of fogscale, or that it is not here at all, is one line and no traceback. Modules import
    fogscale inside."""
    try:
        from fogscale.errors import FogscaleError

        try:
            yield
        except (FogscaleError, OSError) as error:
            module.fail_json(msg=str(error))
    except ImportError as error:
        module.fail_json(
            msg=f"fogscale is not installed beside Ansible ({error}): 'make setup', then use .venv/bin"
        )


def enter_network(state_folder: str) -> None:
    """Emulated nodes have a network of their own, which this process is in from now on; the empty folder
    stands for real ones, which need no such thing."""
    if not state_folder:
        return
    from pathlib import Path

    from fog.emulation.namespaces import set_namespace
    from fog.emulation.state import State

    set_namespace(State(Path(state_folder)).network())


def exit_with_problems(module: AnsibleModule, problems: list[str]) -> NoReturn:
    """Of a module that only looks: fails with one line each, or ends well."""
    if problems:
        module.fail_json(msg="\n".join(problems))
    module.exit_json(changed=False)
    raise AssertionError("exit_json does not return")

"""YAML and JSON of files, read strictly: a key that stands twice, a value that refers to itself and a text
that unfolds without end are errors in words, where YAML itself takes them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from fogscale.errors import FogscaleError
from fogscale.files import read_document

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there
DEEPEST = 50  # levels; the deepest experiment has ten
LARGEST = 100_000  # values, each counted as often as aliases repeat it
LONGEST_NUMBER = 400  # digits; the largest float has 309
_INTEGER = "tag:yaml.org,2002:int"
_MERGE = "tag:yaml.org,2002:merge"


def read_yaml(path: Path) -> Any:
    """What a file holds. Raises OSError where it cannot be read, and FogscaleError where it is no YAML."""
    try:
        text = read_document(path)
    except UnicodeDecodeError as error:
        raise FogscaleError(f"{path} is not a text in UTF-8: name another file, or save it as one") from error
    return yaml_of(text, str(path))


def read_mapping(path: Path, what: str, advice: str) -> Mapping[str, Any]:
    """The keys and values of a YAML file; `advice` says how to come by one where it is no such file."""
    try:
        values = read_yaml(path)
    except OSError as error:
        raise FogscaleError(f"cannot read {what} {path}: {error.strerror}") from error
    if not isinstance(values, Mapping):
        raise FogscaleError(f"{path} holds no {what}: {advice}")
    return values


def read_json(path: Path) -> Any:
    """What a file holds. Raises OSError where it cannot be read, and FogscaleError where it is no JSON."""
    try:
        return json.loads(read_document(path))
    except (ValueError, RecursionError) as error:  # no UTF-8, no JSON, too deep, an integer too long
        raise FogscaleError(f"{path} is not JSON: {_short(error)}") from error


def yaml_of(text: str, origin: str) -> Any:
    """The value that a text stands for; `origin` says in errors where it comes from."""
    try:
        _check_depth(text)
        loader = _Loader(text)
        try:
            node = loader.get_single_node()
            if node is None:
                return None
            _check(node, {}, set())
            return loader.construct_document(node)
        finally:
            loader.dispose()
    except yaml.YAMLError as error:
        raise FogscaleError(f"{origin} is not YAML: {_short(error)}") from error
    except (ValueError, OverflowError, RecursionError) as error:  # a date of the 99th, an integer too long
        raise FogscaleError(f"{origin}: {_short(error)}") from error


def _short(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= 300 else f"{text[:300]} …"


def _check_depth(text: str) -> None:
    """Before anything is built, which takes a call for each level."""
    depth = 0
    for event in yaml.parse(text, Loader=_Loader):
        if isinstance(event, (yaml.MappingStartEvent, yaml.SequenceStartEvent)):
            depth += 1
            if depth > DEEPEST:
                line = event.start_mark.line + 1 if event.start_mark else "?"
                raise ValueError(f"line {line}: more than {DEEPEST} levels of nesting: flatten it")
        elif isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
            depth -= 1


def _check(node: Any, sizes: dict[int, int], open_nodes: set[int]) -> int:
    """How many values a node stands for; an alias counts as all that it repeats."""
    identity = id(node)
    if identity in sizes:
        return sizes[identity]
    line = node.start_mark.line + 1
    if identity in open_nodes:
        raise ValueError(f"line {line}: a value contains itself: write it out")
    open_nodes.add(identity)
    size = 1
    if isinstance(node, yaml.MappingNode):
        _check_keys(node)
        for key, value in node.value:
            size += _check(key, sizes, open_nodes) + _check(value, sizes, open_nodes)
    elif isinstance(node, yaml.SequenceNode):
        size += sum(_check(value, sizes, open_nodes) for value in node.value)
    elif node.tag == _INTEGER and len(node.value) > LONGEST_NUMBER:
        raise ValueError(f"line {line}: a number of {len(node.value)} digits: give a smaller one")
    if size > LARGEST:
        raise ValueError(f"line {line}: aliases unfold to more than {LARGEST} values: write less")
    open_nodes.discard(identity)
    sizes[identity] = size
    return size


def _check_keys(node: yaml.MappingNode) -> None:
    seen: set[tuple[str, str]] = set()
    for key, _ in node.value:
        if isinstance(key, yaml.ScalarNode) and key.tag != _MERGE:
            name = (key.tag, key.value)
            if name in seen:
                line = key.start_mark.line + 1
                raise ValueError(f"line {line}: the key '{key.value[:80]}' stands twice: keep one of them")
            seen.add(name)

"""`fogscale control`: arguments in, lines out; what the user can fix is said before anything is touched."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated, Any, get_args

import typer
from rich.table import Table

from controller.control.settings import Style, Wanted, settings_from
from fogscale.clock import clock
from fogscale.console import Json, out, print_json
from fogscale.errors import FogscaleError, unknown
from fogscale.files import read_document
from fogscale.settings import seconds_of

Policies = Annotated[str, typer.Option(help="Who decides; with --dry-run several, separated by commas.")]
Job = Annotated[str | None, typer.Option(help="Name or id of the job; default: the only one that runs.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only watch: journal what each policy would do.")]
Operators = Annotated[
    str, typer.Option(help="Operators that may be scaled, separated by commas; default: all but sources.")
]
MaxReplicas = Annotated[
    int | None, typer.Option(min=1, help="Of each operator; default: as many as there are slots.")
]
Duration = Annotated[
    str | None, typer.Option("--for", help="How long, e.g. 2h; default: until Ctrl-C or the job's end.")
]
Window = Annotated[str, typer.Option(help="Over which rates and ratios are taken.")]
Scrape = Annotated[str, typer.Option(help="How often Prometheus reads the reporters.")]
Cores = Annotated[
    float | None, typer.Option(help="Cores of a TaskManager, where a container has fewer than its JVM sees.")
]
SettingsFile = Annotated[
    Path | None, typer.Option(help="YAML: policies (parameters, guards, aliases), guards, rtt_ms.")
]

# How to rescale
StyleName = Annotated[
    str, typer.Option(help="How to rescale: in_place (adaptive scheduler) or restart (savepoint, --jar).")
]
Jar = Annotated[Path | None, typer.Option(help="The job's jar, for --style restart.")]
EntryClass = Annotated[str | None, typer.Option(help="Its main class; default: the jar's.")]
Arguments = Annotated[str, typer.Option(help="Its arguments, as in a shell.")]

# Whom to ask, and how to get in
FlinkUrl = Annotated[str, typer.Option(help="URL of Flink's REST API, e.g. http://jobmanager:8081.")]
PrometheusUrl = Annotated[str, typer.Option(help="URL of the Prometheus that reads Flink's reporters.")]
Ca = Annotated[Path | None, typer.Option(help="Whom to trust as Flink (PEM).")]
Certificate = Annotated[Path | None, typer.Option(help="Our certificate for Flink (PEM).")]
Key = Annotated[Path | None, typer.Option(help="Its key (PEM).")]
Token = Annotated[Path | None, typer.Option(help="File with a bearer token for Flink.")]
PrometheusCa = Annotated[Path | None, typer.Option(help="Whom to trust as Prometheus (PEM).")]
PrometheusToken = Annotated[Path | None, typer.Option(help="File with a bearer token for Prometheus.")]
PrometheusLogin = Annotated[Path | None, typer.Option(help="File with user:password for Prometheus.")]
Journals = Annotated[Path, typer.Option("--out", help="Folder of the journals.")]


def control(
    flink: FlinkUrl,
    prometheus: PrometheusUrl,
    policy: Policies,
    job: Job = None,
    dry_run: DryRun = False,
    style: StyleName = "in_place",
    jar: Jar = None,
    entry_class: EntryClass = None,
    arguments: Arguments = "",
    operators: Operators = "",
    max_replicas: MaxReplicas = None,
    duration: Duration = None,
    window: Window = "60s",
    scrape: Scrape = "15s",
    cores: Cores = None,
    settings: SettingsFile = None,
    ca: Ca = None,
    certificate: Certificate = None,
    key: Key = None,
    token: Token = None,
    prometheus_ca: PrometheusCa = None,
    prometheus_token: PrometheusToken = None,
    prometheus_login: PrometheusLogin = None,
    results: Journals = Path("results/control"),
    as_json: Json = False,
) -> None:
    """Drive a Flink of your own, or watch (--dry-run) what policies would do with it."""
    from controller.control.driving import Application
    from controller.control.following import follow
    from controller.testbeds.flink.http import Door

    wanted = Wanted(
        _names(policy), job, _names(operators), max_replicas, _seconds(window, "--window"),
        _seconds(scrape, "--scrape"), cores, None if duration is None else _seconds(duration, "--for"),
        _style(style), dry_run,
    )  # fmt: skip
    doors = (
        Door(flink, _text(ca), _text(certificate), _text(key), _text(token)),
        Door(prometheus, _text(prometheus_ca), None, None, _text(prometheus_token), _login(prometheus_login)),
    )
    application = None if jar is None else Application(jar, entry_class, tuple(shlex.split(arguments)))
    told = follow(wanted, doors, application, settings_from(settings), results, as_json)
    print_json(told) if as_json else _show(told)


def _style(name: str) -> Style:
    if name not in get_args(Style):
        raise FogscaleError(unknown("style", name, get_args(Style)))
    return "restart" if name == "restart" else "in_place"


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _seconds(text: str, option: str) -> float:
    try:
        seconds = float(seconds_of(text))
    except ValueError as error:
        raise FogscaleError(f"{option}: {error}") from None
    if seconds <= 0:
        raise FogscaleError(f"{option}: {text} is no span of time: give e.g. 30s")
    return seconds


def _text(file: Path | None) -> str | None:
    try:
        return None if file is None else read_document(file).strip() + "\n" * (file.suffix == ".pem")
    except OSError as error:
        raise FogscaleError(f"cannot read {file}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise FogscaleError(f"{file} is no text in UTF-8: name another file") from None


def _login(file: Path | None) -> tuple[str, str] | None:
    text = _text(file)
    if text is None:
        return None
    user, colon, password = text.strip().partition(":")
    if not colon:
        raise FogscaleError(f"{file} holds no user:password: write both in one line")
    return user, password


def _show(told: dict[str, Any]) -> None:
    out.print(f"\n{told['ended']} after {clock(told['seconds'])}:", highlight=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("policy")
    for title in ("looks", "without metrics", "changes wanted", "mean replicas", "fewest–most", "content"):
        table.add_column(title, justify="right")
    for name, each in told["policies"].items():
        mean, content = each["mean_replicas_wanted"], each["content_ratio"]
        table.add_row(
            name,
            str(each["looks"]),
            str(each["without_metrics"]),
            str(each["changes_wanted"]),
            "–" if mean is None else f"{mean:.2f}",
            f"{each['fewest_wanted']}–{each['most_wanted']}",
            "–" if content is None else f"{content:.0%}",
        )
    out.print(table)
    out.print(f"journals: {told['folder']}", highlight=False, soft_wrap=True)

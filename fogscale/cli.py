"""The command line. Every command reads its arguments, calls one function and prints; what the user can fix
is one line with the fix and exit code 2."""

from __future__ import annotations

import fogscale.early  # noqa: F401

# isort: split
import json
import os
import sys
import threading
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict
from importlib.resources import files
from io import TextIOWrapper
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text

from analysis.validation_command import validate
from controller import experiment as experiments
from controller import policies as policy_registry
from controller import testbeds as testbed_registry
from controller.containment import in_words
from controller.control.command import control
from controller.journal import read as read_journal
from controller.journal import unchecked
from controller.learned import read as read_learned
from controller.loop import Progress
from controller.protocol.command import protocol_app
from controller.recording import COMPARISONS, JOURNAL
from controller.replay import differences
from controller.run import decided_by, prepare
from controller.testbeds.flink.accuracy_command import accuracy
from controller.testbeds.flink.faults.command import faults
from fog.command import testbed_app
from fogscale.console import (
    Json,
    Results,
    has_printed_json,
    interrupted,
    out,
    print_json,
    print_nothing_but_json,
    progress_bar,
    spark_session,
)
from fogscale.errors import FogscaleError, Interrupted, one_line, warn
from fogscale.files import alone
from fogscale.recorded_runs import record
from fogscale.signals import ignore_endings, on_ending
from paper_figures.command import calibrate, figures, plausible, sensitivity
from workloads.command import workloads_app
from workloads.importing.command import trace_app
from workloads.producer.command import audit, produce

INTERRUPTED, FAULT = 130, 70  # exit codes, as shells and sysexits.h have them

app = typer.Typer(
    help="Compares autoscalers for stream processing in the fog.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.add_typer(workloads_app, name="workloads")
app.add_typer(trace_app, name="trace")
app.add_typer(testbed_app, name="testbed")
app.add_typer(protocol_app, name="protocol")

Fresh = Annotated[bool, typer.Option("--fresh", help="Start over; an earlier journal is set aside.")]
Workload = Annotated[
    str | None, typer.Option(help="A workload's name, or a CSV of your own; default: the experiment's.")
]


ExperimentFile = Annotated[
    Path | None,
    typer.Argument(help="Experiment file, or a paper's name; default: the paper that has the policies."),
]
ScenarioName = Annotated[str | None, typer.Option(help="Scenario of the experiment; default: its first.")]
Policies = Annotated[list[str] | None, typer.Option(help="Policies to run; default: all of the experiment.")]
Seeds = Annotated[
    list[int] | None, typer.Option(min=0, help="Seeds to run; default: as many as the experiment says.")
]
TestbedName = Annotated[
    str | None,
    typer.Option(help="Where to run: local, pi, or a kind (fogscale testbeds); default: the experiment's."),
]
Span = Annotated[
    str | None, typer.Option(help="How much of the load a real testbed runs, e.g. 48h; default: as written.")
]
Profile = Annotated[
    Path | None, typer.Option(help="A measured testbed (fogscale calibrate): simulate it, or take its rates.")
]
WarmStart = Annotated[
    Path | None, typer.Option(help="What a policy has learned before: the learned.json of a run.")
]
Analyze = Annotated[bool, typer.Option("--analyze", help="Analyse in Spark and write the report.")]


def main() -> None:
    """The entry point: whatever the user can fix becomes one line and exit code 2, an interruption one
    and 130."""
    on_ending(interrupted)
    for stream in (sys.stdout, sys.stderr):  # a terminal that knows no such sign gets its number
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if "--json" in sys.argv:
        print_nothing_but_json()
    try:
        code = app(sys.argv[1:] or ["--help"], standalone_mode=False)
        if code == INTERRUPTED:  # so typer ends a KeyboardInterrupt, as Spark raises it
            raise KeyboardInterrupt
        sys.stdout.flush()
        ignore_endings()  # Python gives handlers up before it ends, and what comes then would kill it
        _leave_threads(0)
    except Interrupted as error:
        _fail(str(error), INTERRUPTED)
    except KeyboardInterrupt:
        _fail("interrupted", INTERRUPTED)
    except FogscaleError as error:
        _fail(str(error))
    except typer.TyperException as error:  # a wrong command, option or argument
        _fail(f"{getattr(error, 'format_message', error.__str__)()} (--help lists what there is)")
    except BrokenPipeError:
        _discard_output()  # the reader has seen enough
    except OSError as error:  # of a path nobody foresaw, or of an output that is full
        place = f"{error.filename}: " if error.filename is not None else ""
        _fail(f"{place}{error.strerror or error}: see that it is there, is yours and has room")
    except (MemoryError, RecursionError) as error:
        _fail(f"what was given is too large or too deep ({type(error).__name__}): give less of it")
    except Exception as error:
        if os.environ.get("FOGSCALE_TRACEBACK"):
            raise
        _fail(
            f"a fault of its own: {in_words(error)}; please report it with what FOGSCALE_TRACEBACK=1 in the"
            " environment shows",
            FAULT,
        )


def _fail(message: str, code: int = 2) -> None:
    """One line for people to standard error; with --json, one document to standard output as well."""
    ignore_endings()
    line = one_line(message)
    try:
        if "--json" in sys.argv and not has_printed_json():  # one document: a report comes before the error
            print_json({"error": line, "exit_code": code})
        sys.stdout.flush()
    except OSError:
        _discard_output()
    with suppress(OSError):
        print(f"fogscale: {line}", file=sys.stderr, flush=True)
    _leave_threads(code)
    sys.exit(code)


def _leave_threads(code: int) -> None:
    """Python would wait for a thread that a plug-in has started, and perhaps for ever."""
    if any(not each.daemon for each in threading.enumerate() if each is not threading.main_thread()):
        os._exit(code)


def _discard_output() -> None:
    """Else Python would try once more to write what is left, and complain when it ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def default_experiment(policies: Sequence[str] = ()) -> Path:
    """That of the first paper which has all these policies; of Gesscale where none has."""
    from paper_figures.published import papers

    gesscale = Path(str(files("paper_figures.gesscale") / "experiment.yml"))
    candidates = [gesscale, *(folder / "experiment.yml" for folder in papers())]
    known = (path for path in candidates if set(policies) <= set(experiments.load(path).policies))
    return next(known, gesscale)


def _experiment(file: Path | None, policies: Sequence[str], scenario: str | None) -> experiments.Experiment:
    return experiments.scenario_of(_whole(None, file, policies), scenario)


def _whole(testbed: str | None, file: Path | None, policies: Sequence[str]) -> experiments.Experiment:
    """An experiment file, the one of a paper by its name, or by default that of the testbed, or that in which
    the policies belong; with all its scenarios."""
    from paper_figures.published import papers

    if testbed is not None and file is None and testbed in (own := testbed_registry.built()):
        return experiments.load(own[testbed])
    named = {folder.name: folder / "experiment.yml" for folder in papers()}
    return experiments.load(default_experiment(policies) if file is None else named.get(str(file), file))


def _on(
    testbed: str | None,
    file: Path | None,
    policies: Sequence[str],
    scenario: str | None,
    span: str | None,
    profile: Path | None = None,
) -> experiments.Experiment:
    """The experiment on the testbed that is wanted; those that an inventory builds have experiments of their
    own."""
    if profile is not None:
        return _as_measured(profile, testbed, file, scenario, span)
    is_built = testbed in testbed_registry.built()
    experiment = experiments.scenario_of(_whole(testbed, file, policies), scenario)
    if is_built and not testbed_registry.has_to_be_built(experiment.testbed):
        raise FogscaleError(
            f"experiment '{experiment.name}' is for the {experiment.testbed.kind} testbed: leave it out, or"
            " write one whose testbed is of the kind flink, as controller/testbeds/flink/local.yml"
        )
    if testbed is not None and not is_built:
        experiment = experiments.on_testbed(experiment, testbed)
    elif is_built:
        experiment = experiments.varied(experiment, {"testbed.name": testbed})
    if span is None:
        return experiment
    if "span_s" not in type(experiment.testbed).model_fields:
        raise FogscaleError("--span: only a real testbed runs a part of the load: leave it out")
    return experiments.varied(experiment, {"testbed.span_s": span})


def _as_measured(
    file: Path, testbed: str | None, experiment_file: Path | None, scenario: str | None, span: str | None
) -> experiments.Experiment:
    """The experiment that was measured (or a file), simulated as the profile says; on a real testbed, with
    the profile's rates."""
    from controller.calibration.profile import load_profile, simulated, with_ladder

    profile = load_profile(file)
    built = testbed if testbed in testbed_registry.built() else profile.experiment.partition(".")[0]
    real = _on(built if built in testbed_registry.built() else None, experiment_file, (), scenario, span)
    if testbed in testbed_registry.built():
        return with_ladder(real, profile)
    if testbed not in (None, "simulated"):
        raise FogscaleError(f"--profile: it tells how to simulate, not how '{testbed}' works: leave one out")
    return simulated(real, profile)


@app.command("policies")
def list_policies(as_json: Json = False) -> None:
    """List every autoscaler with its parameters and what it needs of a testbed."""
    described = [policy_registry.describe(name) for name in policy_registry.names()]
    broken = policy_registry.broken()
    if as_json:
        rows = [{**asdict(policy), "broken": None} for policy in described]
        print_json([*rows, *({"name": name, "broken": reason} for name, reason in broken.items())])
        return
    for policy in described:
        out.print(Text.assemble((policy.name, "bold"), f"  {policy.summary}"))
        for parameter in policy.parameters:
            value = f"    {parameter['name']} = {parameter['default']}   "
            out.print(Text.assemble(value, (parameter["description"], "dim")))
        out.print(f"    needs: {', '.join(policy.needs) or 'nothing'}\n", highlight=False, style="dim")

    for name, reason in broken.items():
        out.print(Text.assemble((name, "bold"), (f"  broken: {reason}", "red")), soft_wrap=True)


@app.command("testbeds")
def list_testbeds(as_json: Json = False) -> None:
    """List every kind of testbed with what it offers to policies."""
    described = [testbed_registry.describe(name) for name in testbed_registry.names()]
    broken = testbed_registry.broken()
    if as_json:
        rows = [{**asdict(testbed), "broken": None} for testbed in described]
        print_json([*rows, *({"name": name, "broken": reason} for name, reason in broken.items())])
        return
    for testbed in described:
        out.print(Text.assemble((testbed.name, "bold"), f"  {testbed.summary}"))
        out.print(f"    offers: {', '.join(testbed.offers) or 'nothing'}", highlight=False)
        if testbed.may_offer:
            out.print(f"    with some settings also: {', '.join(testbed.may_offer)}", highlight=False)
        out.print(f"    settings: {', '.join(testbed.settings) or 'none'}\n", highlight=False, style="dim")
    for name, reason in broken.items():
        out.print(Text.assemble((name, "bold"), (f"  broken: {reason}", "red")), soft_wrap=True)


@app.command()
def run(
    file: ExperimentFile = None,
    policy: Policies = None,
    workload: Workload = None,
    scenario: ScenarioName = None,
    seed: Seeds = None,
    testbed: TestbedName = None,
    span: Span = None,
    profile: Profile = None,
    warm_start: WarmStart = None,
    results: Results = Path("results"),
    fresh: Fresh = False,
    analyze_too: Analyze = False,
    as_json: Json = False,
) -> None:
    """Run an experiment; a run that was interrupted goes on where it stopped."""
    experiment = _on(testbed, file, policy or [], scenario, span, profile)
    runs = experiments.runs_of(experiment, policy or None, seed or None, workload)
    if warm_start is not None:
        runs = [each.model_copy(update={"learned": read_learned(warm_start, each.policy)}) for each in runs]
    testbed_registry.bring_up(experiment.topology.build(), experiment.testbed)
    recorded = record(runs, results, fresh, spark_follows=analyze_too)
    folders = [results / each.folder for each in recorded.done]
    if analyze_too and folders:
        # One run is reported beside itself, several beside each other.
        together = folders[0] if len(folders) == 1 else results / f"experiment={experiment.name}"
        _analyze(together, as_json and not recorded.failed, _published(experiment, workload), recorded.done)
    elif as_json and not recorded.failed:
        print_json([str(folder) for folder in folders])
    elif not as_json:
        for folder in folders:
            out.print(f"recorded {folder}", highlight=False, soft_wrap=True)
    recorded.tell_failures()


@app.command()
def campaign(
    file: ExperimentFile = None,
    policy: Policies = None,
    scenario: Annotated[
        list[str] | None, typer.Option(help="Scenarios to run; default: all of the experiment.")
    ] = None,
    seed: Seeds = None,
    testbed: Annotated[
        str | None, typer.Option(help="Where to run: local, pi, or a kind; default: the file's, else local.")
    ] = None,
    span: Span = None,
    records: Annotated[
        Path, typer.Option(help="Folder for the records: of each run, its compressed journal and manifest.")
    ] = Path("results/records"),
    results: Results = Path("results"),
    as_json: Json = False,
) -> None:
    """Run and record all of an experiment on a real testbed; the same command goes on where it stopped."""
    from controller.campaign.running import carry_out, refuse_what_cannot_run

    testbed = "local" if testbed is None and file is None else testbed
    names = scenario or list(experiments.scenarios_of(_whole(testbed, file, policy or [])))
    parts = [_on(testbed, file, policy or [], name or None, span) for name in names]
    runs = [each for part in parts for each in experiments.runs_of(part, policy or None, seed or None)]
    refuse_what_cannot_run(runs)
    testbed_registry.bring_up(parts[0].topology.build(), parts[0].testbed)

    def shown(each: experiments.Run, number: int) -> AbstractContextManager[Progress | None]:
        label = f"{each.experiment} {each.policy}, seed {each.seed} ({number}/{len(runs)})"
        return progress_bar(label, prepare(each).duration_s)

    kept = []
    for each in carry_out(runs, results, records, shown):
        kept.append({"run": each.run.id, "record": str(each.record), "audit": each.audit})
        if not as_json:
            how = "was recorded before" if each.was_there else "recorded"
            out.print(f"{each.run.id}: {how}{_audited(each.audit)}", highlight=False, soft_wrap=True)
    if as_json:
        print_json(kept)


def _audited(audit: Mapping[str, Any]) -> str:
    if not audit:
        return ""
    return f"; {audit['produced']} records produced, {audit['lost']} lost, {audit['doubled']} doubled"


@app.command("analyze")
def analyze_folder(
    folder: Annotated[Path, typer.Argument(help="A run's folder, or any folder above several.")],
    as_json: Json = False,
) -> None:
    """Analyse recorded runs in Spark: Parquet, metrics, tables and report.html."""
    _analyze(folder, as_json, None)


@app.command()
def compare(
    policies: Annotated[str, typer.Option(help="Two or more policies, separated by commas.")],
    workload: Workload = None,
    scenario: ScenarioName = None,
    seeds: Annotated[int, typer.Option(min=2, help="How many seeds each policy runs with.")] = 20,
    file: ExperimentFile = None,
    results: Results = Path("results"),
    fresh: Fresh = False,
    as_json: Json = False,
) -> None:
    """Compare policies, run by run with the same load: who keeps service, and who does so cheapest."""
    chosen = [name.strip() for name in policies.split(",") if name.strip()]
    if len(set(chosen)) < 2:
        raise FogscaleError("name at least two different policies, e.g. --policies gesscale,thr_nlaware")
    experiment = _experiment(file, chosen, scenario)
    runs = experiments.runs_of(experiment, chosen, range(1, seeds + 1), workload)
    folder = results / COMPARISONS / f"{'-'.join(chosen)}-{runs[0].workload_name}"
    recorded = record(runs, folder, fresh, spark_follows=True)
    if recorded.done:
        _analyze(folder, as_json and not recorded.failed, _published(experiment, workload), recorded.done)
    recorded.tell_failures()


def _published(
    experiment: experiments.Experiment, workload: str | None
) -> dict[str, dict[str, float]] | None:
    """The paper's own table, if this is its experiment on its own workload."""
    from paper_figures.published import load, papers

    paper, _, scenario = experiment.name.partition(".")
    folder = next((path for path in papers() if path.name == paper), None)
    if folder is None or workload not in (None, experiment.workload.name):
        return None
    return load(folder).tables.get(scenario)


def _analyze(
    folder: Path,
    as_json: bool,
    published: dict[str, dict[str, float]] | None,
    runs: list[experiments.Run] | None = None,
) -> None:
    """Analyses these runs, or all that the folder holds."""
    if not folder.is_dir():
        raise FogscaleError(f"there is no folder {folder}: name one that holds runs, e.g. results")
    with alone(folder, "analysis"), spark_session("analysing in Spark …") as spark:
        from analysis.analyze import analyze

        only = None if runs is None else [run.id for run in runs]
        report, metrics = analyze(folder, spark, published, only=only)
    from fogscale.comparison import comparison

    if as_json:
        print_json({"report": str(report), "metrics": json.loads(metrics.to_json(orient="records"))})
        return
    for (_, workload), rows in metrics.groupby(["experiment", "workload"]):
        out.print(str(workload), highlight=False, style="bold")
        out.print(comparison(rows, published or {}, out.width), highlight=False)
    out.print(f"report: {report}", highlight=False, soft_wrap=True)


@app.command("replay")
def replay_run(
    folder: Annotated[Path, typer.Argument(help="Folder of one recorded run (…/seed=1).")],
    policy: Annotated[str, typer.Option(help="The policy that decides again.")],
    as_json: Json = False,
) -> None:
    """Decide a recorded run again with any policy or recorded alias; show what differs."""
    recorded = read_journal(folder / JOURNAL)
    if recorded is None:
        raise FogscaleError(f"{folder} holds no journal: name the folder of a run (…/seed=1)")
    if recorded.chain is None:
        warn(unchecked(str(folder / JOURNAL)))
    found = list(differences(recorded.steps, prepare(decided_by(folder, policy)).policy()))
    if as_json:
        print_json([difference._asdict() for difference in found])
        return
    for difference in found:
        out.print(f"{difference.time_s / 60:7.1f} min  recorded: {difference.recorded}", highlight=False)
        out.print(f"             {policy}: {difference.now}", highlight=False)
    out.print(f"{len(found)} of {len(recorded.steps)} decisions differ")


# The commands of the other packages, below those above in the help.
for command in (
    figures,
    sensitivity,
    plausible,
    calibrate,
    validate,
    control,
    faults,
    accuracy,
    produce,
    audit,
):
    app.command()(command)


if __name__ == "__main__":
    main()

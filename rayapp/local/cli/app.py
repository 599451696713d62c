"""Command line: up, down, status, doctor, demo, add, search, recent, documents, import,
keys, job."""

import asyncio
import os
import pkgutil
import shlex
import symtable
import sys
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Annotated, NoReturn

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

import jobs
from rayapp.client.discovery import DEFAULT_DATA_DIR, key_advice, read_key
from rayapp.core.errors import ConfigError, DependencyDown, RayappError
from rayapp.core.settings.model import Settings
from rayapp.local.cli.documents import documents
from rayapp.local.cli.imports import import_
from rayapp.local.cli.keys import has_living_key, keys
from rayapp.local.cli.memories import (
    DataDir,
    add,
    recent,
    retention,
    search,
    settings_in,
    shared_options,
    typed_command,
)
from rayapp.local.cli.output import StartProgress, console, table_of
from rayapp.local.stack import stack
from rayapp.local.stack.checks import run_checks
from rayapp.local.stack.paths import StackPaths
from rayapp.local.stack.programs import PYTHON, python_path
from rayapp.local.stack.readiness import Readiness, ask
from rayapp.local.stack.state import StackState, Step, read_state
from rayapp.local.stack.supervisor import DEFAULT_APP, disk_of


def job_names() -> list[str]:
    """Modules of the package `jobs` that define `main`; none of them is imported."""
    return sorted(
        module.name
        for module in pkgutil.iter_modules(jobs.__path__)
        if not module.ispkg and _has_main(module.name)
    )


def checked_job(name: str) -> str:
    """`name`, if it is a job. Raises ConfigError with the list of jobs."""
    names = job_names()
    if name not in names:
        raise ConfigError(f"No job {name!r}: use one of {', '.join(names)}.")
    return name


def _has_main(name: str) -> bool:
    paths = (Path(folder) / f"{name}.py" for folder in jobs.__path__)
    source = next(path for path in paths if path.is_file())
    names = symtable.symtable(source.read_text(encoding="utf-8"), name, "exec")
    return "main" in names.get_identifiers()


EXIT_FAILED, EXIT_CONFIG, EXIT_DEPENDENCY = 1, 2, 4
HELP_OPTIONS = frozenset({"--help", "-h"})
MODELS = Path(__file__).resolve().parents[2] / "inference" / "models"
VERDICT_STYLE = {"ok": "green", "note": "yellow", "blocks": "bold red"}

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Memory for AI assistants.")
app.add_typer(keys, name="keys")
app.add_typer(documents, name="documents")

ProfileName = Annotated[str | None, typer.Option(help="local, gpu or prod.")]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"rayapp {metadata.version('rayapp')}")
        raise typer.Exit()


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and end.")
    ] = False,
) -> None:
    """Memory for AI assistants."""


@app.command()
def up(
    data_dir: DataDir = None,
    profile: ProfileName = None,
    wait: Annotated[bool, typer.Option(help="Return when /readyz answers 200.")] = True,
    application: Annotated[str, typer.Option("--app", hidden=True)] = DEFAULT_APP,
) -> None:
    """Start what the environment does not provide; a second call changes nothing."""
    settings = settings_of(data_dir, profile)
    with StartProgress(console) as progress:

        def show(step: Step) -> None:
            console.print(f"{step.name:<12} ready {step.seconds:6.2f} s")

        result = stack.up(
            settings, wait=wait, app=application, on_step=show, on_wait=progress.waiting
        )
    url = result.state.http_url
    if result.started and (said := stack.not_joined(settings_in(data_dir, profile))):
        console.print(said, soft_wrap=True)
    if not result.started:
        console.print(f"Already running at {url}; nothing was started.")
        if result.other_settings:
            console.print("It keeps its earlier settings: `rayapp down` first to change them.")
    elif wait:
        console.print(
            f"Ready at {url} after {result.ready_s:.1f} s "
            f"(console: {url}/console, API: {url}/docs).",
            soft_wrap=True,
        )
    else:
        console.print(f"Starting; `rayapp status` shows how far it is, {url or 'no address yet'}.")
    if wait and settings.keys_required and not settings.on_loopback:
        _warn_without_keys(settings, data_dir)


def _warn_without_keys(settings: Settings, data_dir: Path | None) -> None:
    if not has_living_key(data_dir):
        console.print(
            f"Warning: {settings.http.host} is open to other machines and nobody has a key, so "
            "every request is refused: make one with `rayapp keys create NAME --user USER`.",
            style="yellow",
        )


@app.command()
def down(data_dir: DataDir = None) -> None:
    """Stop what `up` started for this data directory, and nothing else."""
    folder = settings_of(data_dir).data.dir
    with console.status("stopping"):
        stopped = stack.down(folder)
    console.print("Stopped." if stopped else f"Nothing runs for {folder}.")


@app.command()
def status(data_dir: DataDir = None) -> None:
    """What runs for this data directory; exit code 1 when it cannot serve."""
    paths = StackPaths.of(settings_of(data_dir).data.dir)
    state = read_state(paths)
    if state is None:
        console.print(f"Nothing runs for {paths.data}: start it with `rayapp up`.", soft_wrap=True)
        raise typer.Exit(EXIT_FAILED)
    if not state.running:
        console.print(not_running(state), soft_wrap=True)
        raise typer.Exit(EXIT_FAILED)
    console.print(status_table(state))
    for line in places(state, paths):
        console.print(line, soft_wrap=True)
    disk = disk_of(paths, settings_of(data_dir)).look()
    if disk is not None:
        free = f"disk: {disk.free_bytes >> 20} MB free under {paths.data}"
        console.print(f"{disk.reason}." if disk.reason else free, soft_wrap=True)
    if state.error:
        console.print(state.error, style="red", soft_wrap=True)
    found = ask(state.http_url) if state.http_url else Readiness(False)
    phase = "" if state.phase == "ready" else f" ({state.phase})"
    console.print(f"{state.http_url}: {'ready' if found.ready else 'not ready'}{phase}")
    for reason in found.reasons:
        console.print(f"  {reason}", soft_wrap=True)
    if not found.ready:
        raise typer.Exit(EXIT_FAILED)


def not_running(state: StackState) -> str:
    """What became of a stack whose supervisor has ended, and what to do."""
    if state.phase == "failed":
        where = f"; see {state.log}" if state.log else ""
        return (
            f"The last start failed: {state.error.rstrip('.')}{where}. Mend that, then "
            "`rayapp up` starts it again."
        )
    return "Its supervisor was killed: `rayapp up` ends what is left and starts it again."


def places(state: StackState, paths: StackPaths) -> list[str]:
    """Where to look: logs, and the dashboard with its token."""
    lines = [f"logs of the servers: {paths.logs}"]
    if "RAY_AUTH_MODE" in state.environment:
        lines.append(f"logs of the application: {paths.ray_session_logs}/worker-*.err (JSON lines)")
        lines.append(f"logs of Ray Serve: {paths.ray_session_logs / 'serve'}")
        lines.append(f"  both kept by `rayapp down` in {paths.kept_ray_logs}")
    else:
        lines.append("logs of the application: on the nodes of the cluster")
    if state.dashboard_url:
        token = f"cat {shlex.quote(str(paths.token))}"
        asks = f" (it asks for a token: `{token}` prints it)" if paths.token.exists() else ""
        lines.append(f"dashboard: {state.dashboard_url}{asks}")
    return lines


def status_table(state: StackState) -> Table:
    table = table_of("process", "pid", "state", "version", "port", "restarts")
    for ref in (state.supervisor, *state.children):
        table.add_row(
            ref.name,
            str(ref.pid),
            "running" if ref.find() else "gone",
            state.versions.get(ref.name, ""),
            str(state.ports.get({"ray": "ray_gcs"}.get(ref.name, ref.name), "")),
            str(state.restarts.get(ref.name, 0)),
        )
    return table


@app.command()
def env(data_dir: DataDir = None) -> None:
    """Print what Ray's own commands need: `eval "$(rayapp env)"`, then `ray status`."""
    for name, value in stack.ray_environment(settings_of(data_dir).data.dir).items():
        typer.echo(f"export {name}={shlex.quote(value)}")


@app.command()
def doctor(data_dir: DataDir = None, profile: ProfileName = None) -> None:
    """Check every dependency; exit code 1 when something blocks, each with its fix."""
    checks = run_checks(settings_of(data_dir, profile), MODELS)
    table = table_of("part", "verdict", "found", "fix")
    for check in checks:
        style = VERDICT_STYLE[check.verdict]
        table.add_row(check.name, Text(check.verdict, style=style), check.found, check.fix)
    console.print(table)
    if any(check.verdict == "blocks" for check in checks):
        raise typer.Exit(EXIT_FAILED)


@app.command()
def demo(
    data_dir: DataDir = None,
    data: Annotated[Path | None, typer.Option(help="Folder with evaluation sets.")] = None,
    api_key_file: Annotated[
        Path | None,
        typer.Option(help="File that holds a key with the admin scope, where keys are required."),
    ] = None,
) -> None:
    """Start the stack if need be, store real input, ask a dozen questions, show the answers."""
    from rayapp.local.demo.material import material_of
    from rayapp.local.demo.runner import DEMO_KEY, run

    key = read_key(api_key_file)
    settings = settings_of(data_dir)
    if settings.keys_required and key is None:
        begin = "" if stack.is_running(settings.data.dir) else "start it with `rayapp up`, "
        raise ConfigError(key_advice(DEMO_KEY, shared_options(data_dir), begin=begin))
    material = material_of(data)  # what is wrong with it is said before a start of a minute
    # On a running stack it starts nothing, but waits until the service is ready.
    up(data_dir=data_dir)
    url = stack.url_of(settings.data.dir)
    raise typer.Exit(
        asyncio.run(
            run(
                url,
                material,
                console,
                api_key=key,
                program=typed_command(),
                options=shared_options(data_dir, api_key_file),
            )
        )
    )


# What people try first; they are in a file of their own.
for command in (add, search, recent, retention):
    app.command()(command)
app.command("import")(import_)


# Help is the job's own: `rayapp job NAME --help`.
@app.command(
    context_settings={"allow_extra_args": True, "ignore_unknown_options": True},
    add_help_option=False,
)
def job(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Module of the package jobs.")] = "--help",
    data_dir: DataDir = None,
) -> None:
    """Run `python -m jobs.NAME` with the remaining arguments, attached to the stack if one runs."""
    if name in HELP_OPTIONS:
        console.print(context.get_help())
        console.print(f"Jobs: {', '.join(job_names())}. Options of one: `rayapp job NAME --help`.")
        raise typer.Exit()
    command = [*PYTHON, "-m", f"jobs.{checked_job(name)}", *context.args]
    env = os.environ | python_path()
    if not HELP_OPTIONS & set(context.args):
        env = environment_of(data_dir, env)
    become(command, env)


def environment_of(data_dir: Path | None, env: Mapping[str, str]) -> dict[str, str]:
    """`env` with what a job finds its stack by. Where none runs, the job says whether it needs one:
    not every one does, and on a node of a cluster the servers are in the environment. A directory
    that was named is never given up for a cluster or for the stack of another directory."""
    folder = settings_of(data_dir).data.dir
    if stack.is_running(folder):
        found = {**env, **stack.stack_environment(folder)}
    else:
        found = {name: one for name, one in env.items() if not data_dir or name != "RAY_ADDRESS"}
        if data_dir is None and folder == Path(DEFAULT_DATA_DIR):
            return found
    return found | {"RAYAPP_DATA__DIR": str(StackPaths.of(folder).data)}


def become(command: list[str], env: Mapping[str, str]) -> NoReturn:
    """This process goes on as the command: what a terminal sends reaches it alone, its exit code is
    ours. Raises OSError when the program cannot be started.

    `subprocess.run` kills its command a quarter of a second after Ctrl-C, and a job needs longer to
    pause.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    os.execvpe(command[0], command, env)


def settings_of(data_dir: Path | None, profile: str | None = None) -> Settings:
    return stack.without_local_cluster(settings_in(data_dir, profile))


def main() -> None:
    """Entry point: an error of ours is one sentence, not a stack trace."""
    try:
        app()
    except OSError as error:
        where = error.filename or "A file"
        _say(f"{where} cannot be used ({error.strerror or error}): name another path.")
        sys.exit(EXIT_FAILED)
    except RayappError as error:
        _say(error.message)
        dependency = EXIT_DEPENDENCY if isinstance(error, DependencyDown) else EXIT_FAILED
        sys.exit(EXIT_CONFIG if isinstance(error, ConfigError) else dependency)


def _say(sentence: str) -> None:
    Console(stderr=True).print(sentence, style="red", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()

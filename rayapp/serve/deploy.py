"""Hands the application to Ray Serve, or takes it away; a short-lived driver.

`python -m rayapp.serve.deploy --data-dir D` deploys with `<data>/run/settings.json`, `--stop`
drains and removes. `application` is the import path of the Serve YAML files of a cluster.
"""

import argparse
import importlib
import sys
from collections.abc import Mapping
from pathlib import Path

import ray
from ray import serve
from ray.job_config import JobConfig
from ray.serve.config import ProxyLocation

from rayapp.core.settings.load import load_settings
from rayapp.core.settings.model import Settings
from rayapp.local.stack.paths import StackPaths
from rayapp.serve.deploy_phase import DeployPhase

APP_NAME = "rayapp"
DEFAULT_APP = "rayapp.serve.app:build"
# Serve ends an answer after this, whether it goes on or not: an export of one moment takes 300 s at
# most. Every other request has its own limit (`api/middleware.py`), in the same process.
BACKSTOP_S = 3_600.0


def build(app: str, settings: Settings) -> serve.Application:
    """Call `module:function` with the settings."""
    module, _, function = app.partition(":")
    built = getattr(importlib.import_module(module), function)(settings)
    assert isinstance(built, serve.Application), f"{app} must return a serve.Application"
    return built


def application(args: Mapping[str, str]) -> serve.Application:
    """Builder for Serve YAML: `args.profile` chooses the profile, the environment the addresses."""
    return build(DEFAULT_APP, load_settings(args.get("profile")))


def deploy(settings: Settings, app: str, phase: DeployPhase) -> None:
    """Start Serve with our HTTP options and run the application until it is healthy."""
    phase.say("starting Ray Serve")
    serve.start(
        proxy_location=ProxyLocation.HeadOnly,
        http_options={
            # HAProxy mode would otherwise bind every address.
            "host": settings.http.host,
            "port": settings.http.port,
            "request_timeout_s": BACKSTOP_S,
        },
    )
    built = build(app, settings)
    with phase.following(APP_NAME, loading_model(settings)):
        serve.run(built, name=APP_NAME, route_prefix="/")


def loading_model(settings: Settings) -> frozenset[str]:
    """Deployments whose replicas load a model of their own before they run."""
    return frozenset({"embedding"}) if settings.embedding.backend == "local" else frozenset()


def remove(*, own_cluster: bool) -> None:
    """Drain and delete; on a cluster of our own Serve ends as well."""
    if own_cluster:
        serve.shutdown()  # type: ignore[no-untyped-call]  # Ray has no annotation here
    else:
        serve.delete(APP_NAME)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="rayapp-deploy")
    parser.add_argument("--data-dir", type=Path, required=True)
    parser.add_argument("--app", default=DEFAULT_APP)
    parser.add_argument("--stop", action="store_true")
    parser.add_argument("--hold", action="store_true", help="Begin when the input ends.")
    parser.add_argument("--joined", action="store_true", help="The cluster is not ours.")
    options = parser.parse_args(argv)
    if options.hold:
        importlib.import_module(options.app.partition(":")[0])
        sys.stdin.read()
    paths = StackPaths.of(options.data_dir)
    settings = Settings.model_validate_json(paths.settings.read_text(encoding="utf-8"))
    phase = DeployPhase(paths.deploy_phase)
    phase.say("joining Ray")
    _drive(settings, options, phase)
    phase.say("it runs, its driver leaves Ray")
    return 0


def _drive(settings: Settings, options: argparse.Namespace, phase: DeployPhase) -> None:
    ray.init(
        address=settings.ray.address,
        # The name that the dashboard shows among the jobs.
        job_config=JobConfig(metadata={"job_name": "undeploy" if options.stop else "deploy"}),
        log_to_driver=False,
        configure_logging=False,
    )
    if options.stop:
        remove(own_cluster=not options.joined)
    else:
        deploy(settings, options.app, phase)


if __name__ == "__main__":
    sys.exit(main())

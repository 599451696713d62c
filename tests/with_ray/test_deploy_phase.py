"""What the deploying driver waits for, out of what Ray Serve reports; and how Serve is set."""

import pytest
import yaml
from ray.serve.schema import ApplicationStatusOverview, DeploymentStatusOverview

from rayapp.core.settings.load import CONFIG_DIR
from rayapp.serve.deploy import BACKSTOP_S
from rayapp.serve.deploy_phase import phase_of


def deployment(state: str, message: str = "") -> DeploymentStatusOverview:
    return DeploymentStatusOverview(
        status="UPDATING",
        status_trigger="CONFIG_UPDATE_STARTED",
        replica_states={state: 1},
        message=message,
    )


@pytest.mark.parametrize(
    ("deployments", "said"),
    [
        ({}, "waiting for Ray Serve to take the application"),
        (
            {"embedding": deployment("STARTING"), "search": deployment("RUNNING")},
            "1 of 2 deployments run, starting embedding (loading the model)",
        ),
        (
            {"search": deployment("STARTING", "No  node\nhas 9 CPUs. Ask for less.")},
            "0 of 1 deployments run, starting search (No node has 9 CPUs)",
        ),
        ({"search": deployment("RUNNING")}, "waiting until the replicas are healthy"),
    ],
)
def test_the_phase_is_what_serve_reports(
    deployments: dict[str, DeploymentStatusOverview], said: str
) -> None:
    found = ApplicationStatusOverview(
        status="DEPLOYING", message="", last_deployed_time_s=0.0, deployments=deployments
    )
    assert phase_of(found, frozenset({"embedding"})) == said


def test_a_cluster_lets_an_answer_go_on_for_as_long_as_a_local_stack() -> None:
    """Serve cuts it off after its status was sent: an export would end without its end."""
    by_file = yaml.safe_load((CONFIG_DIR / "serve.prod.yaml").read_text(encoding="utf-8"))
    service = yaml.safe_load((CONFIG_DIR / "k8s" / "rayservice.yaml").read_text(encoding="utf-8"))
    by_kuberay = yaml.safe_load(service["spec"]["serveConfigV2"])
    for config in (by_file, by_kuberay):
        assert config["http_options"]["request_timeout_s"] == BACKSTOP_S

"""What the deploying driver waits for, out of what Ray Serve reports."""

import pytest
from ray.serve.schema import ApplicationStatusOverview, DeploymentStatusOverview

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

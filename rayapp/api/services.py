"""What the HTTP layer is given."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from rayapp.admin.ports import ApiKeyStore, Events, Health, IdempotencyStore, Statistics, Upkeep
from rayapp.assistant.ports import Context, Hooks, Personalities, ToolResults, Tools
from rayapp.bulk.ports import Jobs
from rayapp.core.disk_space import ELSEWHERE, DiskSpace
from rayapp.core.runtime import Clock, Metrics
from rayapp.core.settings.model import Settings
from rayapp.graphs.ports import Graphs
from rayapp.index.ports import Consistency, Deferred
from rayapp.inference.ports import Models
from rayapp.learning.ports import Insights, Outcomes, Promotion
from rayapp.memory.ports import Memories, MemoryBank, UserData
from rayapp.memory.tiers import Tier
from rayapp.search.ports import Search


class Starting(Protocol):
    """Why the services do not exist yet. `blocked`: waiting alone will not help."""

    @property
    def problems(self) -> Sequence[str]: ...

    @property
    def blocked(self) -> bool: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """Everything the HTTP layer needs, built by `rayapp.container.bootstrap`."""

    settings: Settings
    clock: Clock
    metrics: Metrics
    memories: Memories
    bank: MemoryBank
    search: Search
    outcomes: Outcomes
    promotion: Promotion
    graphs: Graphs
    insights: Insights
    context: Context
    hooks: Hooks
    tools: Tools
    tool_results: ToolResults
    events: Events
    models: Models
    jobs: Jobs
    consistency: Consistency
    deferred: Deferred
    health: Health
    statistics: Statistics
    personality: Personalities
    user_data: UserData
    upkeep: Upkeep
    api_keys: ApiKeyStore
    idempotency: IdempotencyStore
    tiers_default: tuple[Tier, ...]
    disk: DiskSpace = ELSEWHERE

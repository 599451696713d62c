"""What the tools of a turn did. Pure."""

from collections.abc import Iterable, Sequence

from rayapp.assistant.ports import KeptTurn
from rayapp.assistant.tools.rules.definitions import MEMORY_TOOLS, own_name
from rayapp.graphs.rules.question import context_type_of
from rayapp.learning.records import ToolRun, ToolUse

# Tools of one turn that are judged; more were called in a loop.
MOST_JUDGED = 32


def tool_use(turn: KeptTurn) -> ToolUse | None:
    """What the turn used tools for; None: only tools of memory, whose outcomes are those of what
    they found, or none."""
    ran: dict[str, bool] = {}
    for run in turn.runs:
        name = own_name(run.name)
        ran[name] = ran.get(name, False) or (run.ok and not run.timeout)
    for called in turn.tools:
        ran.setdefault(own_name(called), True)
    judged = [name for name in ran if name not in MEMORY_TOOLS][:MOST_JUDGED]
    if not judged:
        return None
    return ToolUse(
        conversation_id=turn.conversation_id,
        message_id=turn.message_id,
        context_type=context_type_of(turn.question),
        answered=tuple(name for name in judged if ran[name]),
        failed=tuple(name for name in judged if not ran[name]),
    )


def called_tools(called: Sequence[str], runs: Iterable[ToolRun]) -> tuple[str, ...]:
    """Names of calls, with those that only their runs tell of."""
    known = {own_name(name) for name in called}
    told = dict.fromkeys(run.name for run in runs if own_name(run.name) not in known)
    return (*called, *told)

"""What a job module tells the frame: its name, its arguments, and how to make its work."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rayapp.bulk.params import JobParams
from rayapp.bulk.ports import JobWork
from rayapp.core.settings.model import Settings


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSpec:
    """One per job module, as `SPEC`: a worker finds it by importing `jobs.<kind>`.

    Attributes:
        kind: the name of the module, of the lease and of the rows.
        description: what `--help` says.
        params: the options of this kind (the frame adds the common ones), and what is stored of
            them. It identifies what a job does: a job that was cut short is resumed by the next
            one of its kind with equal params.
        open_work: makes the work in the driver and in every worker; the stack's environment is
            set and Ray is connected.
        writes: False for a kind that `--dry-run` never applies to.
        embeds: its workers embed, so each gets `jobs.worker_gpus`.
        imports: modules that import Ray. The frame imports them when the stack's environment is
            set, which Ray reads at import, and before the job's lease is taken: Ray Serve takes
            seconds, in which no lease is renewed.
        warms: for params of which every worker is usually needed: they start beside the plan.
    """

    kind: str
    description: str
    params: type[JobParams]
    open_work: Callable[[Settings, Mapping[str, Any]], Awaitable[JobWork]]
    writes: bool = True
    embeds: bool = False
    imports: Sequence[str] = ()
    warms: Callable[[Mapping[str, Any]], bool] = lambda params: False

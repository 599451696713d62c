"""Bulk jobs and their partitions; leases with fences."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Unpack

import pymongo
from pymongo import ASCENDING, DESCENDING
from pymongo.asynchronous.client_session import AsyncClientSession
from pymongo.errors import DuplicateKeyError

from rayapp.bulk import rules
from rayapp.bulk.model import (
    FINAL_STATES,
    DesiredState,
    Job,
    JobState,
    PartitionRow,
    PartitionState,
    Plan,
    Step,
)
from rayapp.bulk.ports import Ending, Lease
from rayapp.memory.requests import EPOCH
from rayapp.storage.mongo.database import (
    LONG_TIMEOUT_S,
    MongoDatabase,
    aggregated,
    changed,
    first,
    listed,
    updated,
)
from rayapp.storage.mongo.errors import translated
from rayapp.storage.mongo.indexes import EXPIRES_FROM, JOBS, LEASES, PARTITIONS
from rayapp.storage.mongo.predicates import in_seconds
from rayapp.storage.mongo.rows import from_row, may_lack, reader, to_row

# Leases with fencing tokens. All times are the server's, so holders need no common clock.

Document = dict[str, Any]
ALIVE: Document = {"$gt": ["$expires_at", "$$NOW"]}


class MongoLeaseStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._leases = database.collection(LEASES)

    async def acquire(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        """Renewing keeps the fence; any other way to get the lease raises it."""
        lease = await self._take(name, holder, ttl_s)
        if lease is None and await self._create(name):
            lease = await self._take(name, holder, ttl_s)
        return lease

    async def release(self, lease: Lease) -> None:
        """The row stays, so that the fence goes on growing."""
        with translated():
            await self._leases.update_one(
                {"_id": lease.name, "holder": lease.holder, "fence": lease.fence},
                [{"$set": {"holder": None, "expires_at": EPOCH, "released_at": "$$NOW"}}],
            )

    async def last_released(self, name: str) -> datetime | None:
        return await first(self._leases, {"_id": name}, lambda doc: doc.get("released_at"))

    async def current(self, name: str) -> Lease | None:
        return await first(self._leases, {"_id": name, "$expr": ALIVE}, _lease)

    async def _take(self, name: str, holder: str, ttl_s: float) -> Lease | None:
        mine = {"$eq": ["$holder", {"$literal": holder}]}
        renewed = {"$and": [mine, ALIVE]}
        change = {
            "holder": {"$literal": holder},
            "fence": {"$cond": [renewed, "$fence", {"$add": ["$fence", 1]}]},
            "expires_at": in_seconds(ttl_s),
        }
        free = {"$expr": {"$or": [mine, {"$not": ALIVE}]}}
        return await changed(self._leases, {"_id": name, **free}, [{"$set": change}], _lease)

    async def _create(self, name: str) -> bool:
        """Add the row of a new lease, free; False when it is there already."""
        row = {"_id": name, "holder": None, "fence": 0, "expires_at": EPOCH}
        try:
            with translated(passing=DuplicateKeyError):
                await self._leases.insert_one(row)
        except DuplicateKeyError:
            return False
        return True


def _lease(doc: Document) -> Lease:
    return from_row(Lease, doc | {"name": doc["_id"]})


CREATED_NOW: Document = {"created_at": "$$NOW", "updated_at": "$$NOW"}
NEWEST = [("created_at", DESCENDING), ("job_id", DESCENDING)]
UNFINISHED: Document = {"state": {"$nin": sorted(FINAL_STATES)}}
# `can_be_taken`: what the server checks in the same step in which it changes the row.
FAILED_WITH_PLAN: Document = {"state": JobState.FAILED.value, "planned": True}
TAKEABLE: Document = {
    "$or": [{"state": {"$nin": sorted({*rules.TAKEN_NO_MORE, JobState.FAILED})}}, FAILED_WITH_PLAN]
}
# As `JobStore.take` says.
ATTEMPTS: Document = {
    "$switch": {
        "branches": [
            {
                "case": {"$eq": ["$state", JobState.RUNNING.value]},
                "then": {"$add": ["$attempts", 1]},
            },
            {"case": {"$eq": ["$state", JobState.FAILED.value]}, "then": 1},
        ],
        "default": {"$max": [1, "$attempts"]},
    }
}
IS_IDLE: Document = {"$in": ["$state", sorted(rules.IDLE_STATES)]}
TOUCHED: Document = {"$currentDate": {"updated_at": True}}


class MongoJobStore:
    def __init__(self, database: MongoDatabase) -> None:
        self._transaction = database.transaction
        self._jobs = database.collection(JOBS)
        self._rows = database.collection(PARTITIONS)

    async def create(self, job: Job) -> bool:
        """An upsert, because only an update knows the server's time."""
        new = {"$mergeObjects": ["$$ROOT", {"$literal": _job_document(job)}, CREATED_NOW]}
        # A document that exists has its kind; the one that an upsert begins with has only its id.
        absent = {"$eq": [{"$type": "$kind"}, "missing"]}
        change = [{"$replaceWith": {"$cond": [absent, new, "$$ROOT"]}}]
        try:
            with translated(passing=DuplicateKeyError):
                done = await self._jobs.update_one({"job_id": job.job_id}, change, upsert=True)
        except DuplicateKeyError:
            return False
        return done.upserted_id is not None

    async def get(self, job_id: str) -> Job | None:
        return await first(self._jobs, {"job_id": job_id}, _job)

    async def count(self, kind: str | None) -> int:
        with translated():
            return await self._jobs.count_documents({} if kind is None else {"kind": kind})

    async def recent(self, kind: str | None, limit: int) -> list[Job]:
        where = {} if kind is None else {"kind": kind}
        return await listed(self._jobs, where, _job, sort=NEWEST, limit=limit)

    async def unfinished(self, kind: str) -> list[Job]:
        return await listed(self._jobs, {"kind": kind, **UNFINISHED}, _job, sort=NEWEST)

    async def take(self, job_id: str, fence: int, *, submission_id: str | None) -> Job:
        """The job first: from then on its old driver plans, reports and ends nothing, and the new
        one reads the partitions when no worker of the old one can move them any more."""
        paused = {"$eq": ["$wish", DesiredState.PAUSE.value]}
        change = {
            "state": JobState.RUNNING.value,
            "wish": {"$cond": [paused, DesiredState.RUN.value, "$wish"]},
            "fence": fence,
            "attempts": ATTEMPTS,
            "error": None,
            "exit_code": None,
            "submission_id": {"$literal": submission_id},
            "started_at": {"$ifNull": ["$started_at", "$$NOW"]},
            "finished_at": None,
            "updated_at": "$$NOW",
        }
        where = {"job_id": job_id, "fence": {"$lte": fence}, **TAKEABLE}
        taken = await changed(self._jobs, where, [{"$set": change}], _job)
        if taken is None:
            job = await self._found(job_id)
            if job.fence > fence:
                raise rules.lease_lost(job_id)
            raise rules.job_final(job_id, job.state)
        with translated():
            await self._rows.update_many(
                {"job_id": job_id, "fence": {"$lte": fence}},
                {"$set": {"fence": fence}, "$unset": {EXPIRES_FROM: True}},
            )
        return taken

    async def refence(self, job_id: str, old: int, new: int) -> None:
        """The job first, as in `take`: it decides whose the partitions are."""
        where = {"job_id": job_id, "fence": {"$in": [old, new]}}
        await self._driven(where, {"$set": {"fence": new}, **TOUCHED})
        with translated():
            await self._rows.update_many(
                {"job_id": job_id, "fence": {"$lt": new}}, {"$set": {"fence": new}}
            )

    async def planned(self, job_id: str, fence: int, plan: Plan) -> None:
        plan = rules.plain_plan(plan)

        async def store(session: AsyncClientSession) -> None:
            done = await self._jobs.update_one(
                {"job_id": job_id, "fence": fence, "planned": False},
                {"$set": {"planned": True, "facts": plan.facts, "total": plan.total}, **TOUCHED},
                session=session,
            )
            if not done.matched_count:
                rules.driven_by(await self._found(job_id, session), fence)
                return
            rows = [
                PartitionRow(job_id=job_id, index=one.index, payload=one.payload, fence=fence)
                for one in plan.partitions
            ]
            if rows:
                documents = [to_row(row) for row in rows]
                await self._rows.insert_many(documents, session=session)

        await self._transaction(store)

    async def partitions(self, job_id: str) -> list[PartitionRow]:
        """All or an error: a job that overlooked a partition would end as if it were complete."""
        with translated():
            cursor = self._rows.find({"job_id": job_id}, sort=[("index", ASCENDING)])
            return [_row(doc) async for doc in cursor]

    async def checkpoint(self, job_id: str, index: int, fence: int, step: Step) -> DesiredState:
        """A partition that is done stays as it is: a last step that is repeated counts once."""
        step = rules.plain_step(step)
        state = PartitionState.DONE if step.cursor is None else PartitionState.WAITING
        counts = {f"counts.{name}": n for name, n in step.counts.items()}
        change: Document = {
            "$inc": {"done": step.done, "failed": step.failed, "steps": 1, **counts},
            "$set": {"cursor": step.cursor, "state": state.value},
            "$push": {"samples": {"$each": step.samples, "$slice": rules.SAMPLES_KEPT}},
            **TOUCHED,
        }
        key = {"job_id": job_id, "index": index}
        waiting = {"fence": fence, "state": PartitionState.WAITING.value}
        with translated():
            done = await self._rows.update_one({**key, **waiting}, change)
            job = await self._found(job_id)
            if not done.matched_count:
                row = await first(self._rows, key, _row)
                if row is None:
                    raise rules.no_partition(job_id, index)
                rules.driven_by(row, fence)
        return job.wish

    async def progress(self, job_id: str, fence: int) -> Job:
        sums = {name: {"$sum": f"${name}"} for name in ("done", "failed")}
        group = {"_id": None, **sums, "counts": {"$push": "$counts"}}
        rows = await aggregated(self._rows, [{"$match": {"job_id": job_id}}, {"$group": group}])
        found: Document = rows[0] if rows else {"done": 0, "failed": 0, "counts": []}
        total = {"done": found["done"], "failed": found["failed"]}
        change = {**total, "counts": rules.sum_counts(found["counts"])}
        where = {"job_id": job_id, "fence": fence}
        return await self._driven(where, {"$set": change, **TOUCHED})

    async def stage(self, job_id: str, fence: int, name: str) -> None:
        where = {"job_id": job_id, "fence": fence}
        await self._driven(where, {"$set": {"stage": name}, **TOUCHED})

    async def end(self, job_id: str, fence: int, state: JobState, **how: Unpack[Ending]) -> Job:
        """A job that has ended stays as it is: a repeated end changes nothing."""
        final = state in FINAL_STATES
        change: Document = {"state": state.value, "report": rules.plain(how.get("report"))}
        change |= {"error": how.get("error"), "exit_code": how.get("exit_code")}
        times = {"updated_at": True, "finished_at": True} if final else {"updated_at": True}
        if not final:
            change["finished_at"] = None
        where = {"job_id": job_id, "fence": fence, **UNFINISHED}
        ended = await changed(self._jobs, where, {"$set": change, "$currentDate": times}, _job)
        job = ended or await self._found(job_id)
        rules.driven_by(job, fence)
        await self._let_go(job)
        return job

    async def set_desired_state(self, job_id: str, wish: DesiredState) -> Job:
        change: Document = {"wish": wish.value, "updated_at": "$$NOW"}
        where: Document = {"job_id": job_id, **UNFINISHED}
        if wish is DesiredState.CANCEL:
            change["state"] = {"$cond": [IS_IDLE, JobState.CANCELLED.value, "$state"]}
            change["finished_at"] = {"$cond": [IS_IDLE, "$$NOW", "$finished_at"]}
        if wish is DesiredState.RUN:
            where = {"job_id": job_id, "$or": [UNFINISHED, FAILED_WITH_PLAN]}
            change |= _if_failed(state=JobState.SUBMITTED.value, attempts=0)
            change |= _if_failed(error=None, exit_code=None, finished_at=None)
        job = await changed(self._jobs, where, [{"$set": change}], _job)
        if job is None:
            raise rules.job_final(job_id, (await self._found(job_id)).state)
        await self._let_go(job)
        return job

    async def submitted(self, job_id: str, submission_id: str) -> None:
        resting = {"$eq": ["$state", JobState.PAUSED.value]}
        change: Document = {
            "submission_id": {"$literal": submission_id},
            "state": {"$cond": [resting, JobState.SUBMITTED.value, "$state"]},
            "updated_at": "$$NOW",
        }
        if not await updated(self._jobs, {"job_id": job_id}, [{"$set": change}]):
            raise rules.no_job(job_id)

    async def _let_go(self, job: Job) -> None:
        """The partitions of a job that has ended expire with it."""
        if job.final:
            with translated():
                await self._rows.update_many(
                    {"job_id": job.job_id}, {"$currentDate": {EXPIRES_FROM: True}}
                )

    async def add_to_report(self, job_id: str, facts: Mapping[str, Any]) -> None:
        """An update by a pipeline: names of a report may be paths to an ordinary one."""
        report: Document = {"$mergeObjects": ["$report", {"$literal": rules.plain(facts)}]}
        change = [{"$set": {"report": report, "updated_at": "$$NOW"}}]
        if not await updated(self._jobs, {"job_id": job_id}, change):
            raise rules.no_job(job_id)

    async def mark_restored(self) -> None:
        """No backup holds the leases: here they may count below the fences that it brought, and
        what was driven long ago would pass for what is driven now."""
        with translated(), pymongo.timeout(LONG_TIMEOUT_S):
            for rows in (self._jobs, self._rows):
                await rows.update_many({}, {"$set": {"fence": 0}})

    async def _driven(self, where: Document, change: Document) -> Job:
        """The job after a change by its driver, whose fence `where` names."""
        job = await changed(self._jobs, where, change, _job)
        if job is None:
            raise rules.lease_lost((await self._found(where["job_id"])).job_id)
        return job

    async def _found(self, job_id: str, session: AsyncClientSession | None = None) -> Job:
        job = await first(self._jobs, {"job_id": job_id}, _job, session=session)
        if job is None:
            raise rules.no_job(job_id)
        return job


def _if_failed(**values: Any) -> Document:
    failed = {"$eq": ["$state", JobState.FAILED.value]}
    return {name: {"$cond": [failed, value, f"${name}"]} for name, value in values.items()}


def _job_document(job: Job) -> Document:
    doc = to_row(job)
    return doc | {name: rules.plain(doc[name]) for name in ("params", "facts", "counts", "report")}


may_lack(Job)
may_lack(PartitionRow)
_job = reader(Job)
_row = reader(PartitionRow)

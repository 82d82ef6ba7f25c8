"""Changefeeds and jobs, as statements ask for them."""

from __future__ import annotations

from ...catalog.errors import SQLError
from ...kvlayer.txn import Transaction
from ..parser.statements import ControlJobs, CreateChangefeed, ShowJobs
from ..relations import LeaseScope, full_name, resolve_all
from ..results import INT8, Result, listing
from ..services import ChangefeedRequest, Services
from .show import show_changefeed_jobs, show_jobs


def check_sink_options(statement: CreateChangefeed) -> None:
    """Raises SQLError 42601 where an option is given twice."""
    seen: set[str] = set()
    for option in statement.options:
        if option.name in seen:
            raise SQLError(
                "42601", f'option "{option.name}" specified more than once',
                position=option.position,
            )  # fmt: skip
        seen.add(option.name)


async def create_changefeed(
    services: Services,
    statement: CreateChangefeed,
    transaction: Transaction,
    scope: LeaseScope,
    database: str,
) -> Result:
    """The job's id, or the rows of a feed without a sink. Does not commit."""
    at = transaction.read_timestamp
    relations = await resolve_all(
        services, transaction, statement.tables, database, scope, at, transaction
    )
    tables = [relations[name.parts] for name in statement.tables]
    seen: set[int] = set()
    for name, table in zip(statement.tables, tables, strict=True):
        if table.id in seen:
            message = f'table "{name}" specified more than once'
            raise SQLError("42712", message, position=name.position)
        seen.add(table.id)
    request = ChangefeedRequest(
        tables=tables,
        names=[str(full_name(name, database)) for name in statement.tables],
        options={option.name: option.value for option in statement.options},
        statement=statement.text,
        at=at,
    )
    if statement.sink is None:
        stream = await services.changefeeds.stream(request)
        columns = tuple(stream.columns)
        return Result(tag="CREATE CHANGEFEED", columns=columns, stream=stream.rows)
    job_id = await services.changefeeds.create(transaction, request, statement.sink)
    return listing("CREATE CHANGEFEED", [("job_id", INT8)], [(job_id,)])


async def list_jobs(services: Services, statement: ShowJobs) -> Result:
    jobs = list(await services.jobs.list(changefeeds_only=statement.changefeeds_only))
    if statement.job_id is not None:
        jobs = [job for job in jobs if job.id == statement.job_id]
        if not jobs:
            raise SQLError("42704", f"job with ID {statement.job_id} does not exist")
    return show_changefeed_jobs(jobs) if statement.changefeeds_only else show_jobs(jobs)


async def control_jobs(services: Services, statement: ControlJobs) -> Result:
    for job_id in statement.job_ids:
        await services.jobs.control(job_id, statement.action)
    count = len(statement.job_ids)
    return Result(tag=f"{statement.action.value} JOBS {count}", row_count=count)

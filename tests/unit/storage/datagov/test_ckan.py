"""The CKAN reader over real HTTP on loopback, against a site that behaves well and badly."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from rayapp.core.errors import ConfigError, DependencyDown
from rayapp.core.retry import RetryPolicy
from rayapp.datagov.ports import Catalogue
from rayapp.datagov.rules.prepare import prepared
from rayapp.storage.datagov.ckan import UNREAD_IN_A_ROW, USER_AGENT, CkanLimits, CkanSource
from tests.support.catalogue import VEHICLES, WELLS, many_datasets
from tests.support.ckan_server import CkanServer, ckan_server

FAST = CkanLimits(
    page_rows=2,
    concurrency=3,
    per_second=10_000,
    timeout_s=2.0,
    total_s=30.0,
    retries=RetryPolicy(attempts=3, base_s=0.001, max_s=0.002),
)


@pytest.fixture
async def site() -> AsyncIterator[CkanServer]:
    async with ckan_server((VEHICLES, WELLS, *many_datasets(5))) as server:
        yield server


async def read(site: CkanServer, limits: CkanLimits = FAST) -> Catalogue:
    source = CkanSource(site.url, limits)
    try:
        return await source.read()
    finally:
        await source.close()


async def test_every_page_is_read_and_tables_bring_columns_and_counts(site: CkanServer) -> None:
    found = await read(site)
    assert [one.dataset_id for one in found.datasets] == [p["id"] for p in site.packages]
    vehicles = found.datasets[0]
    assert (vehicles.title, vehicles.organization) == (VEHICLES.title, VEHICLES.organization)
    assert vehicles.organization_en == "Ministry Of Transport"
    assert vehicles.description == VEHICLES.description
    assert (vehicles.tags, vehicles.categories, vehicles.flags) == (VEHICLES.tags, (), None)
    table, file = vehicles.resources
    assert [field.name for field in table.fields] == [
        field.name for field in VEHICLES.resources[0].fields
    ]
    assert (table.total_records, table.url) == (4_000_000, VEHICLES.resources[0].url)
    assert (file.fields, file.total_records, file.error) == ((), None, None)
    assert found.odd_counts == {}
    assert len(site.asked("package_search")) == 4
    assert len(site.asked("datastore_search")) == 7


async def test_no_rows_are_asked_for_and_the_program_names_itself(site: CkanServer) -> None:
    await read(site)
    assert {params["limit"] for params in site.asked("datastore_search")} == {"0"}
    assert {headers["user-agent"] for _, _, headers in site.requests} == {USER_AGENT}


async def test_no_more_requests_are_under_way_than_allowed(site: CkanServer) -> None:
    site.delay_s = 0.02
    await read(site)
    assert 1 < site.most_at_once <= 3


async def test_a_site_that_sends_smaller_pages_is_read_whole(site: CkanServer) -> None:
    site.rows_max = 1
    assert len((await read(site)).datasets) == 7


@pytest.mark.parametrize("action", ["package_search", "datastore_search"])
@pytest.mark.parametrize("status", [500, 502, 429, 408])
async def test_a_passing_failure_is_tried_again(site: CkanServer, action: str, status: int) -> None:
    site.status, site.failures = status, {action: 2}
    found = await read(site)
    assert len(found.datasets) == 7
    assert found.odd_counts == {}


@pytest.mark.parametrize(
    "raw",
    [
        b"<html>busy</html>",
        b'{"success": true, "result": {"count": 7, "results": [{"id"',
        b'{"success": false}',
        b"[1]",
        b"",
        b"\xff\xfe",
    ],
)
async def test_a_malformed_page_is_read_again(site: CkanServer, raw: bytes) -> None:
    site.raw = {"package_search": raw, "datastore_search": raw}
    found = await read(site)
    assert (len(found.datasets), found.odd_counts) == (7, {})


async def test_a_page_that_breaks_off_is_read_again(site: CkanServer) -> None:
    site.cut = {"package_search", "datastore_search"}
    found = await read(site)
    assert (len(found.datasets), found.odd_counts) == (7, {})


async def test_a_slow_site_is_given_up_in_time(site: CkanServer) -> None:
    site.delay_s = 1.0
    limits = replace(FAST, timeout_s=0.05)
    with pytest.raises(DependencyDown, match="Timeout"):
        await read(site, limits)


@pytest.mark.parametrize("status", [500, 503, 403, 404])
async def test_a_site_that_is_down_is_an_error_and_not_an_empty_catalogue(
    site: CkanServer, status: int
) -> None:
    site.status, site.failures = status, {"package_search": -1}
    with pytest.raises(DependencyDown, match=str(status)):
        await read(site)


async def test_no_site_at_all_is_an_error() -> None:
    async with ckan_server() as gone:
        url = gone.url
    source = CkanSource(url, FAST)
    with pytest.raises(DependencyDown, match="offline"):
        await source.read()
    await source.close()


@pytest.mark.parametrize("raw", [b'{"success": true, "result": {"results": []}}', b"null"])
async def test_a_list_of_another_shape_is_an_error(site: CkanServer, raw: bytes) -> None:
    class Stubborn(dict[str, bytes]):
        def pop(self, key: str, default: object = None) -> bytes:  # type: ignore[override]
            return raw

    site.raw = Stubborn()
    with pytest.raises(DependencyDown):
        await read(site)


async def test_a_table_that_is_not_there_is_marked_and_the_others_are_read(
    site: CkanServer,
) -> None:
    del site.tables[WELLS.resources[0].resource_id]
    found = await read(site)
    wells = found.datasets[1].resources[0]
    assert (wells.error, wells.fields) == ("HTTP 404", ())
    assert found.datasets[0].resources[0].fields
    assert found.odd_counts == {}


@pytest.mark.parametrize("status", [401, 403, 409, 400, 500])
async def test_a_table_that_gives_no_answer_is_not_a_broken_one(
    site: CkanServer, status: int
) -> None:
    tries = FAST.retries.attempts if status == 500 else 1
    one_at_a_time = replace(FAST, concurrency=1)
    site.status, site.failures = status, {"datastore_search": tries}
    found = await read(site, one_at_a_time)
    table = VEHICLES.resources[0].resource_id
    assert found.unread == (table,)
    assert found.datasets[0].resources[0].error is None
    assert found.odd_counts == {"fields_unread": 1}
    assert found.oddities == {"fields_unread": (table,)}
    assert len(site.asked("datastore_search")) == 7 + tries - 1
    assert all(one.resources[0].fields for one in found.datasets[1:])


async def test_a_firewall_that_refuses_every_table_is_an_error() -> None:
    async with ckan_server(many_datasets(UNREAD_IN_A_ROW + 5)) as site:
        site.status, site.failures = 403, {"datastore_search": -1}
        with pytest.raises(DependencyDown, match="HTTP 403 at datastore_search"):
            await read(site)


async def test_when_tables_stop_answering_nothing_is_brought_in() -> None:
    async with ckan_server(many_datasets(UNREAD_IN_A_ROW + 5)) as site:
        site.failures = {"datastore_search": -1}
        with pytest.raises(DependencyDown):
            await read(site)
        asked = len(site.asked("datastore_search"))
        assert asked <= (UNREAD_IN_A_ROW + FAST.concurrency) * FAST.retries.attempts


async def test_datasets_that_cannot_be_read_are_counted_and_left_out(site: CkanServer) -> None:
    def broken(page: list[object]) -> list[object]:
        return ["no package", {"title": "no id"}, {"id": "x", "resources": 7}] if page else page

    site.change = broken
    found = await read(site)
    assert found.datasets == ()
    assert found.odd_counts["row_unreadable"] >= 3


async def test_a_shortage_is_counted(site: CkanServer) -> None:
    site.count = 12
    found = await read(site)
    assert len(found.datasets) == 7
    assert found.odd_counts == {"rows_short": 5}


async def test_a_dataset_on_two_pages_is_one(site: CkanServer) -> None:
    site.packages.append(site.packages[0])
    found = await read(site)
    assert len({one.dataset_id for one in found.datasets}) == len(found.datasets) == 7


async def test_datasets_get_a_category_by_their_words(site: CkanServer) -> None:
    catalogue, anomalies = prepared(await read(site))
    filed = {one.dataset_id: one.categories[0] for one in catalogue.datasets}
    assert filed[VEHICLES.dataset_id] == "transportation"
    assert filed[WELLS.dataset_id] == "water"
    assert anomalies.counts["dataset_without_category"] == 7


@pytest.mark.parametrize("url", ["", "data.gov.il", "file:///etc/passwd", "http://[::1"])
def test_an_address_that_is_none_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="ckan_url"):
        CkanSource(url)

"""What a request is worth in bytes, and which ranges are fetched together for it."""

from __future__ import annotations

import pytest

from indextables.storage.objects import ObjectStore
from indextables.storage.ranges import NEAR, TRIP, bytes_worth, coalesce


def test_a_cost_in_seconds_is_worth_what_arrives_meanwhile() -> None:
    assert bytes_worth(1.0) == 100 << 20
    assert bytes_worth(0.5, at_once=5) == 10 << 20
    assert NEAR < TRIP < bytes_worth(0.03)


def test_object_stores_join_by_these_costs() -> None:
    assert (ObjectStore.near_gap, ObjectStore.coalesce_gap) == (NEAR, TRIP)


@pytest.mark.parametrize(("gap", "requests"), [(0, 1), (NEAR, 1), (NEAR + 1, 2)])
def test_ranges_nearer_than_a_request_is_worth_are_one(gap: int, requests: int) -> None:
    found = coalesce([(100 + gap, 200 + gap), (0, 100)], ObjectStore.near_gap)
    assert len(found) == requests
    assert sorted(index for request in found for index in request.serves) == [0, 1]

"""Geofence alerts for moving vehicles.

Thousands of zones lie over a city, most of them downtown.  A zone is a subscription: a rectangle of
longitude and latitude, for some zones with a condition on the vehicle.  Every second all vehicles
report where they are; whoever entered or left a zone gets an alert.

    python examples/geofence_alerts.py --zones 20000 --vehicles 200 --seconds 30
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Iterator

import matchwood as mw

WEST, EAST, SOUTH, NORTH = 13.1, 13.7, 52.3, 52.7
DOWNTOWN = (13.405, 52.52)
CONDITIONS = ("", "", "", " AND kind = 'truck'", " AND kind = 'truck' AND speed > 50")

Report = dict[str, object]


def zones(n: int, rng: random.Random) -> Iterator[tuple[str, str]]:
    """Zones as (id, text); three of four are downtown and overlap a lot."""
    for number in range(n):
        if rng.random() < 0.75:
            lon, lat = rng.gauss(DOWNTOWN[0], 0.03), rng.gauss(DOWNTOWN[1], 0.02)
        else:
            lon, lat = rng.uniform(WEST, EAST), rng.uniform(SOUTH, NORTH)
        width, height = rng.uniform(0.001, 0.02), rng.uniform(0.001, 0.015)
        where = f"lon BETWEEN {lon:.5f} AND {lon + width:.5f}"
        where += f" AND lat BETWEEN {lat:.5f} AND {lat + height:.5f}"
        yield f"zone-{number}", where + rng.choice(CONDITIONS)


class Fleet:
    """Vehicles that drive straight on, and turn at random."""

    def __init__(self, n: int, rng: random.Random) -> None:
        self._rng = rng
        self._at = [(rng.gauss(DOWNTOWN[0], 0.05), rng.gauss(DOWNTOWN[1], 0.03)) for _ in range(n)]
        self._way = [(0.0, 0.0)] * n
        self._kind = [rng.choice(("car", "truck")) for _ in range(n)]

    def drive(self) -> list[Report]:
        """One second: everybody moves, then reports."""
        reports: list[Report] = []
        for vehicle, (lon, lat) in enumerate(self._at):
            if self._way[vehicle] == (0.0, 0.0) or self._rng.random() < 0.1:
                self._way[vehicle] = (self._rng.gauss(0, 0.0005), self._rng.gauss(0, 0.0003))
            east, north = self._way[vehicle]
            self._at[vehicle] = (lon + east, lat + north)
            speed = round(abs(east) * 68_000 * 3.6 + abs(north) * 111_000 * 3.6)
            lon, lat = self._at[vehicle]
            reports.append({"lon": lon, "lat": lat, "speed": speed, "kind": self._kind[vehicle]})
        return reports


def main(n_zones: int, n_vehicles: int, n_seconds: int, seed: int) -> None:
    rng = random.Random(seed)
    matcher = mw.Matcher(
        index="vcr", attributes=("lon", "lat"), schema={"lon": "float", "lat": "float"}
    )
    matcher.add_many(zones(n_zones, rng))
    fleet = Fleet(n_vehicles, rng)
    inside: list[set[int | str]] = [set(found) for found in matcher.match_many(fleet.drive())]
    print(f"{len(matcher):,} zones; at the start {sum(map(len, inside)):,} times inside of one")

    for second in range(1, n_seconds + 1):
        if second == n_seconds // 2:  # zones come and go while vehicles drive
            closed = [f"zone-{number}" for number in range(0, n_zones, 10)]
            matcher.remove_many(closed)
            matcher.add(
                "closed road", "lon BETWEEN 13.38 AND 13.42 AND lat BETWEEN 52.50 AND 52.53"
            )
            print(f"second {second}: {len(closed):,} zones were removed, 1 was added")
        now = [set(found) for found in matcher.match_many(fleet.drive())]
        entered = [after - before for before, after in zip(inside, now, strict=True)]
        left = [before - after for before, after in zip(inside, now, strict=True)]
        counts = f"{sum(map(len, entered))} entered, {sum(map(len, left))} left"
        vehicle = next((v for v, found in enumerate(entered) if found), None)
        if vehicle is not None:
            counts += f"; vehicle {vehicle} entered {min(map(str, entered[vehicle]))}"
        print(f"second {second}: {counts}")
        inside = now
    print(matcher.draw().splitlines()[0])


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--zones", type=int, default=20_000)
    parser.add_argument("--vehicles", type=int, default=200)
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    main(arguments.zones, arguments.vehicles, arguments.seconds, arguments.seed)

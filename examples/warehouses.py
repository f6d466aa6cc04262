"""Orders go to warehouses that have enough in stock, while the stock changes with every order.

Each warehouse subscribes once.  How much it has, and how far it delivers, are values of its
context: an update is one call, and the next order already sees it.

    python examples/warehouses.py
"""

from __future__ import annotations

from math import hypot

import matchwood as mw

WAREHOUSES = {
    "Basel": {"x": 0, "y": 0, "stock": 40, "reach": 300},
    "Bonn": {"x": 40, "y": 320, "stock": 15, "reach": 250},
    "Ulm": {"x": 170, "y": 70, "stock": 8, "reach": 400},
    "Graz": {"x": 620, "y": -60, "stock": 60, "reach": 350},
}

ORDERS = [
    {"order": 1, "quantity": 10, "x": 100, "y": 120},
    {"order": 2, "quantity": 8, "x": 150, "y": 60},
    {"order": 3, "quantity": 1, "x": 160, "y": 80},
    {"order": 4, "quantity": 30, "x": 90, "y": 10},
    {"order": 5, "quantity": 25, "x": 400, "y": 0},
    {"order": 6, "quantity": 70, "x": 10, "y": 10},
]


def open_warehouses() -> mw.Matcher:
    """One subscription a warehouse; the square around it is a first, cheap test of distance."""
    matcher = mw.Matcher()
    for name, place in WAREHOUSES.items():
        matcher.add(
            name,
            "quantity <= ctx.stock AND x BETWEEN ctx.west AND ctx.east "
            "AND y BETWEEN ctx.south AND ctx.north AND NOT ctx.closed",
            context=name,
        )
        x, y, reach = place["x"], place["y"], place["reach"]
        matcher.set_context(
            name,
            {
                "stock": place["stock"], "closed": False,
                "west": x - reach, "east": x + reach, "south": y - reach, "north": y + reach,
            },
        )  # fmt: skip
    return matcher


def distance(name: str, order: dict[str, float]) -> float:
    place = WAREHOUSES[name]
    return hypot(place["x"] - order["x"], place["y"] - order["y"])


def route(matcher: mw.Matcher, order: dict[str, float]) -> str | None:
    """The nearest warehouse that can deliver; its stock goes down."""
    able = [str(name) for name in matcher.match(order)]
    if not able:
        return None
    nearest = min(able, key=lambda name: distance(name, order))
    left = matcher.context(nearest)["stock"] - order["quantity"]
    matcher.set_context(nearest, {"stock": left})
    return nearest


def main() -> None:
    matcher = open_warehouses()
    for order in ORDERS:
        name = route(matcher, order)
        if name is None:
            print(f"order {order['order']}: nobody has {order['quantity']} within reach")
            print("    " + "\n    ".join(matcher.explain("Basel", order).reasons))
        else:
            left = matcher.context(name)["stock"]
            print(f"order {order['order']}: {order['quantity']} from {name}, which has {left} left")

    flips = matcher.set_context("Graz", {"closed": True}, flips=True)
    print(f"Graz closes: {flips.closed} cannot deliver any more")
    matcher.set_context_many({"Ulm": {"stock": 90}, "Basel": {"stock": 5}})
    print(f"order 6 again, after a delivery: from {route(matcher, ORDERS[5])}")


if __name__ == "__main__":
    main()

"""The shop's stock, in an SQLite file: the tools of the agent, and those that undo and look."""

import os
import sqlite3

SCHEMA = """
CREATE TABLE IF NOT EXISTS items (item TEXT PRIMARY KEY, free INTEGER, price INTEGER);
CREATE TABLE IF NOT EXISTS reservations (id INTEGER PRIMARY KEY, item TEXT, count INTEGER, released INTEGER DEFAULT 0);
INSERT OR IGNORE INTO items VALUES ('tea', 10, 4);
"""

db = sqlite3.connect(os.environ.get("STOCK_DB", "stock.db"))
db.executescript(SCHEMA)


def read(item):
    free, price = db.execute("SELECT free, price FROM items WHERE item = ?", [item]).fetchone()
    return {"item": item, "free": free, "price": price}


def reserve(item, count):
    with db:
        db.execute("UPDATE items SET free = free - ? WHERE item = ?", [count, item])
        made = db.execute("INSERT INTO reservations (item, count) VALUES (?, ?)", [item, count])
    return {"reservation": made.lastrowid}


def set_price(item, price):
    previous = read(item)["price"]
    with db:
        db.execute("UPDATE items SET price = ? WHERE item = ?", [price, item])
    return {"previous": previous}


def reservation(reservation):
    item, count, released = db.execute(
        "SELECT item, count, released FROM reservations WHERE id = ?", [reservation]
    ).fetchone()
    return {"item": item, "count": count, "released": bool(released)}


def release(reservation):
    """Releasing twice has the effect of once: only the update that turns `released` gives the stock back."""
    with db:
        turned = db.execute(
            "UPDATE reservations SET released = 1 WHERE id = ? AND released = 0 RETURNING item, count", [reservation]
        ).fetchone()
        if turned is not None:
            db.execute("UPDATE items SET free = free + ? WHERE item = ?", [turned[1], turned[0]])
    return {"released": True}


TOOLS = {f"stock.{tool.__name__}": tool for tool in (read, reserve, set_price, reservation, release)}

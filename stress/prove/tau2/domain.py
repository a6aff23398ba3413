"""Runs the tools of a tau2-bench domain from a checkout, one JSON request a line: reset, tasks, call, read and restore.

usage: domain.py <checkout> <retail|airline> [<directory>]. Packages that the checkout wants and no tool needs are left
out. The directory holds the airline's flights.json, users.json and reservations.json of tau-bench, for a checkout without
its db.json.
"""

import copy
import importlib
import importlib.abc
import importlib.machinery
import json
import sys
import types
from pathlib import Path


class Absent(types.ModuleType):
    """A package that is not installed. Its names answer everything with themselves."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return Absent(name)

    def __call__(self, *_, **__):
        return self


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    ABSENT = {"loguru", "deepdiff", "dotenv", "toml", "addict", "docstring_parser"}

    def find_spec(self, name, _path=None, _target=None):
        return importlib.machinery.ModuleSpec(name, self) if name.split(".")[0] in self.ABSENT else None

    def create_module(self, spec):
        return Absent(spec.name)

    def exec_module(self, _module):
        pass


def load(checkout, domain, parts):
    sys.meta_path.append(Finder())
    source = Path(checkout) / "src"
    sys.path.insert(0, str(source))
    # The package's own start imports models and audio; only its parts below are needed.
    for name in ("tau2", "tau2.environment", "tau2.domains", f"tau2.domains.{domain}"):
        package = types.ModuleType(name)
        package.__path__ = [str(source / name.replace(".", "/"))]
        sys.modules[name] = package
    models = importlib.import_module(f"tau2.domains.{domain}.data_model")
    tools = importlib.import_module(f"tau2.domains.{domain}.tools")
    prefix = domain.capitalize()
    kit = getattr(tools, f"{prefix}Tools")
    db = next(one for one in vars(models).values() if isinstance(one, type) and one.__name__.endswith("DB") and one.__name__ != "DB")
    return kit, db, data(Path(checkout) / "data/tau2/domains" / domain / "db.json", parts)


def data(whole, parts):
    if whole.exists() and whole.stat().st_size > 0:
        return json.loads(whole.read_text())
    if parts is None:
        raise SystemExit(f"{whole} is missing; name a directory with its parts")
    db = {name: json.loads((Path(parts) / f"{name}.json").read_text()) for name in ("flights", "users", "reservations")}
    for key, user in db["users"].items():
        user.setdefault("user_id", key)
    return db


class Domain:
    def __init__(self, checkout, domain, parts=None):
        self.kit_class, db_class, raw = load(checkout, domain, parts)
        self.tasks_file = Path(checkout) / "data/tau2/domains" / domain / "tasks.json"
        self.start, self.db = db_class.model_validate(raw), db_class.model_validate(raw)
        self.tables = [name for name in type(self.db).model_fields if isinstance(getattr(self.db, name), dict)]
        self.kit, self.touched = self.kit_class(self.db), {}

    def reset(self, _):
        """Puts every changed record back."""
        for table, key in self.differing():
            self.put(table, key, copy.deepcopy(getattr(self.start, table).get(key)))
        self.touched = {}

    def differing(self):
        for table in self.tables:
            old, new = getattr(self.start, table), getattr(self.db, table)
            yield from [(table, key) for key in list(old.keys() | new.keys()) if old.get(key) != new.get(key)]

    def put(self, table, key, value):
        if value is None:
            getattr(self.db, table).pop(key, None)
        else:
            getattr(self.db, table)[key] = value

    def tasks(self, _):
        tasks = json.loads(self.tasks_file.read_text())
        found = []
        for task in tasks:
            actions = (task.get("evaluation_criteria") or {}).get("actions") or []
            calls = [{"tool": a["name"], "args": a["arguments"]} for a in actions if a.get("requestor", "assistant") == "assistant"]
            found.append({"id": str(task["id"]), "calls": calls})
        kinds = {name: str(getattr(tool, "__tool_type__", "")) for name, tool in self.kit.tools.items()}
        return {"tasks": found, "kinds": kinds}

    def call(self, request):
        result = getattr(self.kit, request["tool"])(**request["args"])
        return json.loads(json.dumps(result, default=lambda value: value.model_dump(mode="json")))

    def changed(self, _):
        """Every record that differs from the start, as it is now. None where it is gone."""
        return {f"{table}.{key}": self.shown(table, key) for table, key in sorted(self.differing())}

    def shown(self, table, key):
        record = getattr(self.db, table).get(key)
        return None if record is None else record.model_dump(mode="json")

    def backup(self, request):
        """The records that a call changes, as they are now. Which ones is found once, by a call that is taken back."""
        key = json.dumps([request["tool"], request["args"]], sort_keys=True)
        if key not in self.touched:
            before = {place: copy.deepcopy(getattr(self.db, place[0]).get(place[1])) for place in self.differing()}
            try:
                getattr(self.kit, request["tool"])(**request["args"])
            finally:
                found = []
                for table, id in sorted({*before, *self.differing()}):
                    old = before[(table, id)] if (table, id) in before else getattr(self.start, table).get(id)
                    if getattr(self.db, table).get(id) != old:
                        found.append((table, id))
                        self.put(table, id, copy.deepcopy(old))
            self.touched[key] = found
        return {"records": {f"{table}.{id}": self.shown(table, id) for table, id in self.touched[key]}}

    def restore(self, request):
        for path, value in request["records"].items():
            table, key = path.split(".", 1)
            known = next(iter(getattr(self.start, table).values()))
            self.put(table, key, None if value is None else type(known).model_validate(value))


def main():
    domain = Domain(*sys.argv[1:4])
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = {"ok": getattr(domain, request["op"])(request)}
        except Exception as error:  # a tool that refuses
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()

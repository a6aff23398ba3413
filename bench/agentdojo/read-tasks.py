"""Prints the ground truth of AgentDojo 1.2.1 as JSON lines: calls with their results, without a model.

Usage: read-tasks.py <checkout>. Reads the suites from <checkout>/src (or <checkout> itself), and writes nothing.
Packages that only its models and its scoring need are replaced by empty ones if they are not installed.
"""

import importlib.abc
import importlib.machinery
import importlib.util
import json
import pathlib
import re
import sys
import types
import warnings
from unittest.mock import MagicMock

VERSION = "v1.2.1"
NEEDED = {"pydantic", "yaml", "typing_extensions", "agentdojo"}


def described(text):
    """The parameters and the first line of a function's description."""
    params = [
        types.SimpleNamespace(arg_name=name, description=about)
        for name, about in re.findall(r":param (\w+): *(.*)", text or "")
    ]
    first = (text or "").strip().split("\n")[0]
    return types.SimpleNamespace(params=params, short_description=first, long_description=None)


class Replaced(types.ModuleType):
    """A package that is not installed: any name in it is an empty object."""

    __path__: list[str] = []

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        value = type(name, (Exception,), {}) if name.endswith("Error") else MagicMock(name=name)
        setattr(self, name, value)
        return value


class Replacing(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, fullname, path=None, target=None):
        if fullname.split(".")[0] in NEEDED | set(sys.stdlib_module_names):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return Replaced(spec.name)

    def exec_module(self, module):
        if module.__name__ == "docstring_parser":
            module.parse = described


def without_address_checks():
    """Addresses of the tasks are right, so the package that checks them is not needed."""
    if importlib.util.find_spec("email_validator").loader.__class__ is not Replacing:
        return
    from pydantic import networks

    networks.import_email_validator = lambda: None
    networks.validate_email = lambda address: (address.split("@")[0], address)


def plain(value):
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json")
    if isinstance(value, dict):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set)):
        return [plain(one) for one in value]
    return value if value is None or isinstance(value, (str, int, float, bool)) else str(value)


def played(runtime, env, calls, attack):
    for call in calls:
        result, error = runtime.run_function(env, call.function, call.args)
        yield {
            "tool": call.function,
            "args": plain(dict(call.args)),
            "result": plain(result),
            "error": error,
            "attack": attack,
        }


def main():
    from agentdojo.functions_runtime import FunctionsRuntime
    from agentdojo.task_suite.load_suites import get_suites

    for name, suite in get_suites(VERSION).items():
        runtime = FunctionsRuntime(suite.tools)
        for user_id, user in suite.user_tasks.items():
            env = user.init_environment(suite.load_and_inject_default_environment({}))
            calls = list(played(runtime, env, user.ground_truth(env), False))
            print(json.dumps({"suite": name, "user": user_id, "prompt": user.PROMPT, "calls": calls}))
            vectors = suite.get_injection_vector_defaults()
            for attack_id, attack in suite.injection_tasks.items():
                marks = {vector: f"{{{{{vector}}}}} {attack.GOAL}" for vector in vectors}
                env = user.init_environment(suite.load_and_inject_default_environment(marks))
                truth = user.ground_truth(env)
                calls = list(played(runtime, env, truth, False))
                text = json.dumps([one["result"] for one in calls])
                sees = any(f"{{{{{vector}}}}}" in text for vector in vectors)
                injected = attack.ground_truth(env)
                calls += played(runtime, env, injected, True)
                print(
                    json.dumps(
                        {
                            "suite": name,
                            "user": user_id,
                            "attack": attack_id,
                            "prompt": user.PROMPT,
                            "sees": sees,
                            "calls": calls,
                        }
                    )
                )


if __name__ == "__main__":
    root = pathlib.Path(sys.argv[1])
    sys.path.insert(0, str(root / "src" if (root / "src" / "agentdojo").is_dir() else root))
    sys.meta_path.append(Replacing())
    warnings.simplefilter("ignore")
    without_address_checks()
    main()

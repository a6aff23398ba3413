"""The command behind a rollback, for undoing and for reading back: JSON on stdin, JSON on stdout, exit 0 when done."""

import json
import sys

from stock import TOOLS

call = json.load(sys.stdin)
print(json.dumps(TOOLS[call["tool"]](**call.get("args", call.get("arguments")))))

"""An agent in Python: it asks svc before every call, and waits where a person must decide.

    SVC_URL=http://127.0.0.1:8787 SVC_KEY=svc_... PYTHONPATH=sdk/python python3 agent.py
"""

import os

from reversi_sdk import Blocked, Client
from stock import TOOLS

client = Client(os.environ["SVC_URL"], os.environ["SVC_KEY"])
run = client.run(permissions=["stock.read", "stock.write", "stock.price"], reason="autumn sale")
print(f"agent: run {run.run_id}", flush=True)


def call(tool, reason, **args):
    print(f"agent: {tool}", flush=True)
    try:
        result = run.call(tool, args, reason, lambda: TOOLS[tool](**args), wait_for_approval=60)
    except Blocked as refusal:
        print(f"agent: blocked: {'; '.join(refusal.reasons)}", flush=True)
    else:
        print(f"agent: done, {result}", flush=True)


call("stock.read", "what is there", item="tea")
for _ in range(4):
    call("stock.reserve", "for the shop window", item="tea", count=2)
call("stock.set_price", "tea goes on sale", item="tea", price=3)

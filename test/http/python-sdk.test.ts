/** The Python SDK against a real server: its decorator, its context managers and its asyncio client, in one script. */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { beforeAll, expect, it } from "vitest";
import { ROOT } from "../support/files.ts";
import { program } from "../support/programs.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const PYTHON = await program("python3");
const SCRIPT = `
import asyncio, json, sys
from reversi_sdk import AsyncClient, Blocked, Client, governed

@governed("crm.create", reason="asked to")
def create(name, team="sales"):
    return {"id": name}

@governed("mail.send", answer_blocked=True)
def send(to):
    raise AssertionError("it ran")

@governed("crm.get")
async def get(id):
    return {"id": id}

url, key = sys.argv[1:]
with Client(url, key).run(permissions=["crm.read", "crm.write", "mail.send"], run_id="from-python") as run:
    said = {"created": create("ann"), "sent": send("x@y.example")}
    try:
        with run.action("crm.create", {"name": "bob"}, "by hand") as action:
            raise ValueError("the other side is down")
    except ValueError:
        pass

async def work():
    async with await AsyncClient(url, key).resume("from-python"):
        return await asyncio.gather(get("1"), get("2"))

said["read"] = asyncio.run(work())
print(json.dumps(said))
`;

let server: TestServer;
beforeAll(async () => {
  server = await testServer({
    policy:
      "version: 1\nrules: [{id: no-mail, match: {tool: mail.send}, action: deny, reason: no mail today, hint: write a note}]\n",
  });
  await server.http.listen({ host: "127.0.0.1", port: 0 });
});

it("asks before each call, and reports what came of it", async () => {
  verifies("beyond.python.decorator", "beyond.python.context", "beyond.python.asyncio");
  const { port } = server.http.server.address() as { port: number };
  const env = { ...process.env, PYTHONPATH: join(ROOT, "sdk", "python"), PYTHONDONTWRITEBYTECODE: "1" };
  const { stdout } = await promisify(execFile)(PYTHON, ["-c", SCRIPT, `http://127.0.0.1:${port}`, "agent"], {
    env,
  });
  expect(JSON.parse(stdout)).toEqual({
    created: { id: "ann" },
    sent: "mail.send was not carried out: no mail today. Instead: write a note.",
    read: [{ id: "1" }, { id: "2" }],
  });
  const { body } = await server.call("auditor", "GET", "/v1/runs/from-python");
  const steps = body.steps as { tool: string; status: string }[];
  expect(steps.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
    "crm.create succeeded",
    "crm.create failed",
    "crm.get succeeded",
    "crm.get succeeded",
  ]);
});

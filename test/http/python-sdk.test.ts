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

/** Writes by call, by decorator and by coroutine; where the read fails nothing is written. */
const RESTORING = `
import asyncio, json, sys
from reversi_sdk import AsyncClient, Client, ReadFailed, governed

url, key = sys.argv[1:]
docs = {"a": "old"}

def read(asked):
    return {"text": docs[asked["arguments"]["id"]]}

async def read_later(asked):
    return read(asked)

def broken(asked):
    raise OSError(asked["tool"] + " is away")

@governed("doc.write", read=read)
def write(id, text):
    docs[id] = text

run = Client(url, key).run(permissions=["doc"], run_id="restoring")
run.call("doc.write", {"id": "a"}, "r", lambda: docs.update(a="by call"), read=read)
with run:
    write("a", "by decorator")

async def work():
    later = await AsyncClient(url, key).resume("restoring")
    await later.call("doc.write", {"id": "a"}, "r", lambda: docs.update(a="by coroutine"), read=read_later)
    try:
        await later.call("doc.write", {"id": "a"}, "r", lambda: docs.update(a="blindly"), read=broken)
    except ReadFailed as error:
        return str(error)

said = {"later": asyncio.run(work())}
docs["long"] = "x" * 600_000
for name, how in (("away", broken), ("long", read)):
    try:
        run.call("doc.write", {"id": name}, "r", lambda: docs.update(a="blindly"), read=how)
    except ReadFailed as error:
        said[name] = str(error)
print(json.dumps({**said, "text": docs["a"]}))
`;

async function python<T>(at: TestServer, script: string): Promise<T> {
  const { port } = at.http.server.address() as { port: number };
  const env = { ...process.env, PYTHONPATH: join(ROOT, "sdk", "python"), PYTHONDONTWRITEBYTECODE: "1" };
  const { stdout } = await promisify(execFile)(PYTHON, ["-c", script, `http://127.0.0.1:${port}`, "agent"], {
    env,
  });
  return JSON.parse(stdout) as T;
}

/** Tools that did it, did nothing, and did it where nobody can read. */
const CHECKING = `
import asyncio, json, sys
from reversi_sdk import AsyncClient, Client, EffectMissing

url, key = sys.argv[1:]
docs, looks = {}, []

def read(asked):
    looks.append(asked["tool"])
    return {"text": docs.get(asked["arguments"]["id"], "none") if len(looks) > 1 else "old"}

async def read_later(asked):
    return read(asked)

def away(asked):
    raise OSError("away")

def write():
    docs["a"] = "new"
    return {"id": "a"}

def tried(work):
    try:
        return work()["id"]
    except EffectMissing as error:
        return [str(error), error.result]

run = Client(url, key).run(permissions=["doc"], run_id="checking")
args = {"id": "a", "text": "new"}
said = [tried(lambda: run.call("doc.write", args, "r", write, read=read))]
docs.clear()
said.append(tried(lambda: run.call("doc.write", args, "r", lambda: {"id": "a"}, read=read)))
said.append(tried(lambda: run.call("doc.write", args, "r", write, read=away)))

async def work():
    later = await AsyncClient(url, key).resume("checking")
    docs.clear()
    try:
        await later.call("doc.write", args, "r", lambda: {"id": "a"}, read=read_later)
    except EffectMissing as error:
        return str(error)

said.append(asyncio.run(work()))
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

it("asks before each call, and reports the outcome", async () => {
  verifies("beyond.python.decorator", "beyond.python.context", "beyond.python.asyncio");
  expect(await python(server, SCRIPT)).toEqual({
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

it("reads what an undo will need before each call and after it, and runs nothing where that fails", async () => {
  verifies("beyond.python.read");
  const restoring = await testServer({
    manifests: `
- {tool: doc.read, effect: read, permission: doc}
- {tool: doc.write, effect: reversible, permission: doc, before: {tool: doc.read, args: {id: $args.id}}, compensation: {tool: doc.write, args: {id: $args.id, text: $before.text}}}
`,
  });
  await restoring.http.listen({ host: "127.0.0.1", port: 0 });
  const away = "before: doc.read could not be read: doc.read is away";
  expect(await python(restoring, RESTORING)).toEqual({
    text: "by coroutine",
    later: away,
    away,
    long: "before: doc.read could not be read: the answer has 600011 bytes, more than 450000",
  });
  const { body } = await restoring.call("operator", "GET", "/v1/runs/restoring/plan");
  const actions = body.actions as { kind: string; args: { text: string } }[];
  expect(actions.map(({ kind, args }) => [kind, args.text])).toEqual([
    ["compensate", "by decorator"],
    ["compensate", "by call"],
    ["compensate", "old"],
  ]);
  const run = await restoring.call("auditor", "GET", "/v1/runs/restoring");
  const steps = run.body.steps as { status: string; before_by?: string }[];
  expect(steps.map(({ status, before_by }) => [status, before_by ?? null])).toEqual([
    ["succeeded", "agent"],
    ["succeeded", "agent"],
    ["succeeded", "agent"],
    ["failed", null],
    ["failed", null],
    ["failed", null],
  ]);
});

it("reads after each success whether the tool did what it said", async () => {
  verifies("beyond.effect.python", "beyond.effect.not-checked");
  const checking = await testServer({
    manifests: `
- {tool: doc.read, effect: read, permission: doc}
- {tool: doc.write, effect: irreversible, permission: doc, effect_check: {tool: doc.read, args: {id: $result.id}, expect: {text: $args.text, title: $args.title}, retries: 1, backoff_ms: 1}}
`,
  });
  await checking.http.listen({ host: "127.0.0.1", port: 0 });
  const missing = "doc.write reported success, but a read does not show its effect";
  expect(await python(checking, CHECKING)).toEqual(["a", [missing, { id: "a" }], "a", missing]);
  const { body } = await checking.call("auditor", "GET", "/v1/runs/checking");
  const steps = body.steps as { status: string; effect_check?: string }[];
  expect(steps.map(({ status, effect_check }) => [status, effect_check])).toEqual([
    ["succeeded", "held"],
    ["uncertain", "missing"],
    ["succeeded", "not checked"],
    ["uncertain", "missing"],
  ]);
});

/** The forging server against the Python client, and what it must read exactly as the service does. */
import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { createInterface, type Interface } from "node:readline";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startListening } from "../../src/http/lifecycle.ts";
import { keyedHash } from "../../src/kernel/hash.ts";
import type { JsonValue } from "../../src/kernel/json/json.ts";
import { compileGlob } from "../../src/kernel/text/glob.ts";
import { ROOT } from "../support/files.ts";
import {
  type AskedCall,
  FORGERY_NAMES,
  type ForgedSurface,
  forgedApprovers,
  playForgery,
  playHonestly,
  writeApprovers,
} from "../support/forgeries.ts";
import { forgingServer } from "../support/forging.ts";
import { program } from "../support/programs.ts";
import { testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const PYTHON = await program("python3");
const tool = "pay.refund";
const file = forgedApprovers(tool);
const env = { ...process.env, PYTHONPATH: join(ROOT, "sdk", "python"), PYTHONDONTWRITEBYTECODE: "1" };

/** Opens a run for each line `open`, and makes a call of it, by turns in a thread and in a coroutine. */
const AGENT = `
import asyncio, json, sys
from reversi_sdk import AsyncClient, Blocked, Client
url, file = sys.argv[1:]
later = False
for line in sys.stdin:
    order = json.loads(line)
    if order == "open":
        later = not later
        made = (AsyncClient if later else Client)(url, "agent", approvers=file).run(permissions=["pay"])
        run = asyncio.run(made) if later else made
        print(json.dumps({"run_id": run.run_id}), flush=True)
        continue
    ran, why = [], ""
    call = ("${tool}", {"amount": order}, "because", lambda: ran.append(True))
    try:
        asyncio.run(run.call(*call)) if later else run.call(*call)
    except Blocked as refusal:
        why = str(refusal)
    print(json.dumps({"ran": ran != [], "why": why}), flush=True)
`;

let agent: ChildProcess;
let answers: Interface;
let asked: AskedCall;
async function order<T>(line: unknown): Promise<T> {
  const answer = once(answers, "line");
  agent.stdin!.write(`${JSON.stringify(line)}\n`);
  return JSON.parse((await answer)[0] as string) as T;
}

const surface: ForgedSurface = {
  lies: { decision: {}, evidence: () => ({}) },
  async open() {
    const { run_id } = await order<{ run_id: string }>("open");
    return (amount) => {
      asked = { run_id, tool, args: { amount } };
      return order(amount);
    };
  },
};

beforeAll(async () => {
  const s = await testServer({ manifests: `- {tool: ${tool}, effect: idempotent, permission: pay}\n` });
  const listening = await startListening(s.http, "127.0.0.1", 0);
  const forger = await forgingServer(listening.url);
  forger.lies.push(({ path }, answer) => {
    if (/\/intents$/.test(path)) return { ...answer, ...surface.lies.decision };
    return /\/signatures$/.test(path) ? surface.lies.evidence(asked) : undefined;
  });
  agent = spawn(PYTHON, ["-c", AGENT, forger.url, file], { env, stdio: ["pipe", "pipe", "inherit"] });
  answers = createInterface({ input: agent.stdout! });
  afterAll(async () => {
    agent.stdin!.end();
    await once(agent, "exit");
    await forger.close();
    await listening.stop();
  });
});

describe("the Python client", () => {
  it("makes a really signed call", async () => {
    verifies("beyond.approvers.python");
    await playHonestly(surface, { file, tool });
  });

  it.each(FORGERY_NAMES)("refuses %s", async (name) => {
    verifies("beyond.approvers.python");
    await playForgery(name, surface, { file, tool });
  });
});

const python = async (script: string, input: unknown): Promise<unknown> => {
  const path = join(tempDir("python"), "input.json");
  writeFileSync(path, JSON.stringify(input));
  const { stdout } = await promisify(execFile)(PYTHON, ["-c", script, path], { env });
  return JSON.parse(stdout);
};

it("hashes arguments as the service does", async () => {
  verifies("beyond.approvers.python");
  const numbers = [0, -0, 1, -1.5, 412.5, 1e21, 1e20, 123_456_789.125, 1e-6, 1e-7, -2.5e-9, 5e-324, 1.7e308];
  for (let i = 0; i < 500; i++) numbers.push((Math.random() - 0.5) * 10 ** (i / 10 - 25));
  // Larger whole numbers are refused by both.
  const exact = numbers.filter((one) => !Number.isInteger(one) || Number.isSafeInteger(one));
  const values: JsonValue[] = [
    ...exact,
    { z: ["\u2028", "😀", '\u0001"\\'], "\ue000": 1, "😀": null, a: true },
  ];
  const script = `
import json, sys
from reversi_sdk.approvers import _keyed_hash
print(json.dumps([_keyed_hash("salt", one) for one in json.load(open(sys.argv[1], encoding="utf-8"))]))
`;
  expect(await python(script, values)).toEqual(values.map((one) => keyedHash("salt", one)));
});

it("reads globs as the service does", async () => {
  verifies("beyond.approvers.python");
  const globs = [
    "*",
    "pay.*",
    "pay.re?und",
    "{pay,mail}.*",
    "a{b,{c,d}*}e",
    "a,b",
    "pay.(x)",
    "😀?",
    "??",
    "{}x",
  ];
  const broken = ["{", "}", "a{b", "{".repeat(11) + "}".repeat(11), "x".repeat(2_001), "{a,b}".repeat(10)];
  const texts = [
    "pay.refund",
    "pay.",
    "mail.send",
    "abe",
    "acxe",
    "ade",
    "a,b",
    "pay.(x)",
    "😀x",
    "😀",
    "x",
    "p\ny",
  ];
  const script = `
import json, sys
from reversi_sdk.approvers import _units, glob_pattern
globs, texts = json.load(open(sys.argv[1], encoding="utf-8"))
found = [glob_pattern(glob) for glob in globs]
print(json.dumps([None if one is None else [one.fullmatch(_units(text)) is not None for text in texts] for one in found]))
`;
  expect(await python(script, [[...globs, ...broken], texts])).toEqual([
    ...globs.map((glob) => texts.map((text) => compileGlob(glob).test(text))),
    ...broken.map(() => null),
  ]);
  for (const glob of broken) expect(() => compileGlob(glob)).toThrow();
});

it("refuses a file that is missing, not valid, or written by others, and keeps the old one while a new one is", async () => {
  verifies("beyond.approvers.python", "beyond.approvers.owner");
  const script = `
import json, os, sys, warnings
from reversi_sdk import InputError
from reversi_sdk.approvers import ApproversGuard, Call
path = json.load(open(sys.argv[1]))
said = []
for change in (None, {"origins": []}, {"more": 1}, {"require": [{"tool": "{", "groups": [], "quorum": 1}]}, {"require": [{"tool": "x", "groups": [], "quorum": 0}]}):
    text = open(path).read()
    wrong = path + ".wrong"
    if change is not None:
        with open(wrong, "w") as file:
            json.dump({**json.loads(text), **change}, file)
    try:
        ApproversGuard(wrong)
        said.append("accepted")
    except InputError as error:
        said.append("cannot be read" if "cannot be read" in str(error) else "not valid")
guard = ApproversGuard(path)
with open(path, "w") as file:
    file.write("{")
with warnings.catch_warnings(record=True) as warned:
    warnings.simplefilter("always")
    said.append(guard.objection(Call("r", "${tool}", {}), lambda: None) is not None)
    said.append(len(warned))
print(json.dumps(said))
`;
  const path = join(tempDir("python"), "approvers.json");
  writeApprovers(path, tool);
  expect(await python(script, path)).toEqual([
    ...["cannot be read", "not valid", "not valid", "not valid", "not valid"],
    ...[true, 1],
  ]);
  writeApprovers(path, tool);
  chmodSync(path, 0o666);
  await expect(python(script, path)).rejects.toThrow("written by others");
  chmodSync(path, 0o644);
  for (const mode of [0o777, 0o775]) {
    chmodSync(dirname(path), mode);
    await expect(python(script, path)).rejects.toThrow("written by others");
  }
});

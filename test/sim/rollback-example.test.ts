/** The worked example of the guide, run for real: a service, the two commands, and the manifests between them. */
import { type ChildProcess, spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { compensatorCommand, readerCommand } from "../../src/child-process/rollback-commands.ts";
import { loadPlan } from "../../src/rollback/plan/load-run.ts";
import { executeRollback } from "../../src/rollback/undo/execute.ts";
import { manifestProblems } from "../../src/rules/manifest/load.ts";
import { principal, testEngine } from "../support/engine.ts";
import { ROOT } from "../support/files.ts";
import { restless } from "./rollback-fixture.ts";

const FOLDER = join(ROOT, "examples/reversible-tools");
const MANIFESTS = readFileSync(join(FOLDER, "manifests.yaml"), "utf8");
const BOT = principal("desk-bot");

let service: ChildProcess;
let base = "";

beforeAll(async () => {
  service = spawn(process.execPath, [join(FOLDER, "service.mjs")], { stdio: ["ignore", "pipe", "inherit"] });
  base = await new Promise<string>((resolve) =>
    service.stdout?.once("data", (line: Buffer) => resolve(String(line).trim())),
  );
});
afterAll(() => {
  service.kill("SIGKILL");
});

interface State {
  bookings: { id: string; status: string; note: string | null }[];
  charges: { id: string; refunded: boolean }[];
  effects: Record<string, number>;
}

async function ask<T>(method: string, path: string, body?: unknown): Promise<T> {
  const response = await fetch(base + path, {
    method,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return (await response.json()) as T;
}

/** Undo keys follow from the run's id, and the service remembers them: no two runs may share one. */
let runs = 0;

/** What agent.mjs does, here with the engine at hand. */
async function agentRun(letter: boolean) {
  const engine = testEngine({ manifests: MANIFESTS });
  const permissions = ["rooms.read", "rooms.write", "desk.charge", "desk.write", "post.send"];
  const run_id = `r${++runs}`;
  await engine.open(BOT, { run_id, permissions });
  const call = async <T>(
    tool: string,
    args: { [name: string]: string | number },
    method: string,
    path: string,
  ): Promise<T> => {
    const decision = await engine.intent(BOT, run_id, tool, args);
    if (decision.decision !== "allow") throw new Error(JSON.stringify(decision));
    const result = await ask<T>(method, path, args);
    await engine.outcome(BOT, run_id, decision.step, { status: "succeeded", result: result as never });
    return result;
  };
  const booking = await call<{ id: string }>(
    "rooms.book",
    { room: "12", night: run_id },
    "POST",
    "/bookings",
  );
  await call("rooms.set_note", { booking: booking.id, note: "late arrival" }, "PUT", `/notes/${booking.id}`);
  const charge = await call<{ id: string }>(
    "desk.charge",
    { booking: booking.id, amount: 80 },
    "POST",
    "/charges",
  );
  if (letter) await call("post.letter", { booking: booking.id }, "POST", "/letters");
  return { ...engine, run_id, booking: booking.id, charge: charge.id };
}

function rollback(run: Awaited<ReturnType<typeof agentRun>>, reads = true) {
  const command = (script: string): string => `'${process.execPath}' '${join(FOLDER, script)}' ${base}`;
  return executeRollback({ ...run.core, env: restless(run.env, []) }, run.run_id, {
    actor: "olga",
    compensator: compensatorCommand(command("compensate.mjs")),
    reader: reads ? readerCommand(command("read.mjs")) : null,
    approve_compensations: true,
  });
}

const state = () => ask<State>("GET", "/state");
const shown = async (run: { booking: string; charge: string }) => {
  const { bookings, charges } = await state();
  return {
    booking: bookings.find(({ id }) => id === run.booking),
    charge: charges.find(({ id }) => id === run.charge),
  };
};

describe("the example of reversible tools", () => {
  beforeEach(() => ask("POST", "/failures", { count: 0 }));

  it("undoes all of a run, and the service shows it", async () => {
    const run = await agentRun(false);
    expect(await loadPlan(run.store, run.run_id)).toMatchObject({ fully_reversible: true });
    expect(await rollback(run)).toMatchObject({ compensated: [2, 1, 0], complete: true });
    expect(await shown(run)).toMatchObject({
      booking: { status: "cancelled", note: null },
      charge: { refunded: true },
    });
  });

  it("repeats an undo that failed, and it takes effect once", async () => {
    const run = await agentRun(false);
    const before = Object.keys((await state()).effects).length;
    await ask("POST", "/failures", { count: 2 });
    expect(await rollback(run)).toMatchObject({ complete: true });
    const { effects } = await state();
    expect(Object.keys(effects)).toHaveLength(before + 3);
    expect(new Set(Object.values(effects))).toEqual(new Set([1]));
  });

  it("leaves the subject of a letter alone, and reports it", async () => {
    const run = await agentRun(true);
    expect(await rollback(run)).toMatchObject({
      compensated: [2, 1],
      unrecoverable: [3],
      deferred: [{ step: 0, blocked_by: [3] }],
      complete: false,
    });
    expect(await shown(run)).toMatchObject({
      booking: { status: "booked", note: null },
      charge: { refunded: true },
    });
  });

  it("says where nobody looked", async () => {
    const run = await agentRun(false);
    expect(await rollback(run, false)).toMatchObject({
      compensated: [2, 1, 0],
      unverified: [2, 0],
      complete: false,
    });
  });

  it("says what failed, without the values of the call", async () => {
    const run = await agentRun(false);
    await ask("POST", "/failures", { count: 1_000 });
    const report = await rollback(run);
    expect(report).toMatchObject({ compensated: [], deferred: [{ step: 0, blocked_by: [1, 2] }] });
    expect(report.failed[0]?.error).toBe(
      "after 3 attempts: the compensator command exited with code 1: POST answered 503: the desk is closed for a moment",
    );
  });
});

describe("the guide", () => {
  const guide = readFileSync(join(ROOT, "docs/guides/make-a-tool-undoable.md"), "utf8");
  const blocks = [...guide.matchAll(/```yaml manifests\n([\s\S]*?)```/g)].map((match) => match[1]!);

  it("has manifests that are valid", () => {
    expect(blocks.length).toBeGreaterThan(2);
    for (const block of [...blocks, MANIFESTS]) expect(manifestProblems(block, "guide")).toEqual([]);
  });
});

/** After a run: every answer is looked for in the ledger of every node, and the histories go to the checker. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import pg from "pg";
import { openStore } from "../../../src/store/open.ts";
import type { Linked } from "../../../test/support/first-bad.ts";
import { until } from "../../../test/support/until.ts";
import { auditStore, type Findings } from "../audit.ts";
import type { Answer } from "./client.ts";
import { CLUSTER_SOURCES } from "./config.ts";
import { nanoseconds, type Operation } from "./history.ts";
import { type Cluster, DATABASES, type Database } from "./nodes.ts";

const SAME_HEAD_MS = 60_000;

export interface Ledger {
  findings: Findings;
  records: Linked[];
  problems: string[];
}

/** The ledger as the primary has it, checked, and the same head on every node. */
export async function readLedger(cluster: Cluster): Promise<Ledger> {
  // A standby may lack the newest records, and a cluster that has not recovered has nothing else.
  let primary: Database | undefined;
  const hasPrimary = async (): Promise<boolean> => {
    primary = await cluster.primary();
    return primary !== undefined;
  };
  await until(hasPrimary, "a primary whose ledger can be read", SAME_HEAD_MS);
  const store = await openStore({
    store: "postgres",
    data: "",
    database_url: cluster.databaseUrl(primary!),
    warn: () => {},
  });
  try {
    const { findings, records } = await auditStore(store, []);
    const problems: string[] = [];
    // Compared at one moment: a server's background work can still append.
    const isSame = async (): Promise<boolean> => {
      const heads = await Promise.all(
        DATABASES.map((node) => headOf(cluster.databaseUrl(node)).catch(() => `${node} does not answer`)),
      );
      return new Set(heads).size === 1;
    };
    await until(isSame, "all nodes to have one head", SAME_HEAD_MS).catch((error: Error) =>
      problems.push(error.message),
    );
    return { findings, records, problems };
  } finally {
    await store.close();
  }
}

async function headOf(url: string): Promise<string> {
  const client = new pg.Client(url);
  try {
    await client.connect();
    const { rows } = await client.query("SELECT records, hash FROM svc_head");
    return `${rows[0].records} ${rows[0].hash}`;
  } finally {
    await client.end();
  }
}

/** Where each answer is in the ledger. */
export function positionsOf(records: readonly Linked[], answers: readonly Answer[]): (number | undefined)[] {
  const calls = new Map<string, number>();
  const lines = new Map<string, number>();
  for (const record of records) {
    const { event, seq, run_id, step } = record;
    if (step !== undefined) calls.set(`${event} ${run_id}/${step}`, seq);
    // A decided object has an id, somewhere in its record; the first record that names it is the decision.
    for (const [id] of JSON.stringify(record).matchAll(/\b[a-z]{3,4}_[0-9a-f]{8}[0-9a-f-]{24,28}/g))
      if (!lines.has(`${event} ${id}`)) lines.set(`${event} ${id}`, seq);
  }
  return answers.map(
    ({ event, subject }) => calls.get(`${event} ${subject}`) ?? lines.get(`${event} ${subject}`),
  );
}

/** One history more: the ledger as one object that only grows. */
export function ledgerHistory(
  answers: readonly Answer[],
  positions: readonly (number | undefined)[],
): Operation[] {
  return answers.flatMap(({ call, answered }, client) => {
    const arg = positions[client];
    if (arg === undefined) return [];
    const times = { call: nanoseconds(call), return: nanoseconds(answered) };
    return [{ model: "ledger", object: "all", client, op: "append", arg: arg + 1, out: "ok", ...times }];
  });
}

export interface Checked {
  operations: number;
  objects: number;
  per_model: Record<string, number>;
  illegal: string[];
  undecided: string[];
}

/** The checker: porcupine, built with Go. `source` is a checkout of it; without one, Go downloads it. */
export class Checker {
  private readonly folder = mkdtempSync(join(tmpdir(), "svc-checker-"));
  private readonly program = join(this.folder, "check");

  constructor(source: string | undefined) {
    cpSync(join(CLUSTER_SOURCES, "check"), this.folder, { recursive: true });
    const go = (...args: string[]): void => {
      execFileSync("go", args, { cwd: this.folder, stdio: ["ignore", "inherit", "inherit"] });
    };
    if (source !== undefined) go("mod", "edit", "-replace", `github.com/anishathalye/porcupine=${source}`);
    go("build", "-mod=mod", "-o", this.program, ".");
  }

  check(operations: readonly Operation[]): Checked {
    const input = operations.map((each) => JSON.stringify(each)).join("\n");
    const { stdout, stderr, status } = spawnSync(this.program, {
      input,
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    if (status !== 0) throw new Error(`the checker failed: ${stderr}`);
    return JSON.parse(stdout) as Checked;
  }

  /** Changes one answer of each model, so that no order explains it; returns the models whose lie was believed. */
  believedLies(operations: readonly Operation[]): string[] {
    return Object.entries(LIES).flatMap(([model, lie]) => {
      const told = historyToChange(operations, model, lie.fits);
      if (told === undefined) return [`${model}: no history to change`];
      lie.change(told.at(-1)!);
      return this.check(told).illegal.length === 1 ? [] : [`${model}: ${JSON.stringify(told)}`];
    });
  }

  close(): void {
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** A copy of an object's history that is answered throughout and ends with an operation that can be changed. */
function historyToChange(
  operations: readonly Operation[],
  model: string,
  fits: (each: Operation) => boolean,
): Operation[] | undefined {
  const objects = new Map<string, Operation[]>();
  for (const each of operations) {
    if (each.model !== model) continue;
    const history = objects.get(each.object) ?? [];
    history.push({ ...each });
    objects.set(each.object, history);
  }
  return [...objects.values()].find(
    (history) => history.every(({ out }) => out !== "") && fits(history.at(-1)!),
  );
}

const flip = (each: Operation): void => {
  each.out = each.out === "allowed" ? "blocked" : "allowed";
};

/** The last call of a contest begins after all others were answered, so only one answer is possible. */
const LIES: Record<Operation["model"], { fits(last: Operation): boolean; change(last: Operation): void }> = {
  approval: { fits: ({ op }) => op === "use", change: flip },
  grant: { fits: ({ op }) => op === "use", change: flip },
  limit: { fits: ({ op }) => op === "call", change: flip },
  halt: { fits: ({ op }) => op === "call", change: flip },
  plan: { fits: ({ op }) => op === "use", change: flip },
  ledger: {
    fits: () => true,
    change: (each) => {
      each.arg = 1;
    },
  },
};

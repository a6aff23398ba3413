/**
 * Plays tau2-bench's ground truth of a shop and an airline through the library and rolls each task back: the state is
 * equal to the one before, or the report names the step behind each difference. Once with the domains' own tools as
 * undos, once with a tool that restores records.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { type Json, open, type Run, type TreeReport } from "../../../src/index.ts";
import { toCanonicalJson } from "../../../src/kernel/json/canonical.ts";

const WRITES = {
  retail: [
    "cancel_pending_order",
    "exchange_delivered_order_items",
    "modify_pending_order_address",
    "modify_pending_order_items",
    "modify_pending_order_payment",
    "modify_user_address",
    "return_delivered_order_items",
  ],
  airline: [
    "book_reservation",
    "cancel_reservation",
    "send_certificate",
    "update_reservation_baggages",
    "update_reservation_flights",
    "update_reservation_passengers",
  ],
} as const;
type Domain = keyof typeof WRITES;

const address = (from: string) =>
  Object.fromEntries(
    ["address1", "address2", "city", "state", "country", "zip"].map((part) => [part, `${from}.${part}`]),
  );

interface OwnUndo {
  effect: "reversible" | "compensable";
  read: string;
  id: string;
  tool: string;
  args: { [name: string]: Json };
  residue?: string[];
}

/** Undos that the domains' own tools can be. All other writes are irreversible. */
const OWN_UNDOS: Readonly<Record<string, OwnUndo>> = {
  modify_pending_order_address: {
    effect: "reversible",
    read: "get_order_details",
    id: "order_id",
    tool: "modify_pending_order_address",
    args: { order_id: "$args.order_id", ...address("$before.address") },
  },
  modify_user_address: {
    effect: "reversible",
    read: "get_user_details",
    id: "user_id",
    tool: "modify_user_address",
    args: { user_id: "$args.user_id", ...address("$before.address") },
  },
  modify_pending_order_payment: {
    effect: "compensable",
    read: "get_order_details",
    id: "order_id",
    tool: "modify_pending_order_payment",
    args: { order_id: "$args.order_id", payment_method_id: "$before.payment_history[0].payment_method_id" },
    residue: ["the payment history shows both changes"],
  },
  update_reservation_passengers: {
    effect: "reversible",
    read: "get_reservation_details",
    id: "reservation_id",
    tool: "update_reservation_passengers",
    args: { reservation_id: "$args.reservation_id", passengers: "$before.passengers" },
  },
  update_reservation_flights: {
    effect: "compensable",
    read: "get_reservation_details",
    id: "reservation_id",
    tool: "update_reservation_flights",
    args: {
      reservation_id: "$args.reservation_id",
      cabin: "$before.cabin",
      flights: "$before.flights",
      payment_id: "$args.payment_id",
    },
    residue: ["the payment history shows both changes", "prices and seats are those of today"],
  },
};

function manifests(domain: Domain, restores: boolean): object[] {
  const reads = ["get_order_details", "get_user_details", "get_reservation_details", "backup"];
  const write = (tool: string): object => {
    const base = { tool, permission: "p" };
    const call = { tool, args: "$args" };
    if (restores)
      return {
        ...base,
        effect: "reversible",
        before: { tool: "backup", args: call, max_bytes: 8_388_608 },
        compensation: { tool: "restore", args: { records: "$before.records" }, kind: "inverse" },
        verification: { tool: "backup", args: call, expect: "$before", retries: 0 },
      };
    if (tool === "book_reservation") {
      const undo = { tool: "cancel_reservation", args: { reservation_id: "$result.reservation_id" } };
      const residue = ["the reservation stays, as cancelled, with its refund"];
      return { ...base, effect: "compensable", compensation: { ...undo, residue } };
    }
    const own = OWN_UNDOS[tool];
    if (own === undefined) return { ...base, effect: "irreversible" };
    const { effect, read, id, tool: undo, args, residue } = own;
    return {
      ...base,
      effect,
      before: { tool: read, args: { [id]: `$args.${id}` } },
      compensation: { tool: undo, args, ...(residue === undefined ? { kind: "inverse" } : { residue }) },
    };
  };
  return [...reads.map((tool) => ({ tool, effect: "read", permission: "p" })), ...WRITES[domain].map(write)];
}

class DomainProcess {
  private readonly child: ChildProcess;
  private readonly lines: AsyncIterator<string>;

  constructor(python: string, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
    this.child = spawn(python, [resolve("stress/prove/tau2/domain.py"), ...args], {
      stdio: ["pipe", "pipe", "inherit"],
      env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1", ...env },
    });
    this.lines = createInterface({ input: this.child.stdout! })[Symbol.asyncIterator]();
  }

  async ask<T = Json>(op: string, more: object = {}): Promise<T> {
    this.child.stdin!.write(`${JSON.stringify({ op, ...more })}\n`);
    const { value, done } = await this.lines.next();
    if (done === true) throw new Error("the domain's process ended");
    const answer = JSON.parse(value) as { ok: T } | { error: string };
    if ("error" in answer) throw new Error(answer.error);
    return answer.ok;
  }

  use(tool: string, args: Json): Promise<Json> {
    if (tool === "backup" || tool === "restore") return this.ask(tool, args as object);
    return this.ask("call", { tool, args });
  }

  close(): void {
    this.child.stdin!.end();
  }
}

type Records = Record<string, Json>;

/** Counts of one domain. `unnamed` lists differences that no report names; there must be none. */
export interface HonestyCount {
  domain: string;
  restore: boolean;
  tasks: number;
  writes: number;
  refused: number;
  equal: number;
  named: number;
  unnamed: string[];
}

export async function playGroundTruth(
  domain: Domain,
  restores: boolean,
  from: { checkout: string; python: string; parts?: string; limit?: number; env?: Record<string, string> },
): Promise<HonestyCount> {
  const parts = from.parts === undefined ? [] : [from.parts];
  const shop = new DomainProcess(from.python, [from.checkout, domain, ...parts], from.env);
  const folder = mkdtempSync(join(tmpdir(), "svc-tau2-"));
  const file = join(folder, "manifests.yaml");
  writeFileSync(file, JSON.stringify(manifests(domain, restores)));
  const svc = await open({ manifests: file, data: join(folder, "data") });
  const count: HonestyCount = {
    domain,
    restore: restores,
    tasks: 0,
    writes: 0,
    refused: 0,
    equal: 0,
    named: 0,
    unnamed: [],
  };
  try {
    const { tasks } = await shop.ask<{ tasks: { id: string; calls: { tool: string; args: Json }[] }[] }>(
      "tasks",
    );
    for (const { id, calls } of tasks) {
      if (count.tasks >= (from.limit ?? tasks.length)) break;
      const writes = calls.filter(({ tool }) => (WRITES[domain] as readonly string[]).includes(tool));
      if (writes.length === 0) continue;
      await shop.ask("reset");
      count.tasks++;
      count.writes += writes.length;
      const run = await svc.run({ actor: "ground-truth", permissions: ["p"], reason: `task ${id}` });
      const touched = await make(shop, run, writes, count);
      const report = await undo(shop, run);
      const left = Object.keys(await shop.ask<Records>("changed"));
      if (left.length === 0) count.equal++;
      else if (left.every((record) => isNamed(record, touched, report, restores))) count.named++;
      else count.unnamed.push(`task ${id}: ${left.join(", ")}`);
    }
  } finally {
    await svc.close();
    shop.close();
    rmSync(folder, { recursive: true, force: true });
  }
  return count;
}

/** Makes the calls, and returns the records that each step changed. */
async function make(
  shop: DomainProcess,
  run: Run,
  writes: readonly { tool: string; args: Json }[],
  count: HonestyCount,
): Promise<Map<number, { tool: string; records: Set<string> }>> {
  const touched = new Map<number, { tool: string; records: Set<string> }>();
  const read = ({ tool, arguments: args }: { tool: string; arguments: Json }) => shop.use(tool, args);
  for (const { tool, args } of writes) {
    const before = await shop.ask<Records>("changed");
    let step = -1;
    const call = run.call(
      { tool, args, reason: "ground truth" },
      (n) => {
        step = n;
        return shop.use(tool, args);
      },
      { read },
    );
    await call.catch(() => {
      count.refused++;
    });
    const after = await shop.ask<Records>("changed");
    const names = [...Object.keys(before), ...Object.keys(after)];
    const changed = names.filter((name) => textOf(before[name]) !== textOf(after[name]));
    if (step >= 0) touched.set(step, { tool, records: new Set(changed) });
  }
  return touched;
}

const textOf = (value: Json | undefined): string => (value === undefined ? "" : toCanonicalJson(value));

function undo(shop: DomainProcess, run: Run): Promise<TreeReport> {
  return run.rollback({
    compensator: async ({ tool, args }) => {
      await shop.use(tool, args);
    },
    verifier: ({ tool, arguments: args }) => shop.use(tool, args),
    retries: 1,
  });
}

/** Whether the report, or the residue of an undo in it, names a step that changed the record. */
function isNamed(
  record: string,
  touched: ReadonlyMap<number, { tool: string; records: ReadonlySet<string> }>,
  report: TreeReport,
  restores: boolean,
): boolean {
  const notUndone = new Set([
    ...report.unrecoverable,
    ...report.unresolved,
    ...report.failed.map(({ step }) => step),
    ...report.deferred.map(({ step }) => step),
  ]);
  return [...touched].some(([step, { tool, records }]) => {
    if (!records.has(record)) return false;
    const leaves = !restores && (tool === "book_reservation" || OWN_UNDOS[tool]?.residue !== undefined);
    return notUndone.has(step) || (leaves && report.compensated.includes(step));
  });
}

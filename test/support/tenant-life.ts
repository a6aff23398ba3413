/** Two tenants with something of everything, and all ways to ask for it: neither may learn anything of the other. */
import { expect } from "vitest";
import type { StateStore } from "../../src/govern/port/store.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { until } from "./until.ts";

export const TENANT_MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- tool: crm.create
  effect: compensable
  permission: p
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse, until: 2h}
- {tool: mail.send, effect: irreversible, permission: p}
`;
export const TENANT_POLICY = `
version: 1
rules:
  - {id: mails, match: {tool: mail.send}, action: require_approval, reason: a person must see it}
budgets:
  - {id: calls, match: {tool: crm.get}, path: $args.n, per: actor, max: 100, window: 1d}
retention: {default_days: 30}
`;
export const ROLES = ["agent", "auditor", "approver", "operator", "admin"];
export const NEIGHBOUR = "globex";

/** What a tenant has, by the words of a path that name it. */
export type Things = Record<
  "runs" | "approvals" | "plans" | "grants" | "delegations" | "holds" | "contain" | "incidents" | "actors",
  string
> & {
  halt: string;
};

/** An agent that works for both tenants under one name, each with its own key. */
export const TWIN = "twin";

/** The other tenant's keys come first: positions in the file move when one is deleted. */
export const TENANT_KEYS = [NEIGHBOUR, "acme"].flatMap((tenant) => {
  const bound = { tenant, tenant_only: true };
  const keys = ["passing", "spare", ...ROLES].map((name) => ({
    name: `${tenant}-${name}`,
    role: ROLES.includes(name) ? name : "agent",
    ...bound,
  }));
  return [...keys, { name: TWIN, role: "agent", ...bound, key_sha256: sha256Hex(`${tenant}-${TWIN}`) }];
});

/** A request with this key. */
type Call = (
  key: string,
  method: string,
  path: string,
  body?: object,
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
) => Promise<{ status: number; body: any }>;

/** Something of everything that a tenant can have. */
export async function life(call: Call, now: number, tenant: string): Promise<Things> {
  const as = async (role: string, method: string, path: string, body?: object) => {
    const { status, body: answer } = await call(`${tenant}-${role}`, method, `/v1/${path}`, body);
    expect(status, `${method} ${path}: ${JSON.stringify(answer)}`).toBeLessThan(300);
    return answer;
  };
  const run = `${tenant}-run`;
  const ask = (tool: string, args: object = {}) =>
    as("agent", "POST", `runs/${run}/intents`, { tool, args, reason: `${tenant} asks` });
  const expires_at = new Date(now + 3_600_000).toISOString();
  const reason = `the reason of ${tenant}`;
  for (const run_id of [run, `${tenant}-1`, `${tenant}-2`])
    await as("agent", "POST", "runs", { run_id, permissions: ["p"], reason });
  await ask("crm.get", { n: 1 });
  const { step } = await ask("crm.create", { name: tenant });
  await as("agent", "POST", `runs/${run}/steps/${step}/outcome`, {
    status: "succeeded",
    result: { id: tenant },
  });
  const { step: failed } = await ask("crm.create");
  await as("agent", "POST", `runs/${run}/steps/${failed}/outcome`, {
    status: "failed",
    error: `${tenant} failed`,
  });
  await ask("mail.send", { to: tenant });
  await ask("mail.send", { to: `${tenant} too` });
  const [pending, denied] = (await as("approver", "GET", "approvals")).approvals;
  await as("approver", "POST", `approvals/${denied.id}/deny`, { note: reason });
  const calls = [{ tool: "mail.send", args: {}, reason }];
  const plan = await as("agent", "POST", `runs/${tenant}-1/plans`, { reason, calls });
  const decided = await as("agent", "POST", `runs/${tenant}-2/plans`, { reason, calls });
  await as("approver", "POST", `plans/${decided.id}/deny`, { note: reason });
  const match = { tool: "mail.send", actor: `${tenant}-agent` };
  const grant = await as("admin", "POST", "grants", {
    ...{ match, rules: ["mails"], max_uses: 1, irreversible: true, expires_at, reason },
  });
  const lent = await as("approver", "POST", "delegations", { to: `${tenant}-auditor`, expires_at, reason });
  const hold = await as("admin", "POST", "holds", { actor: `${tenant}-agent`, reason });
  const halt = await as("admin", "POST", "halt", { tool: "none.*", reason });
  const { keys } = await as("admin", "GET", "keys");
  const passing = keys.find(({ name }: { name: string }) => name === `${tenant}-passing`);
  await as("admin", "DELETE", `keys/${passing.index}`);
  await as("admin", "POST", "keys", { name: `${tenant}-more`, role: "agent" });
  const contained = await as("admin", "POST", "contain", {
    ...{ actor: `${tenant}-spare`, reason, confirm: true, no_rollback: true },
  });
  const job = contained.job.id;
  await until(
    async () => (await as("admin", "GET", `contain/${job}`)).job.state === "done",
    "the containment",
  );
  return {
    ...{ runs: run, approvals: pending.id, plans: plan.id, grants: grant.id, delegations: lent.id },
    ...{ holds: hold.id, contain: job, halt: halt.id },
    ...{ incidents: await trouble(as, call, tenant), actors: `${tenant}-agent` },
  };
}

/** A request of a role that must succeed. */
type As = (
  role: string,
  method: string,
  path: string,
  body?: object,
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers freely
) => Promise<any>;

/** An agent of both tenants fails in many ways: returns the id of its incident in this tenant. */
async function trouble(as: As, call: Call, tenant: string): Promise<string> {
  const twin = async (path: string, body: object) => {
    const { status, body: answer } = await call(`${tenant}-${TWIN}`, "POST", `/v1/${path}`, body);
    expect(status, `${path}: ${JSON.stringify(answer)}`).toBeLessThan(300);
    return answer;
  };
  const run = `${tenant}-${TWIN}`;
  const scope = { permissions: ["p"], reason: `the reason of ${tenant}` };
  await twin("runs", { run_id: run, ...scope });
  await twin("runs", { run_id: `${run}-child`, parent: run, ...scope });
  const step = (n: number, what: object) => twin(`runs/${run}/steps/${n}/outcome`, what);
  const ask = (tool: string) =>
    twin(`runs/${run}/intents`, { tool, args: { name: tenant }, reason: `${tenant} asks` });
  for (const n of [0, 1, 2]) {
    await ask("crm.create");
    if (n < 2) await step(n, { status: n === 0 ? "succeeded" : "uncertain", result: { id: tenant } });
  }
  await ask("mail.send");
  await ask("no.such");
  await as("operator", "POST", `runs/${run}/steps/0/compensation`, {});
  const failed = { status: "failed", error: `${tenant} refuses` };
  await as("operator", "POST", `runs/${run}/steps/0/compensation/outcome`, failed);
  const calls = [{ ref: `${tenant}-ref`, tool: "Bash", at_ms: 1, ran: true }];
  await as("operator", "POST", `runs/${run}/reconcile`, { source: "claude-code", calls });
  const agent = { client: "claude-code", version: "1", workspace: `/${tenant}`, governed: "no" };
  await as("agent", "POST", "agents", { agents: [{ ...agent, missing: [], last_seen_ms: 1 }] });
  await as("admin", "POST", "halt", { actor: TWIN, reason: `${tenant} stops it` });
  const { incidents } = await as("auditor", "GET", "incidents");
  const { id } = incidents.find(({ actor }: { actor: string }) => actor === TWIN);
  await as("operator", "POST", `incidents/${id}/notes`, { text: `${tenant} looks into it` });
  await as("operator", "POST", `incidents/${id}/assign`, { to: `${tenant}-operator` });
  return id;
}

/** Makes the calls of a tenant two hours older, so that its alerts and incidents come up without a wait. */
export async function ageCalls(store: StateStore, tenant: string): Promise<void> {
  const rows = await store.list("steps", { limit: 500 });
  const keys = rows.filter(({ doc }) => doc.run_id.startsWith(`${tenant}-`)).map(({ key }) => key);
  await store.transact({
    run(tx) {
      for (const key of keys) {
        const step = tx.get("steps", key)!;
        const run = tx.get("runs", step.run_id)!;
        const earlier = (at: number | null) => (at === null ? null : at - 7_200_000);
        const finished_ms = earlier(step.finished_ms);
        tx.put("steps", key, { ...step, intended_ms: step.intended_ms - 7_200_000, finished_ms });
        if (step.step === 0) tx.put("runs", run.run_id, { ...run, created_ms: run.created_ms - 7_200_000 });
      }
    },
  });
}

export const withIds = (path: string, things: Things): string =>
  path
    .replace(/\/([a-z]+)\/\{id\}/, (_, kind: string) => `/${kind}/${things[kind as keyof Things]}`)
    .replace("/actors/{name}", `/actors/${things.actors}`)
    .replace("{n}", "1")
    .replace("{index}", "999")
    .replace("{tool}", "crm.get")
    .replace("{version}", "1");

/** Where two answers part, in a few words. */
export function difference(one: string, other: string): [string, string] {
  let at = 0;
  while (one[at] === other[at]) at++;
  const from = Math.max(0, at - 40);
  return [one.slice(from, at + 80), other.slice(from, at + 80)];
}

const NEVER = "00000000-0000-4000-8000-000000000000";
export const neverThere = (theirs: Things): Things =>
  Object.fromEntries(
    Object.entries(theirs).map(([kind, id]) => [
      kind,
      id.replace(/[0-9a-f]{8}-.*/, NEVER).replace(/^globex-/, "nosuch-"),
    ]),
  ) as Things;

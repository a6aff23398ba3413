/** A real server that is stopped in the middle of its work, and started again: nothing waits for a lease. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { openStore, type StoreKind } from "../../src/store/open.ts";
import { type ServerProcess, startSvcServer } from "../support/cli.ts";
import { afterInput } from "../support/commands.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";

const STEPS = 12;
const MANIFESTS = `
- {tool: thing.make, effect: compensable, permission: p, compensation: {tool: thing.unmake, args: {id: $result.id}}}
`;

function place(store: StoreKind): string {
  const folder = tempDir();
  const config = [
    ...["manifests: manifests.yaml", "keys: keys.json", `store: ${store}`],
    `rollback: {compensator_cmd: "${afterInput("setTimeout(() => process.exit(0), 150)")}"}`,
    "export: {sinks: [{type: file, path: out.jsonl}]}",
  ];
  writeFileSync(join(folder, "svc.config.yaml"), `${config.join("\n")}\n`);
  writeFileSync(join(folder, "manifests.yaml"), MANIFESTS);
  const key = (name: string) => ({ name, role: name, key_sha256: sha256Hex(name), max_permissions: ["*"] });
  writeFileSync(join(folder, "keys.json"), JSON.stringify([key("agent"), key("operator")]), { mode: 0o600 });
  return folder;
}

async function call({ url }: ServerProcess, key: string, path: string, body?: unknown) {
  const response = await fetch(`${url}${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
  return (await response.json()) as any;
}

describe.each(["files", "sqlite"] as const)("a server on %s", (kind) => {
  it("gives back its leases at a stop; after a start stream and rollback continue", async () => {
    verifies("beyond.lease.given-back");
    const cwd = place(kind);
    const streamed = () => {
      const path = join(cwd, "out.jsonl");
      return existsSync(path) ? readFileSync(path, "utf8").split("\n").slice(0, -1) : [];
    };
    const first = await startSvcServer([], { cwd });
    await call(first, "agent", "/v1/runs", { run_id: "r1", permissions: ["p"] });
    for (let n = 0; n < STEPS; n++) {
      await call(first, "agent", "/v1/runs/r1/intents", { tool: "thing.make", args: {}, reason: "r" });
      const outcome = { status: "succeeded", result: { id: n } };
      await call(first, "agent", `/v1/runs/r1/steps/${n}/outcome`, outcome);
    }
    const job = async (server: ServerProcess) => (await call(server, "operator", "/v1/runs/r1/rollback")).job;
    expect((await call(first, "operator", "/v1/runs/r1/rollback", { confirm: true })).job.state).toBe(
      "running",
    );
    await until(async () => ((await job(first)).current_step ?? STEPS) < STEPS - 2, "a few undos");
    await until(() => streamed().length >= 2 * STEPS, "the stream");
    expect(await first.stop("SIGTERM")).toBe(0);

    const data = join(cwd, "data");
    const store = await openStore({ store: kind, data, database_url: null, warn: () => {} });
    expect(await store.list("leases", { limit: 10 })).toEqual([]);
    expect(await store.get("jobs", "r1")).toMatchObject({ state: "running" });
    await store.close();

    const second = await startSvcServer([], { cwd });
    await until(async () => (await job(second)).state === "done", "the rollback");
    expect((await job(second)).report).toMatchObject({ complete: true });
    const undone = () => streamed().filter((line) => line.includes(`"event":"compensated"`)).length;
    await until(() => undone() >= STEPS, "the last record");
    expect(await second.stop("SIGTERM")).toBe(0);
    const again = await openStore({ store: kind, data, database_url: null, warn: () => {} });
    const ledger = await again.records({ limit: 1_000 });
    expect(await again.list("leases", { limit: 10 })).toEqual([]);
    await again.close();
    // Each record once, in order: nothing was sent again, and nothing was left out.
    expect(streamed()).toEqual(ledger);
  });
});

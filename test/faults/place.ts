/** Where its own server under fault keeps what it has, and how it is asked. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { sha256Hex } from "../../src/kernel/hash.ts";
import type { StoreKind } from "../../src/store/open.ts";
import { type ServerProcess, startSvcServer } from "../support/cli.ts";
import { freshDatabase } from "../support/postgres.ts";
import { tempDir } from "../support/tmp.ts";

export interface Place {
  flags: string[];
  folder: string;
  env: Record<string, string>;
}

/** The key of each role is its name. */
const ROLES = ["agent", "approver", "admin"] as const;

export async function placeOn(store: StoreKind): Promise<Place> {
  const folder = tempDir(`server-${store}`);
  writeFileSync(
    join(folder, "manifests.yaml"),
    "- {tool: crm.get, effect: read, permission: crm.read}\n- {tool: pay, effect: irreversible, permission: pay}\n",
  );
  const rule = { id: "pay", match: { tool: "pay" }, action: "require_approval" };
  writeFileSync(join(folder, "policy.yaml"), JSON.stringify({ version: 1, rules: [rule] }));
  const keys = ROLES.map((role) => ({
    name: role,
    role,
    max_permissions: ["*"],
    key_sha256: sha256Hex(role),
  }));
  writeFileSync(join(folder, "keys.json"), JSON.stringify(keys), { mode: 0o600 });
  const flags = ["--store", store, "-d", join(folder, "data")];
  if (store !== "postgres") return { flags, folder, env: {} };
  const { url, drop } = await freshDatabase();
  onTestFinished(drop);
  return { flags, folder, env: { SVC_DATABASE_URL: url } };
}

export function start(place: Place, env: Record<string, string> = {}): Promise<ServerProcess> {
  const settings = {
    SVC_MANIFESTS: "manifests.yaml",
    SVC_POLICY: "policy.yaml",
    SVC_KEYS: "keys.json",
    SVC_LOG_LEVEL: "error",
  };
  return startSvcServer(place.flags, { cwd: place.folder, env: { ...settings, ...place.env, ...env } });
}

export interface Reply {
  status: number;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into bodies freely
  body: any;
  text: string;
}

export interface Asking {
  as?: (typeof ROLES)[number];
  /** The Idempotency-Key. */
  key?: string;
}

/** Asks under `/v1/`, as the agent unless said otherwise. */
export async function call(
  url: string,
  method: string,
  path: string,
  body?: object,
  { as = "agent", key }: Asking = {},
): Promise<Reply> {
  const answer = await fetch(`${url}/v1/${path}`, {
    method,
    headers: {
      authorization: `Bearer ${as}`,
      ...(body === undefined ? {} : { "content-type": "application/json" }),
      ...(key === undefined ? {} : { "idempotency-key": key }),
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await answer.text();
  const isJson = answer.headers.get("content-type")?.startsWith("application/json") === true;
  return { status: answer.status, body: isJson ? JSON.parse(text) : undefined, text };
}

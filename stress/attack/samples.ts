/** Valid inputs: what the attacks start from and the fuzzer mutates. */
import type { JsonObject } from "../../src/kernel/json/json.ts";

export const DEMO_MANIFESTS = `
- {tool: crm.get, effect: read, permission: crm.read}
- tool: crm.create
  effect: compensable
  permission: crm.write
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse}
- {tool: crm.delete, effect: idempotent, permission: crm.write}
- {tool: mail.send, effect: irreversible, permission: mail.send}
- {tool: pay.refund, effect: irreversible, permission: pay.refund}
- {tool: delete_user, effect: irreversible, permission: user.delete}
- {tool: echo, effect: read, permission: fake.read}
- {tool: counted, effect: idempotent, permission: fake.write}
`;

export const DEMO_POLICY = `version: 1
approvals: {four_eyes: true, max_open_per_run: 20}
rules:
  - id: large
    match: {tool: pay.refund}
    when: [{path: $args.amount, op: gt, value: 1000}]
    action: require_approval
  - id: gone
    match: {tool: mail.send}
    when: [{path: $args.to, op: ends_with, value: "@example.net"}]
    action: deny
limits:
  - {id: many, match: {tool: crm.delete}, max: 5, per: run, window: 1h, action: deny}
budgets:
  - {id: spent, match: {tool: pay.refund}, path: $args.amount, max: 100000, per: actor, window: 1d, action: deny}
`;

export const DEMO_CONFIG = `manifests: manifests.yaml
policy: policy.yaml
keys: keys.json
data: data
store: files
environment: staging
listen: {host: 127.0.0.1, port: 8900}
console: {mode: login}
log: {level: info}
metrics_public: false
capture: {ttl_days: 7}
`;

export const PERMISSIONS = ["crm.read", "crm.write", "mail.send", "pay.refund", "user.delete"];

/** A request that is fine as it is. */
export interface Request {
  key: string;
  method: string;
  path: string;
  body?: JsonObject;
}

const APR = "apr_00000000-0000-4000-8000-000000000000";

/** One for every kind of body that the API takes. `{run}` is a run that the key may use. */
export const REQUESTS: readonly Request[] = [
  {
    key: "agent",
    method: "POST",
    path: "/v1/runs",
    body: { run_id: "x-1", permissions: PERMISSIONS, mode: "enforce", reason: "why", tenant: "acme" },
  },
  {
    key: "agent",
    method: "POST",
    path: "/v1/runs/{run}/intents",
    body: { tool: "crm.get", args: { id: 7, deep: { a: [1, 2, { b: null }] } }, reason: "look" },
  },
  {
    key: "agent",
    method: "POST",
    path: "/v1/runs/{run}/intents",
    body: { tool: "pay.refund", args: { amount: 5000, currency: "EUR" }, reason: "late", depends_on: [] },
  },
  {
    key: "agent",
    method: "POST",
    path: "/v1/runs/{run}/steps/0/outcome",
    body: { status: "succeeded", result: { id: "c-1" } },
  },
  {
    key: "agent",
    method: "POST",
    path: "/v1/runs/{run}/steps/0/outcome",
    body: { status: "failed", error: "no" },
  },
  {
    key: "operator",
    method: "POST",
    path: "/v1/runs/{run}/steps/0/resolve",
    body: { status: "succeeded", note: "seen" },
  },
  { key: "approver", method: "POST", path: `/v1/approvals/${APR}/approve`, body: { note: "fine" } },
  { key: "approver", method: "POST", path: `/v1/approvals/${APR}/deny`, body: { note: "no" } },
  {
    key: "approver",
    method: "POST",
    path: "/v1/delegations",
    body: { to: "auditor", tools: "crm.*", reason: "holiday", expires_at: "2030-01-01T00:00:00Z" },
  },
  { key: "admin", method: "POST", path: "/v1/holds", body: { reason: "case 7", run_id: "nobody" } },
  {
    key: "auditor",
    method: "POST",
    path: "/v1/speculate",
    body: { plans: [{ name: "a", calls: [{ tool: "crm.get", args: { id: 1 } }] }] },
  },
  { key: "operator", method: "POST", path: "/v1/simulate", body: { policy: "version: 1\n" } },
  { key: "admin", method: "POST", path: "/v1/keys", body: { name: "k", role: "auditor" } },
  { key: "admin", method: "POST", path: "/v1/retention/apply", body: { dry_run: true } },
  { key: "admin", method: "POST", path: "/v1/halt", body: { reason: "stop", tool: "nothing.*" } },
  { key: "admin", method: "POST", path: "/v1/resume", body: {} },
  {
    key: "admin",
    method: "POST",
    path: "/v1/registry/manifests",
    body: { yaml: "- {tool: t.x, effect: read, permission: t}\n" },
  },
  { key: "admin", method: "POST", path: "/v1/registry/policy", body: { yaml: "version: 1\n" } },
  { key: "auditor", method: "POST", path: "/v1/impact", body: { tool: "crm.get", args: { id: 1 } } },
  {
    key: "approver",
    method: "POST",
    path: "/v1/runs/{run}/approvals",
    body: { tool: "pay.refund", args: { amount: 2000 }, note: "ok" },
  },
  { key: "operator", method: "POST", path: "/v1/runs/{run}/rollback", body: {} },
  { key: "operator", method: "POST", path: "/v1/runs/{run}/steps/0/compensation", body: {} },
  { key: "admin", method: "PATCH", path: "/v1/keys/99", body: { disabled: true } },
  { key: "admin", method: "POST", path: `/v1/approvals/${APR}/break-glass`, body: { reason: "fire" } },
];

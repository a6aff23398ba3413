/**
 * Permissions on the bindings other than HTTP (role-matrix.test.ts): each role, bound to a tenant and not, at the
 * dispatcher itself, through the client of library and command line, at each tool of the gateway and each page and
 * form of the console. A new operation, tool, page or form that has no row here fails.
 */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { z } from "zod";
import type { ConsoleRoute } from "../../src/console/page-context.ts";
import { CONSOLE_ROUTES } from "../../src/console/routes.ts";
import { AGENT_TOOLS } from "../../src/gateway/tools/agent-tools.ts";
import { OPERATOR_TOOLS } from "../../src/gateway/tools/operator-tools.ts";
import { callOwnTool, type OwnTool } from "../../src/gateway/tools/own-tool.ts";
import { type CallerPrincipal, hasRole, type PrincipalRole, ROLE_MESSAGES } from "../../src/govern/roles.ts";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { createOperationsClient } from "../../src/http/api/operations-client.ts";
import { SvcError } from "../../src/kernel/errors.ts";
import { getActor } from "../../src/operations/actors/actor.ts";
import { listAlerts } from "../../src/operations/alerts.ts";
import {
  approveRequest,
  breakGlass,
  denyRequest,
  getApproval,
  getCard,
  listApprovals,
  withdrawRequest,
} from "../../src/operations/approvals/approvals.ts";
import { createDelegation, revokeDelegation } from "../../src/operations/approvals/delegations.ts";
import { containAgent, getContain } from "../../src/operations/contain/contain.ts";
import { startDrills } from "../../src/operations/drills/drills.ts";
import { publishAnchor } from "../../src/operations/evidence/anchors.ts";
import { bundleLedger, bundleRun, evidenceKey, verifyLedger } from "../../src/operations/evidence/bundles.ts";
import { ledgerCheckpoint } from "../../src/operations/evidence/checkpoints.ts";
import { exportLedger, exportRun } from "../../src/operations/evidence/export.ts";
import { oversightReport } from "../../src/operations/evidence/oversight.ts";
import { periodReport, runReport, runReportAsPdf } from "../../src/operations/evidence/reports.ts";
import { checkGrant, createGrant, previewGrant, revokeGrant } from "../../src/operations/grants/grants.ts";
import { haltCalls, liftHalts } from "../../src/operations/halts.ts";
import {
  addIncidentNote,
  assignIncident,
  closeIncident,
  getIncident,
  listIncidents,
} from "../../src/operations/incidents/incidents.ts";
import { changeKey, createKey, deleteKey } from "../../src/operations/keys.ts";
import { serviceWideOnly } from "../../src/operations/pipeline/access.ts";
import { dispatchOperation, isWithinTenant } from "../../src/operations/pipeline/dispatch.ts";
import type { ServiceOperation } from "../../src/operations/pipeline/operation.ts";
import { approvePlan, denyPlan, getPlan, planCards, proposePlan } from "../../src/operations/plans.ts";
import {
  addDevice,
  changeDevice,
  listDevices,
  removeDevice,
  testDevice,
} from "../../src/operations/push/devices.ts";
import {
  activatePolicy,
  approveManifest,
  deprecateManifest,
  publishManifest,
} from "../../src/operations/registry/registry.ts";
import {
  listCaptures,
  purgeCapturedCalls,
  suggestDraftPolicy,
} from "../../src/operations/retention/captures.ts";
import { placeHold, releaseHold } from "../../src/operations/retention/holds.ts";
import { runRetention } from "../../src/operations/retention/retention.ts";
import {
  getOwnRollbackPlan,
  getRollbackPlan,
  rollbackHere,
  startRollback,
} from "../../src/operations/rollback/rollback.ts";
import { resolveOutcome } from "../../src/operations/runs/intents-and-outcomes.ts";
import { replayCapturedRun } from "../../src/operations/runs/replay.ts";
import { searchRuns } from "../../src/operations/runs/search.ts";
import { openChallenge } from "../../src/operations/signing/challenges.ts";
import {
  addPasskey,
  confirmPasskey,
  listPasskeys,
  passkeyOptions,
  revokePasskey,
} from "../../src/operations/signing/passkeys.ts";
import { previewCallImpact, previewOwnCallImpact } from "../../src/operations/simulate/impact.ts";
import {
  connectUpstream,
  disconnectUpstream,
  listUpstreams,
} from "../../src/operations/upstreams/upstreams.ts";
import { Client, loggedIn } from "../console/support/client.ts";
import { type ConsoleServer, consoleServer } from "../console/support/server.ts";
import { ROOT } from "../support/files.ts";
import { verifies } from "../support/verifies.ts";

const ROLES: PrincipalRole[] = ["agent", "auditor", "approver", "operator", "admin"];
const KEYS = [...ROLES, ...ROLES.map((role) => `acme-${role}`)];

let s: ConsoleServer;
const who = new Map<string, CallerPrincipal>();
beforeAll(async () => {
  const keys = ROLES.map((role) => ({ name: `acme-${role}`, role, tenant: "acme", tenant_only: true }));
  s = await consoleServer({ keys });
  for (const key of KEYS) who.set(key, (await s.app.auth.authenticate(`Bearer ${key}`)) as CallerPrincipal);
  await s.api("agent", "POST", "/v1/runs", { run_id: "whole", permissions: [] });
  await s.api("acme-agent", "POST", "/v1/runs", { run_id: "acmes", permissions: [] });
});
afterAll(() => s.close());

const runOf = (key: string): string => (key.startsWith("acme-") ? "acmes" : "whole");

/** Every operation that is declared anywhere. */
const folder = join(ROOT, "src/operations");
const OPERATIONS: ServiceOperation[] = [];
const NOT_OPERATIONS = /^(?:app\.ts|worker|pdf|values|pipeline|background)/;
for (const name of readdirSync(folder, { recursive: true, encoding: "utf8" })) {
  if (!name.endsWith(".ts") || name.endsWith(".test.ts") || NOT_OPERATIONS.test(name)) continue;
  const exported: unknown[] = Object.values(await import(join(folder, name)));
  for (const one of exported) if (isOperation(one)) OPERATIONS.push(one);
}

function isOperation(value: unknown): value is ServiceOperation {
  return typeof value === "object" && value !== null && "role" in value && "input" in value && "run" in value;
}

type Word = "in" | "role" | "tenant";

/** The dispatcher's answer to this principal, before it reads the input. */
function due(op: ServiceOperation, principal: CallerPrincipal): Word {
  if (!op.any_role && !hasRole(principal, op.role)) return "role";
  return isWithinTenant(op, principal) ? "in" : "tenant";
}

function word(message: string | undefined, role: PrincipalRole, principal: CallerPrincipal): Word {
  if (message === ROLE_MESSAGES[role]) return "role";
  return message === serviceWideOnly(principal).message ? "tenant" : "in";
}

const refusal = (error: unknown): string | undefined => {
  if (!(error instanceof SvcError)) throw error;
  return error.message;
};

const ID = "00000000-0000-4000-8000-000000000000";
/** Names of missing objects, so that an authorized caller gets exactly that answer. */
const NAMED = {
  approval_id: `apr_${ID}`,
  plan_id: `pln_${ID}`,
  contain_id: `ctn_${ID}`,
  grant_id: `grt_${ID}`,
};
/** What each schema is given of it; the rest is left out. */
function inputFor(key: string, input: z.ZodType): object {
  const all = { ...NAMED, run_id: runOf(key), step: 0, index: 99, tool: "none" };
  const { shape = {} } = input as { shape?: object };
  return Object.fromEntries(Object.entries(all).filter(([field]) => field in shape));
}

describe("the door itself, as the embedded library comes to it", () => {
  it("every operation has a row in the HTTP table, but those of other surfaces alone", () => {
    const rows = new Set(HTTP_TABLE.map(({ op }) => op));
    const others = [
      listCaptures,
      purgeCapturedCalls,
      suggestDraftPolicy,
      exportLedger,
      checkGrant,
      previewOwnCallImpact,
      getOwnRollbackPlan,
      rollbackHere,
      planCards,
    ];
    // A folder is not read in the same order everywhere.
    const ids = (ops: readonly ServiceOperation[]) => ops.map(({ id }) => id).toSorted();
    expect(ids(OPERATIONS.filter((op) => !rows.has(op)))).toEqual(ids(others));
  });

  it.each(OPERATIONS.map((op) => [op.id, op] as const))("%s", async (_, op) => {
    verifies("core.http.roles-cumulative", "beyond.tenants.matrix");
    const signal = new AbortController().signal;
    const said = KEYS.map(async (key) => {
      const principal = who.get(key)!;
      const asked = dispatchOperation(
        op,
        { app: s.app, principal, signal },
        inputFor(key, op.input) as never,
      );
      return [key, word(await asked.then(() => undefined, refusal), op.role, principal)];
    });
    expect(await Promise.all(said)).toEqual(KEYS.map((key) => [key, due(op, who.get(key)!)]));
  });
});

it("the client of library and command line gets the same from a server", async () => {
  for (const key of ["agent", "acme-operator"]) {
    const principal = who.get(key)!;
    const client = createOperationsClient({ url: s.url, key });
    for (const { op } of HTTP_TABLE) {
      const asked = client.perform(op, inputFor(key, op.input) as never);
      const said = await asked.then(() => undefined, refusal);
      expect([key, op.id, word(said, op.role, principal)]).toEqual([key, op.id, due(op, principal)]);
    }
    await client.close();
  }
});

/** The operation that a tool performs. */
const AGENT_ROWS: Record<string, ServiceOperation> = {
  "svc.plan_rollback": getOwnRollbackPlan,
  "svc.preview_impact": previewOwnCallImpact,
  "svc.await_approval": getApproval,
  "svc.withdraw": withdrawRequest,
  "svc.propose_plan": proposePlan,
  "svc.connect_upstream": connectUpstream,
};
const OPERATOR_ROWS: Record<string, ServiceOperation> = {
  "svc.list_runs": searchRuns,
  "svc.list_approvals": listApprovals,
  "svc.show_approval": getCard,
  "svc.approve_action": approveRequest,
  "svc.deny_action": denyRequest,
  "svc.show_plan": getPlan,
  "svc.approve_plan": approvePlan,
  "svc.deny_plan": denyPlan,
  "svc.plan_rollback": getRollbackPlan,
  "svc.execute_rollback": rollbackHere,
  "svc.export_evidence": bundleLedger,
  "svc.preview_impact": previewOwnCallImpact,
  "svc.halt": haltCalls,
  "svc.resume": liftHalts,
  "svc.contain": containAgent,
};

/** What a tool is called with: enough to be performed. */
const TOOL_INPUT: Record<string, object> = {
  "svc.await_approval": { approval_id: NAMED.approval_id, seconds: 0 },
  "svc.preview_impact": { tool: "none" },
  "svc.propose_plan": { reason: "r", calls: [{ tool: "none" }] },
  "svc.contain": { actor: "none", reason: "r" },
  "svc.halt": { reason: "r" },
  "svc.export_evidence": {},
};

describe.each([
  ["agent", AGENT_TOOLS, AGENT_ROWS],
  ["operator", OPERATOR_TOOLS, OPERATOR_ROWS],
] as const)("tools of the %s endpoint", (_, tools, rows) => {
  it("each have a row", () => {
    expect(Object.keys(rows).toSorted()).toEqual(tools.map(({ name }) => name).toSorted());
  });

  it.each(tools.map((tool) => [tool.name, tool] as const))("%s", async (name, tool) => {
    verifies("beyond.tenants.operator-tools");
    const op = rows[name]!;
    for (const key of KEYS) {
      const principal = who.get(key)!;
      const message = await saidBy(tool, key);
      const admitted = hasRole(principal, tool.role);
      const wanted = admitted ? due(op, principal) : "role";
      const said = word(message, admitted ? op.role : tool.role, principal);
      expect([key, said, message]).toEqual([key, wanted, message]);
    }
  });
});

async function saidBy(tool: OwnTool, key: string): Promise<string | undefined> {
  const run_id = runOf(key);
  const run = { run_id, open: async () => {} } as never;
  const services = {
    app: s.app,
    undo: {} as never,
    asMade: async (calls: readonly object[]) => calls as never,
  };
  const input = TOOL_INPUT[tool.name] ?? inputFor(key, tool.input);
  const call = { services, principal: who.get(key)!, run, signal: new AbortController().signal };
  const answer = await callOwnTool(tool, call, input as never);
  return answer["isError"] === true ? (answer["content"] as [{ text: string }])[0].text : undefined;
}

/** The operation that a page shows or a form performs; a role where a page shows what several operations tell. */
const CONSOLE_ROWS: Record<string, ServiceOperation | PrincipalRole> = {
  "GET /": "auditor",
  "GET /edge": "auditor",
  "GET /search": "auditor",
  "GET /approvals": "auditor",
  "GET /approvals/decided": "auditor",
  "GET /approvals/:id": "auditor",
  "POST /approvals": approveRequest,
  "POST /approvals/:id": approveRequest,
  "POST /approvals/:id/offer": denyRequest,
  "POST /approvals/:id/break-glass": breakGlass,
  "POST /approvals/:id/alike": createGrant,
  "POST /delegations": createDelegation,
  "POST /delegations/:id/revoke": revokeDelegation,
  "GET /oversight": oversightReport,
  "GET /grants": "auditor",
  "POST /grants": createGrant,
  "POST /grants/preview": previewGrant,
  "POST /grants/:id/revoke": revokeGrant,
  "GET /plans": "auditor",
  "GET /plans/:id": "auditor",
  "POST /plans/:id": "approver",
  "GET /runs": searchRuns,
  "GET /runs/:id": "auditor",
  "POST /runs/:id/steps/:n/resolve": resolveOutcome,
  "POST /runs/:id/rollback": startRollback,
  "POST /runs/:id/replay": replayCapturedRun,
  "GET /runs/:id/dependents": getRollbackPlan,
  "GET /runs/:id/report": runReport,
  "GET /runs/:id/report.pdf": runReportAsPdf,
  "GET /runs/:id/bundle": bundleRun,
  "GET /runs/:id/trail": exportRun,
  "GET /alerts": listAlerts,
  "GET /incidents": listIncidents,
  "GET /incidents/:id": getIncident,
  "GET /incidents/:id/export": getIncident,
  "POST /incidents/:id/notes": addIncidentNote,
  "POST /incidents/:id/assign": assignIncident,
  "POST /incidents/:id/close": closeIncident,
  "GET /actors/:name": getActor,
  "GET /tools": "auditor",
  "GET /tools/:tool": "auditor",
  "GET /drills": "auditor",
  "POST /drills": startDrills,
  "POST /registry/manifests": publishManifest,
  "POST /registry/manifests/:tool/approve": approveManifest,
  "POST /registry/manifests/:tool/deprecate": deprecateManifest,
  "GET /policy": "auditor",
  // Typed input is only tried. Each button requires its own role for more.
  "POST /policy": "auditor",
  "POST /policy/versions/:version/activate": activatePolicy,
  "GET /impact": previewCallImpact,
  "GET /evidence": "auditor",
  "GET /evidence/key": evidenceKey,
  "GET /evidence/report": periodReport,
  "GET /evidence/bundle": bundleLedger,
  "GET /evidence/checkpoint": ledgerCheckpoint,
  "POST /evidence/verify": verifyLedger,
  "POST /evidence/anchor": publishAnchor,
  "POST /evidence/halt": haltCalls,
  "POST /evidence/resume": liftHalts,
  "GET /contain": containAgent,
  "POST /contain": containAgent,
  "GET /contain/:id": getContain,
  "GET /settings": "auditor",
  // Its channels belong to the whole service, though testing one isn't an operation.
  "POST /settings/test": { role: "admin" } as ServiceOperation,
  "POST /settings/retention": runRetention,
  "POST /settings/keys": createKey,
  "GET /passkeys": listPasskeys,
  "POST /passkeys": addPasskey,
  "POST /passkeys/options": passkeyOptions,
  "POST /challenges/:kind/:id": openChallenge,
  "POST /delegations/challenge": createDelegation,
  "POST /grants/challenge": createGrant,
  "POST /passkeys/:id/confirm": confirmPasskey,
  "POST /passkeys/:id/revoke": revokePasskey,
  "GET /upstreams": listUpstreams,
  "POST /upstreams/:name/link": connectUpstream,
  "POST /upstreams/:id/revoke": disconnectUpstream,
  "GET /push": listDevices,
  "POST /push": addDevice,
  "POST /push/here": addDevice,
  "POST /push/:id/quiet": changeDevice,
  "POST /push/:id/test": testDevice,
  "POST /push/:id/remove": removeDevice,
  "POST /settings/keys/:index": changeKey,
  "POST /settings/keys/:index/delete": deleteKey,
  "POST /settings/holds": placeHold,
  "POST /settings/holds/:id/release": releaseHold,
};

describe("pages and forms of the console", () => {
  const browsers = new Map<string, { client: Client; csrf: string }>();
  const people = KEYS.filter((key) => !key.endsWith("agent"));
  beforeAll(async () => {
    for (const key of people) {
      const client = await loggedIn(s.url, key);
      browsers.set(key, { client, csrf: await client.csrf() });
    }
  });

  it("let no agent in", async () => {
    for (const key of ["agent", "acme-agent"]) expect((await new Client(s.url).logIn(key)).status).toBe(403);
  });

  it("each have a row", () => {
    expect(Object.keys(CONSOLE_ROWS).toSorted()).toEqual(CONSOLE_ROUTES.map(nameOf).toSorted());
  });

  it.each(CONSOLE_ROUTES.map((route) => [nameOf(route), route] as const))("%s", async (name, route) => {
    const row = CONSOLE_ROWS[name]!;
    for (const key of people) {
      const principal = who.get(key)!;
      const may = typeof row === "string" ? hasRole(principal, row) : due(row, principal) === "in";
      const status = await statusOf(route, key);
      expect([key, status === 403, status < 500]).toEqual([key, !may, true]);
    }
  });

  async function statusOf(route: ConsoleRoute, key: string): Promise<number> {
    const { client, csrf } = browsers.get(key)!;
    const path = `/console${route.path === "/" ? "" : route.path}`
      .replace("/runs/:id", `/runs/${runOf(key)}`)
      .replace("/plans/:id", `/plans/${NAMED.plan_id}`)
      .replace("/contain/:id", `/contain/${NAMED.contain_id}`)
      .replace(":id", NAMED.approval_id)
      .replace(/:(?:n|index)/, "99")
      .replace(/:(?:tool|version)/, "none");
    if (route.method === "GET") return (await client.get(path)).status;
    // Nothing is confirmed: an authorized user gets the question, any other the refusal before it.
    const fields = { csrf, decision: "approve", id: NAMED.approval_id, args: "{}" };
    return (await client.post(path, fields)).status;
  }
});

function nameOf({ method, path }: ConsoleRoute): string {
  return `${method} ${path}`;
}

/** Every operation with every credential: the table of who may do what, cell by cell. */
import { beforeAll, describe, expect, it } from "vitest";
import { hasRole, type PrincipalRole, ROLE_MESSAGES } from "../../src/govern/roles.ts";
import type { HttpRow } from "../../src/http/api/http-row.ts";
import { HTTP_TABLE } from "../../src/http/api/http-table.ts";
import { serviceWideOnly } from "../../src/operations/pipeline/access.ts";
import { isWithinTenant } from "../../src/operations/pipeline/dispatch.ts";
import { principal } from "../support/engine.ts";
import { type TestServer, testServer } from "../support/server.ts";
import { verifies } from "../support/verifies.ts";

const ROLES: PrincipalRole[] = ["agent", "auditor", "approver", "operator", "admin"];
const BAD = ["disabled", "expired", "early", "garbage"];

let s: TestServer;
beforeAll(async () => {
  s = await testServer({
    keys: [
      { name: "disabled", role: "admin", disabled: true },
      { name: "expired", role: "admin", expires_at: "2026-06-15T11:59:59Z" },
      { name: "owner", role: "agent", self_rollback: true },
      { name: "early", role: "admin", not_before: "2026-06-15T12:00:01Z" },
      ...ROLES.map((role) => ({ name: `acme-${role}`, role, tenant: "acme", tenant_only: true })),
    ],
  });
  await s.call("agent", "POST", "/v1/runs", { run_id: "mine", permissions: [] });
  await s.call("owner", "POST", "/v1/runs", { run_id: "owned", permissions: [] });
  await s.call("agent2", "POST", "/v1/runs", { run_id: "foreign", permissions: [] });
  await s.call("acme-agent", "POST", "/v1/runs", { run_id: "acmes", permissions: [] });
});

function pathOf({ path }: HttpRow, run = "mine"): string {
  return path
    .replace("/runs/{id}", `/runs/${run}`)
    .replace("/approvals/{id}", "/approvals/apr_00000000-0000-4000-8000-000000000000")
    .replace("/plans/{id}", "/plans/pln_00000000-0000-4000-8000-000000000000")
    .replace("/grants/{id}", "/grants/grt_00000000-0000-4000-8000-000000000000")
    .replace("/delegations/{id}", "/delegations/dlg_00000000-0000-4000-8000-000000000000")
    .replace("/holds/{id}", "/holds/hold_00000000-0000-4000-8000-000000000000")
    .replace("/contain/{id}", "/contain/ctn_00000000-0000-4000-8000-000000000000")
    .replace("/actors/{name}", "/actors/bot")
    .replace("/incidents/{id}", "/incidents/inc_00000000-0000-4000-8000-000000000000")
    .replace("{n}", "0")
    .replace("{index}", "99")
    .replace("{tool}", "crm.get")
    .replace("{version}", "1");
}

const ask = (key: string | null, row: HttpRow, run?: string) =>
  s.call(key, row.method, pathOf(row, run), row.body ? {} : undefined);

describe.each(HTTP_TABLE.map((row) => [`${row.method} ${row.path}`, row] as const))("%s", (_, row) => {
  const { op } = row;
  it("needs a valid credential", async () => {
    verifies("core.http.bearer-required", "core.auth.missing-401", "core.auth.invalid-401", "core.error.401");
    for (const key of [null, ...BAD]) expect([key, (await ask(key, row)).status]).toEqual([key, 401]);
  });

  it("answers each role by its own table", async () => {
    verifies("core.http.roles-cumulative", "core.auth.agent-approvals-403", "core.error.message-approver");
    for (const role of ROLES) {
      const { status, body } = await ask(role, row);
      const allowed = op.any_role || hasRole(principal(role, role), op.role);
      if (allowed) {
        expect([role, status === 401 || (status === 403 && body.error === ROLE_MESSAGES[op.role])]).toEqual([
          role,
          false,
        ]);
      } else {
        expect([role, status, body]).toEqual([role, 403, { error: ROLE_MESSAGES[op.role] }]);
      }
      expect(status).toBeLessThan(500);
    }
  });

  it("asks for the role before it looks into the body", async () => {
    verifies("beyond.forms.role-first-http");
    if (!row.body || op.any_role) return;
    for (const role of ROLES.filter((one) => !hasRole(principal(one, one), op.role))) {
      for (const body of [
        { no_such_field: 1 },
        { note: 7, reason: [], card_hash: "x", confirm: "no" },
        [],
        5,
      ]) {
        const answer = await s.call(role, row.method, pathOf(row), body);
        expect([role, body, answer.status, answer.body.error]).toEqual([
          role,
          body,
          403,
          ROLE_MESSAGES[op.role],
        ]);
      }
    }
  });

  it("answers each role that is bound to a tenant by the same table, within its tenant", async () => {
    verifies("beyond.tenants.matrix");
    for (const role of ROLES) {
      const bound = { ...principal(role, role), tenant: "acme", tenant_only: true };
      const { status, body } = await ask(`acme-${role}`, row, "acmes");
      const refusal = status === 403 ? body.error : null;
      const hasIt = op.any_role || hasRole(bound, op.role);
      if (!hasIt) expect([role, refusal]).toEqual([role, ROLE_MESSAGES[op.role]]);
      else if (!isWithinTenant(op, bound))
        expect([role, refusal]).toEqual([role, serviceWideOnly(bound).message]);
      else expect([role, refusal === serviceWideOnly(bound).message]).toEqual([role, false]);
      expect(status).toBeLessThan(500);
    }
  });

  it("answers the owner of a run as any agent, but where its key may roll back", async () => {
    verifies("beyond.self.allowed");
    const { status, body } = await ask("owner", row, "owned");
    const refused = status === 403 && body.error === ROLE_MESSAGES[op.role];
    const allowed = op.any_role || op.role === "agent" || op.role_or_owner === true;
    expect([refused, status < 500]).toEqual([!allowed, true]);
  });
});

describe.each(
  HTTP_TABLE.filter(({ path }) => path.includes("/runs/{id}")).map(
    (row) => [`${row.method} ${row.path}`, row] as const,
  ),
)("%s", (_, row) => {
  it("hides another agent's run, and another tenant's from every role", async () => {
    verifies("contract.readings.foreign-run-404");
    for (const role of ROLES)
      expect([role, (await ask(`acme-${role}`, row, "mine")).status]).toEqual([role, 404]);
    const foreign = await ask("agent", row, "foreign");
    const none = await ask("agent", row, "none");
    expect(foreign.status).toBe(404);
    expect(foreign.text.replaceAll("foreign", "none")).toBe(none.text);
  });
});

it("unknown routes tell nothing to strangers", async () => {
  expect((await s.call(null, "GET", "/v1/nope")).status).toBe(401);
  expect((await s.call("agent", "GET", "/v1/nope")).status).toBe(404);
  expect((await s.call(null, "GET", "/nope")).status).toBe(404);
});

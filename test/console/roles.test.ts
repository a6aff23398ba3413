/** Who may send which form: a role that is too low is refused before anything that was sent is read. */
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CONSOLE_ROUTES } from "../../src/console/routes.ts";
import { type PrincipalRole, ROLE_MESSAGES } from "../../src/govern/roles.ts";
import { capitalizeFirst } from "../../src/kernel/text/phrases.ts";
import { verifies } from "../support/verifies.ts";
import { type Client, loggedIn } from "./support/client.ts";
import { type ConsoleServer, consoleServer, MANIFESTS, POLICY } from "./support/server.ts";

const PEOPLE = ["auditor", "approver", "operator", "admin"] as const satisfies PrincipalRole[];

/** The least role of each form; where its buttons differ, of each button. */
const FORMS: [path: string, least: PrincipalRole, button?: Record<string, string>][] = [
  ["/approvals", "approver"],
  ["/approvals/:id", "approver"],
  ["/approvals/:id/offer", "approver"],
  ["/approvals/:id/alike", "approver"],
  ["/approvals/:id/break-glass", "admin"],
  ["/contain", "admin"],
  ["/delegations", "approver"],
  ["/delegations/:id/revoke", "approver"],
  ["/drills", "operator"],
  ["/evidence/anchor", "admin"],
  ["/evidence/halt", "admin"],
  ["/evidence/resume", "admin"],
  ["/evidence/verify", "auditor"],
  ["/grants", "approver"],
  ["/grants/preview", "approver"],
  ["/grants/:id/revoke", "approver"],
  ["/incidents/:id/notes", "operator"],
  ["/incidents/:id/assign", "operator"],
  ["/incidents/:id/close", "operator"],
  ["/passkeys", "approver"],
  ["/passkeys/options", "approver"],
  ["/upstreams/:name/link", "auditor"],
  ["/upstreams/:id/revoke", "auditor"],
  ["/push", "auditor"],
  ["/push/here", "auditor"],
  ["/push/:id/quiet", "auditor"],
  ["/push/:id/test", "auditor"],
  ["/push/:id/remove", "auditor"],
  ["/challenges/:kind/:id", "approver"],
  ["/delegations/challenge", "approver"],
  ["/grants/challenge", "approver"],
  ["/passkeys/:id/confirm", "approver"],
  ["/passkeys/:id/revoke", "approver"],
  ["/plans/:id", "approver"],
  ["/policy", "auditor"],
  ["/policy", "operator", { do: "publish" }],
  ["/policy", "operator", { do: "simulate" }],
  ["/policy", "operator", { do: "compare" }],
  ["/policy/versions/:version/activate", "admin"],
  ["/registry/manifests", "operator"],
  ["/registry/manifests/:tool/approve", "admin"],
  ["/registry/manifests/:tool/deprecate", "admin"],
  ["/runs/:id/replay", "operator"],
  ["/runs/:id/rollback", "operator"],
  ["/runs/:id/steps/:n/resolve", "operator"],
  ["/settings/holds", "admin"],
  ["/settings/holds/:id/release", "admin"],
  ["/settings/keys", "admin"],
  ["/settings/keys/:index", "admin"],
  ["/settings/keys/:index/delete", "admin"],
  ["/settings/retention", "admin"],
  ["/settings/retention", "auditor", { do: "dry" }],
  ["/settings/test", "admin"],
];

/** What a person may leave out, mistype or make up. */
const FILLED: Record<string, string>[] = [
  {},
  { decision: "approve" },
  { decision: "deny" },
  { decision: "neither", args: "{not json", hours: "never", days: "-1", yaml: "a: [", retries: "x" },
  { decision: "approve", irreversible: "yes", confirm: "yes", card_hash: "sha256:0", id: "apr_nobody" },
];

let server: ConsoleServer;
const people = new Map<string, Client>();
let irreversible = "";
beforeAll(async () => {
  server = await consoleServer({
    manifests: MANIFESTS,
    policy: POLICY.replace(
      "risk: {}",
      "  - {id: mails, match: {tool: mail.send}, action: require_approval, approval: {groups: [press]}}\nrisk: {}",
    ),
    keys: [{ name: "press-approver", role: "approver", groups: ["press"] }],
  });
  for (const name of [...PEOPLE, "press-approver"]) people.set(name, await loggedIn(server.url, name));
  await server.api("agent", "POST", "/v1/runs", { run_id: "roles", permissions: ["mail.send"] });
  const call = { tool: "mail.send", args: { to: "a@example.com" }, reason: "because" };
  const { body } = await server.api("agent", "POST", "/v1/runs/roles/intents", call);
  irreversible = /apr_[0-9a-f-]{36}/.exec(JSON.stringify(body))![0];
});
afterAll(async () => server?.close());

it("has every form in its table", () => {
  const posts = CONSOLE_ROUTES.filter(({ method }) => method === "POST").map(({ path }) => path);
  expect([...new Set(FORMS.map(([path]) => path))].sort()).toEqual(posts.sort());
});

const unknown = (path: string) =>
  path.replace(/:\w+/g, (name) =>
    name === ":id" && path.startsWith("/approvals") ? "apr_00000000-0000-4000-8000-000000000000" : "7",
  );

describe.each(FORMS)("POST %s (%s) %j", (path, least, button = {}) => {
  it("is refused to every lower role, also for a missing or unknown object", async () => {
    verifies("beyond.forms.role-first");
    const lower = PEOPLE.slice(0, PEOPLE.indexOf(least as (typeof PEOPLE)[number]));
    const paths = [unknown(path)];
    if (path.startsWith("/approvals/:id")) paths.push(path.replace(":id", irreversible));
    for (const role of lower) {
      const csrf = await people.get(role)!.csrf("/console/approvals");
      for (const fields of FILLED) {
        for (const to of paths) {
          const sent = { csrf, ...fields, ...button };
          const { status } = await people.get(role)!.post(`/console${to}`, sent);
          expect([role, to, fields, status]).toEqual([role, to, fields, 403]);
        }
      }
    }
    // A user who has the role gets another error.
    const able = people.get(least)!;
    const { text } = await able.submit(`/console${unknown(path)}`, button);
    expect(text).not.toContain(capitalizeFirst(ROLE_MESSAGES[least]));
  });
});

it("asks for the second gesture only of a person whose vote counts", async () => {
  verifies("beyond.forms.role-first");
  for (const [name, status] of [
    ["auditor", 403],
    ["approver", 403],
    ["press-approver", { "": 303, "/offer": 400 }],
  ] as const) {
    for (const way of ["", "/offer"] as const) {
      const path = `/console/approvals/${irreversible}${way}`;
      const answer = await people.get(name)!.submit(path, { decision: "approve", args: "{}" });
      // An unconfirmed offer returns with the typed text.
      const expected = typeof status === "number" ? status : status[way];
      expect([name, way, answer.status]).toEqual([name, way, expected]);
    }
  }
  const { body } = await server.api("admin", "GET", `/v1/approvals/${irreversible}`);
  expect(body).toMatchObject({ status: "pending", votes: [] });
});

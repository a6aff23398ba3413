/** The console, and the command line, of a user who is bound to a tenant: neither shows a byte of another tenant. */
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { COMMAND_TABLE } from "../../src/cli/commands/index.ts";
import { CONSOLE_ROUTES } from "../../src/console/routes.ts";
import { newKeyPair } from "../../src/evidence/signing.ts";
import { systemEnv } from "../../src/kernel/env.ts";
import { FORM_FIELDS } from "../../stress/attack/heavy.ts";
import { speak } from "../support/io.ts";
import {
  ageCalls,
  difference,
  life,
  NEIGHBOUR,
  neverThere,
  TENANT_KEYS,
  TENANT_MANIFESTS,
  TENANT_POLICY,
  type Things,
  TWIN,
} from "../support/tenant-life.ts";
import { tempDir } from "../support/tmp.ts";
import { until } from "../support/until.ts";
import { verifies } from "../support/verifies.ts";
import { Client } from "./support/client.ts";
import { type ConsoleServer, consoleServer } from "./support/server.ts";

const PEOPLE = ["approver", "admin"];
const NOW = systemEnv.now();
/** The clock stops, so that a second read shows the same times. */
const clock = { ...systemEnv, now: () => NOW };

let s: ConsoleServer;
let ours: Things;
let theirs: Things;
const clients = new Map<string, Client>();
let pages_before: Map<string, string>;
let lines_before: Map<string, string>;
const folder = tempDir("cli");

beforeAll(async () => {
  const key = join(tempDir("key"), "s.key");
  writeFileSync(key, newKeyPair().private_pem, { mode: 0o600 });
  s = await consoleServer({
    manifests: TENANT_MANIFESTS,
    policy: TENANT_POLICY,
    config: `console: login\ncapture: {enabled: true}\nsigning_key: ${key}\n`,
    keys: TENANT_KEYS,
    env: clock,
  });
  for (const person of [...PEOPLE.map((role) => `acme-${role}`), "admin"]) {
    const client = new Client(s.url);
    await client.logIn(person);
    clients.set(person, client);
  }
  ours = await life(s.api, NOW, "acme");
  await ageCalls(s.app.core.store, "acme");
  pages_before = await pages();
  lines_before = await lines();
  theirs = await life(s.api, NOW, NEIGHBOUR);
  await ageCalls(s.app.core.store, NEIGHBOUR);
  await clients.get("admin")!.submit("/console/evidence/verify");
});
afterAll(() => s.close());

const PARAMS = { n: "1", index: "999", tool: "crm.get", version: "1" };
/** Where a page or form is, for these things; a plan, a grant and so on is named by its own id. */
function placed(path: string, things: Things): string {
  const [, kind = "runs"] = /([a-z]+)\/:id/.exec(path) ?? [];
  const id = things[kind as keyof Things] ?? things.runs;
  return `/console${path === "/" ? "" : path}`
    .replace("/actors/:name", `/actors/${things.actors}`)
    .replace(":id", id)
    .replace(/:(\w+)/g, (_, name: keyof typeof PARAMS) => PARAMS[name] ?? "x");
}

/** Searches by name, also for what both tenants have under one name, and the exports of an incident. */
const ASKED = [
  "",
  `?q=${TWIN}`,
  "?status=all",
  "?format=md",
  `?q=${NEIGHBOUR}`,
  `?tenant=${NEIGHBOUR}&all=yes`,
  `?actor=${NEIGHBOUR}-agent`,
  "?q=a&kind=records",
];
/** Proofs go over the whole ledger, and their sizes and hashes with it; so does the file of a page with its id. */
const OVER_ALL = /bundle|pdf/;

/** What differs between any two looks, or is the whole ledger's: its head, and marks of the page against forgery. */
async function plain(text: string): Promise<string> {
  const { hash } = await s.app.core.store.head();
  const short = [hash, hash.slice(0, 16), hash.slice(0, 8)];
  return short.reduce(
    (left, one) => left.replaceAll(one, "<head>"),
    text.replace(/<rect class="r\d"[^>]*>/g, ""),
  );
}

async function pages(): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (const { path } of CONSOLE_ROUTES.filter(({ method }) => method === "GET")) {
    if (OVER_ALL.test(path)) continue;
    for (const role of PEOPLE) {
      for (const query of role === "admin" ? ASKED : [""]) {
        const page = `${placed(path, ours)}${query}`;
        const { status, text } = await clients.get(`acme-${role}`)!.get(page);
        found.set(`${role} ${page}`, `${status} ${await plain(text)}`);
      }
    }
  }
  for (const role of PEOPLE)
    for (const page of [
      `/console/actors/${TWIN}`,
      `/console/contain?actor=${TWIN}`,
      `/console/edge?q=${TWIN}`,
    ]) {
      const { status, text } = await clients.get(`acme-${role}`)!.get(page);
      found.set(`${role} ${page}`, `${status} ${await plain(text)}`);
    }
  return found;
}

const changed = (before: Map<string, string>, after: Map<string, string>) =>
  [...before]
    .filter(([question, answer]) => after.get(question) !== answer)
    .map(([question, answer]) => [question, ...difference(answer, after.get(question) ?? "")]);

it("tells open pages of the tenant's own doings, and not that a neighbour does anything", async () => {
  verifies("beyond.tenants.news");
  const heard = async (key: string) => {
    const client = clients.get(key)!;
    const pulse = async () => /data-pulse="(\w+)"/.exec((await client.get("/console/runs")).text)?.[1];
    const cookie = [...client.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const told: string[] = [];
    const stop = new AbortController();
    const answer = await fetch(`${s.url}/console/events`, { headers: { cookie }, signal: stop.signal });
    void (async () => {
      for await (const part of answer.body!.pipeThrough(new TextDecoderStream()))
        for (const [, data] of part.matchAll(/(?<!event: beat\n)data: (\w+)/g)) told.push(data!);
    })().catch(() => {});
    await until(() => told.length > 0, `${key} to hear the first word`);
    return { told, pulse, close: () => stop.abort() };
  };
  const open = async (tenant: string) => {
    const call = { tool: "mail.send", args: { to: `${tenant} again` }, reason: "again" };
    expect((await s.api(`${tenant}-agent`, "POST", `/v1/runs/${tenant}-2/intents`, call)).status).toBe(200);
  };
  const [mine, all] = [await heard("acme-admin"), await heard("admin")];
  try {
    const before = await mine.pulse();
    expect(mine.told).toEqual([before]);
    const known = all.told.length;
    await open(NEIGHBOUR);
    await until(() => all.told.length > known, "the whole service's admin to hear of it");
    expect(await mine.pulse()).toBe(before);
    expect(changed(pages_before, await pages()), "what a neighbour does changes no byte of a page").toEqual(
      [],
    );
    expect(changed(lines_before, await lines()), "nor of what a command prints").toEqual([]);
    await open("acme");
    await until(() => mine.told.length > 1, "the tenant to hear of its own");
    expect(mine.told).toEqual([before, await mine.pulse()]);
  } finally {
    mine.close();
    all.close();
  }
});

describe("a neighbour's thing is answered like one that was never there", () => {
  /** What may be written into the fields of a form, the names of these things among it. */
  const fieldsOf = (path: string, things: Things, tenant: string): Record<string, string>[] => {
    const values: Record<string, string> = {
      ...{
        id: things.approvals,
        run_id: things.runs,
        tenant,
        actor: `${tenant}-agent`,
        to: `${tenant}-auditor`,
      },
      ...{
        reason: "for a reason that is long enough",
        note: "a note",
        tool: "mail.send",
        args: "{}",
        rules: "mails",
      },
      ...{
        confirm: "yes",
        irreversible: "yes",
        max_uses: "1",
        expires: "1h",
        status: "succeeded",
        name: "x",
        role: "agent",
      },
    };
    if (path === "/evidence/resume") values["id"] = things.halt;
    const own = Object.fromEntries((FORM_FIELDS[path] ?? []).map((field) => [field, values[field] ?? "x"]));
    return [
      own,
      ...["approve", "deny", "check"].map((word) => ({
        ...values,
        do: word,
        decision: word,
      })),
    ];
  };

  it("on every page and in every form", async () => {
    verifies("beyond.tenants.console");
    const never = neverThere(theirs);
    const parted: unknown[] = [];
    for (const { method, path } of CONSOLE_ROUTES) {
      if (method === "GET" && !path.includes(":id")) continue;
      // Tenants decide about their own names: containing, and making a key.
      if (path === "/contain" || path === "/settings/keys") continue;
      for (const role of PEOPLE) {
        const client = clients.get(`acme-${role}`)!;
        const csrf = await client.csrf("/console/runs");
        const forms = method === "GET" ? [0] : fieldsOf(path, theirs, NEIGHBOUR).keys();
        for (const form of forms) {
          const ask = async (things: Things, tenant: string) => {
            const fields = { csrf, ...fieldsOf(path, things, tenant)[form] };
            const seen =
              method === "GET"
                ? await client.get(placed(path, things))
                : await client.post(placed(path, things), fields);
            const said = seen.to === undefined ? "" : (await client.get("/console/impact")).text;
            const notice = /<div class="notice.*?<\/div>/s.exec(said)?.[0] ?? "";
            let text = await plain(`${seen.status} ${seen.to ?? ""} ${notice} ${seen.text}`);
            for (const [kind, id] of Object.entries(things)) text = text.replaceAll(id, `<${kind}>`);
            return text.replaceAll(tenant, "<tenant>").replace(/[a-z]+_[0-9a-f]{8}-[-0-9a-f]{27}/g, "<id>");
          };
          const [real, none] = [await ask(theirs, NEIGHBOUR), await ask(never, "nosuch")];
          if (real !== none) parted.push([method, path, role, form, ...difference(real, none)]);
        }
      }
    }
    expect(parted).toEqual([]);
    expect((await clients.get("acme-admin")!.submit("/console/evidence/verify")).status).toBe(403);
  });

  it("at the command line", async () => {
    verifies("beyond.tenants.command-line");
    const never = neverThere(theirs);
    const parted: unknown[] = [];
    for (const command of commandsFor(theirs).keys()) {
      for (const role of PEOPLE) {
        const ask = async (things: Things) => {
          let text = await say(role, commandsFor(things)[command]!);
          for (const [kind, id] of Object.entries(things)) text = text.replaceAll(id, `<${kind}>`);
          return text;
        };
        const [real, none] = [await ask(theirs), await ask(never)];
        if (real !== none)
          parted.push([role, commandsFor(theirs)[command]!.join(" "), ...difference(real, none)]);
      }
    }
    expect(parted).toEqual([]);
  });
});

/** Commands that have nothing to do with a server, or are one. */
const HERE = [
  ...[
    "server",
    "gateway",
    "init",
    "connect",
    "hook",
    "console",
    "validate",
    "login",
    "backup",
    "keygen",
    "completion",
    "proxy",
    "run",
    "approvers",
    "agents",
  ],
  ...["verify-bundle", "witness", "probe", "doctor", "kill-switch", "config", "client-file", "demo"],
];

const commandsFor = ({ runs, approvals, plans, grants, holds, halt, ...rest }: Things): string[][] => [
  ...[
    ["actor", rest.actors],
    ["incidents", "show", rest.incidents],
    ["incidents", "show", rest.incidents, "--format", "md"],
    ["incidents", "note", rest.incidents, "seen"],
    ["incidents", "assign", rest.incidents, "ada"],
    ["incidents", "close", rest.incidents, "--reason", "done"],
  ],
  ...[
    ["show", runs],
    ["lineage", runs],
    ["reconcile", runs],
    ["show", runs, "--json"],
    ["plan", runs],
    ["export", "--run", runs],
    ["report", runs],
  ],
  ...[
    ["bundle", "--run", runs, "--out", join(folder, `b${runs}`)],
    ["capture", "list", "--run", runs],
  ],
  ...[
    ["capture", "purge", "--run", runs],
    ["replay", runs, "--set", "1.args.n=2"],
    ["simulate", "--run", runs],
  ],
  ...[
    ["resolve", runs, "1", "--status", "failed", "--note", "seen"],
    ["rollback", runs],
  ],
  ...[
    ["approvals", "show", approvals],
    ["approvals", "approve", approvals],
    ["approvals", "deny", approvals],
  ],
  ...[
    ["approvals", "list", "--run", runs],
    ["plans", "list", "--run", runs],
    ["plans", "show", plans],
  ],
  ...[
    ["plans", "approve", plans],
    ["plans", "deny", plans],
    ["grants", "revoke", grants],
    ["hold", "release", holds],
  ],
  ...[
    ["hold", "add", "--run", runs, "--reason", "a reason"],
    ["halt", "lift", halt],
    ["contain", "--id", rest.contain],
  ],
];

const LISTS: string[][] = [
  ...[
    ["runs"],
    ["runs", "--json"],
    ["runs", "--tenant", NEIGHBOUR],
    ["runs", "--find", NEIGHBOUR],
    ["runs", "--attention"],
  ],
  ...[
    ["approvals", "list"],
    ["approvals", "list", "--group"],
    ["approvals", "watch", "--once"],
    ["plans", "list", "--json"],
  ],
  ...[
    ["grants", "list", "--all"],
    ["halt", "list"],
    ["incidents", "--all"],
    ["incidents", "--all", "--json"],
    ["actor", `${NEIGHBOUR}-agent`],
    ["actor", TWIN],
    ["actor", TWIN, "--json"],
    ["hold", "list", "--all"],
    ["horizon"],
    ["oversight"],
    ["keys", "list"],
    ["passkeys", "list"],
    ["upstreams", "list"],
    ["push", "list"],
  ],
  ...[
    ["report", "--since", "30d"],
    ["report", "--since", "30d", "--format", "json"],
    ["export"],
    ["verify"],
    ["bundle", "--out", "x"],
  ],
  ...[
    ["anchor", "publish"],
    ["anchor", "checkpoint"],
    ["capture", "list"],
    ["simulate"],
    ["policy", "suggest"],
    ["registry", "list"],
  ],
  ...[["retention", "plan"], ["retention", "apply", "--dry-run"], ["drill"], ["impact", "mail.send"]],
  ...[["contain", "--actor", `${NEIGHBOUR}-*`, "--reason", "to see", "--dry-run"]],
  ...[["grants", "preview", "--tool", "mail.*", "--actor", `${NEIGHBOUR}-*`, "--rule", "mails"]],
  ...[["speculate", "plans.yaml"]],
];

async function say(role: string, command: readonly string[]): Promise<string> {
  const options = { cwd: folder, env: { SVC_SERVER: s.url, SVC_TOKEN: `acme-${role}`, HOME: folder }, clock };
  const { code, out, err } = await speak(command, options);
  return `${code} ${await plain(out)} ${await plain(err)}`;
}

async function lines(): Promise<Map<string, string>> {
  mkdirSync(folder, { recursive: true });
  const found = new Map<string, string>();
  for (const role of PEOPLE)
    for (const command of [
      ...LISTS,
      ...commandsFor(ours).filter(
        ([first, second]) => second === "show" || ["show", "plan", "report", "actor"].includes(first!),
      ),
    ])
      found.set(`${role} svc ${command.join(" ")}`, await say(role, command));
  return found;
}

it("tries every command that asks a server", () => {
  verifies("beyond.tenants.command-line");
  const tried = new Set([...LISTS, ...commandsFor(ours)].map(([first]) => first));
  expect(
    COMMAND_TABLE.map(({ name }) => name).filter((name) => !tried.has(name) && !HERE.includes(name)),
  ).toEqual([]);
});

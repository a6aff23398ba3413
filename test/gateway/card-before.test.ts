/** The card shows what a call would change, read when the request opens. Before the call, the state is compared with it. */
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Client } from "@modelcontextprotocol/client";
import { beforeAll, describe, expect, it, vi } from "vitest";
import type { CallerPrincipal } from "../../src/govern/roles.ts";
import { dispatchOperation } from "../../src/operations/pipeline/dispatch.ts";
import { submitIntent } from "../../src/operations/runs/intents-and-outcomes.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { call, type GatewayTest, testGateway } from "./support/gateway.ts";

vi.setConfig({ testTimeout: 60_000, hookTimeout: 60_000 });

const FILES = join(
  dirname(createRequire(import.meta.url).resolve("@modelcontextprotocol/server-filesystem/package.json")),
  "dist/index.js",
);
const DOCS = fileURLToPath(new URL("../undo/doc-upstream.mjs", import.meta.url));
const MANIFESTS = `
- {tool: read_text_file, effect: read, permission: p}
- tool: edit_file
  effect: reversible
  permission: p
  before: {tool: read_text_file, args: {path: $args.path}}
  compensation: {tool: write_file, args: {path: $args.path, content: $before.content}, kind: inverse, until: 30d}
- {tool: write_file, effect: idempotent, permission: p}
- {tool: doc.get, effect: read, permission: p}
- tool: doc.put
  effect: reversible
  permission: p
  before: {tool: doc.get, args: {id: $args.id}, absent: {exists: false}}
  compensation: {tool: doc.put, args: {id: $args.id, text: $before.text}, kind: inverse, when_absent: {tool: doc.drop, args: {id: $args.id}}}
- {tool: doc.drop, effect: idempotent, permission: p}
- tool: doc.plain
  effect: reversible
  permission: p
  audit: {redaction: [$args.text]}
  before: {tool: doc.get, args: {id: $args.id}, ignore: [$before.text]}
  compensation: {tool: doc.put, args: {id: $args.id, text: $before.text}, kind: inverse}
`;
const POLICY = `version: 1
rules:
  - {id: edits, match: {tool: edit_file}, action: require_approval, reason: a person looks at edits}
  - {id: docs, match: {tool: "doc.p*"}, action: require_approval, reason: a person looks at documents}
`;

const folder = tempDir("edited");
const at = (name: string) => join(folder, name);
let g: GatewayTest;
let operator: Client;

beforeAll(async () => {
  const node = { command: process.execPath };
  g = await testGateway({
    upstreams: [
      { name: "files", args: [FILES, folder], ...node },
      { name: "docs", args: [DOCS, folder], ...node },
    ],
    manifests: MANIFESTS,
    policy: POLICY,
  });
  operator = await g.connect("approver", { path: "/operator/mcp" });
});

const agent = (run: string) => g.connect("agent", { headers: { "svc-run-id": run } });
const cardOf = async (approval_id: string) =>
  (await call(operator, "svc.show_approval", { approval_id })).structuredContent;

/** The request that the call opens. */
async function asked(client: Client, tool: string, args: Record<string, unknown>): Promise<string> {
  const answer = await call(client, tool, args);
  expect(answer, JSON.stringify(answer)).toMatchObject({ isError: true, _meta: { "svc/decision": "block" } });
  return answer._meta["svc/approval_id"];
}

async function approve(approval_id: string): Promise<void> {
  const { card_hash } = await cardOf(approval_id);
  const done = await call(operator, "svc.approve_action", { approval_id, card_hash });
  expect(done.structuredContent.status).toBe("approved");
}

it("an approver of a file edit sees the edit, and approves that edit of that file", async () => {
  verifies("beyond.before.card", "beyond.before.card-diff", "beyond.before.changed", "beyond.card.closes");
  const path = at("notes.txt");
  writeFileSync(path, "first canary-17\nsecond line\nthird\n");
  const client = await agent("edit");
  const args = { path, edits: [{ oldText: "second line", newText: "another line" }] };
  const first = await asked(client, "edit_file", args);
  const card = await cardOf(first);
  expect(card.changes).toEqual([
    {
      label: "content",
      path: "$args.edits",
      before: "first canary-17\nsecond line\nthird\n",
      after: "first canary-17\nanother line\nthird\n",
      lines: expect.arrayContaining([
        { kind: "removed", text: "second line" },
        { kind: "added", text: "another line" },
      ]),
    },
  ]);
  expect(card.text).toContain(
    "What changes in content:\n    first canary-17\n  - second line\n  + another line",
  );
  expect(card).toMatchObject({ proof: "never proven", closes: "expires 30d after the call succeeded" });
  await approve(first);

  writeFileSync(path, "first canary-18\nsecond line\nthird\n");
  const second = await asked(client, "edit_file", args);
  expect(second).not.toBe(first);
  expect(readFileSync(path, "utf8")).toContain("second line");
  expect(await g.service.core.store.get("approvals", first)).toMatchObject({
    status: "expired",
    note: "the state has changed since the card was shown",
  });
  const anew = await cardOf(second);
  expect(anew.changes[0].before).toContain("canary-18");
  expect(anew.card_hash).not.toBe(card.card_hash);
  await approve(second);

  const done = await call(client, "edit_file", args);
  expect(done._meta).toMatchObject({ "svc/decision": "allow", "svc/step": 0 });
  expect(readFileSync(path, "utf8")).toBe("first canary-18\nanother line\nthird\n");
  const trail = await g.trail("edit");
  expect(trail.map(({ event }) => event)).toEqual([
    "blocked",
    "approved",
    "approval_expired",
    "blocked",
    "approved",
    "approved",
    "intended",
    "succeeded",
  ]);
  expect(trail[2]!.detail).toBe(`request ${first}: the state has changed since the card was shown`);
  expect(JSON.stringify(trail)).not.toContain("canary");
  expect(await g.service.core.store.get("approval_values", second)).toBeUndefined();
});

it("the card says if something was missing or could not be read", async () => {
  verifies("beyond.before.card-unread");
  const client = await agent("nothing");
  const made = await cardOf(await asked(client, "doc.put", { id: "fresh", text: "one\ntwo" }));
  expect(made.changes).toMatchObject([{ label: "text", before: "", after: "one\ntwo" }]);

  const path = at("late.txt");
  const args = { path, edits: [{ oldText: "a", newText: "b" }] };
  const unread = await asked(client, "edit_file", args);
  expect((await cardOf(unread)).text).toContain("what is there now: (could not be read)");
  await approve(unread);
  writeFileSync(path, "a\n");
  const seen = await asked(client, "edit_file", args);
  expect(seen).not.toBe(unread);
  expect((await cardOf(seen)).changes).toMatchObject([{ before: "a\n", after: "b\n" }]);
  await approve(seen);
  expect((await call(client, "edit_file", args)).isError).toBeFalsy();
  expect(readFileSync(path, "utf8")).toBe("b\n");
});

it("the state is masked like the arguments, and members that the manifest ignores end no approval", async () => {
  verifies("beyond.before.card-masked", "beyond.before.card-ignore");
  writeFileSync(at("secret.txt"), "old canary-23");
  writeFileSync(at("open.txt"), "token ghp_0123456789abcdefghijABCDEFGHIJ012345 stays");
  const client = await agent("masked");
  const args = { id: "secret", text: "new canary-24" };
  const masked = await asked(client, "doc.plain", args);
  const card = JSON.stringify(await cardOf(masked));
  expect(card).toContain("[REDACTED]");
  expect(card).not.toMatch(/canary-2[34]/);
  const open = await cardOf(await asked(client, "doc.put", { id: "open", text: "x" }));
  expect(open.before.text).toMatch(/^token .* stays$/);
  expect(JSON.stringify(open)).not.toContain("ghp_0123");
  await approve(masked);
  writeFileSync(at("secret.txt"), "older canary-25");
  expect((await call(client, "doc.plain", args))._meta["svc/decision"]).toBe("allow");
});

it("an approval that depends on a state cannot be used without reading the state again", async () => {
  verifies("beyond.before.reader-only");
  writeFileSync(at("held.txt"), "old");
  const client = await agent("held");
  const args = { id: "held", text: "new" };
  const id = await asked(client, "doc.put", args);
  await approve(id);
  const run = (await g.service.core.store.get("runs", "held"))!;
  const principal: CallerPrincipal = {
    id: run.principal,
    name: "agent",
    roles: ["agent"],
    groups: [],
    tenant: null,
    max_permissions: ["*"],
    allow_observe: true,
  };
  const caller = { app: g.service, principal, signal: new AbortController().signal };
  const told = await dispatchOperation(submitIntent, caller, {
    run_id: "held",
    tool: "doc.put",
    args,
    reason: "by hand",
  });
  expect(told).toMatchObject({
    decision: "block",
    reasons: [
      "a person looks at documents",
      expect.stringContaining(`request ${id} was approved for the state on its card`),
    ],
  });
  expect((await call(client, "doc.put", args))._meta["svc/decision"]).toBe("allow");
});

describe("an edit on a card", () => {
  const EVIL = { old_string: "if (!verify(user)) throw 1", new_string: "/* EVIL */" };
  const editCard = async (run: string, text: string, more: Record<string, unknown>) => {
    const path = at(`${run}.ts`);
    writeFileSync(path, text);
    return cardOf(await asked(await agent(run), "edit_file", { path, ...more }));
  };

  it("has no result where the tool could do something else than the card says", async () => {
    verifies("beyond.card.diff-predicts", "beyond.card.diff-accounts");
    const text = `colour\n${EVIL.old_string}\ncolour\n`;
    const once = { oldText: "throw 1", newText: "throw 2" };
    const told = await editCard("once", text, { edits: [once] });
    expect(told.changes).toMatchObject([{ label: "content", after: text.replace("throw 1", "throw 2") }]);
    const unsure: [string, Record<string, unknown>][] = [
      ["pairs", { edits: [{ oldText: "throw 1", newText: "throw 2", ...EVIL }] }],
      ["twice", { edits: [{ oldText: "colour", newText: "color" }] }],
      ["all", { edits: [{ ...once, replace_all: true }] }],
      ["empty", { edits: [{ oldText: "", newText: "color" }] }],
      ["dry", { edits: [once], dryRun: true }],
      ["others", { edits: [once], changes: [EVIL] }],
    ];
    for (const [run, args] of unsure) {
      const card = await editCard(run, text, args);
      expect(card.changes, run).toEqual([]);
      for (const value of leaves(args)) expect(card.text, run).toContain(String(value));
    }
    const pairs = await cardOf(
      await asked(await agent("pairs"), "edit_file", { path: at("pairs.ts"), ...unsure[0]![1] }),
    );
    expect(pairs.text).toContain("/* EVIL */");
    expect(pairs.text).toContain("what is there now (41 characters, 3 lines):\n  colour\n");
  });

  it("points out members that the tool's input schema does not name, and arguments outside a comparison", async () => {
    verifies("beyond.card.undeclared", "beyond.card.diff-predicts");
    const card = await editCard("extra", "a\n", {
      edits: [{ oldText: "a", newText: "b", replace_all: true }],
      dryRun: true,
      force: 1,
    });
    const [, edits, dry, force] = card.more;
    expect(edits.uncovered).toMatchObject([
      { label: '"replace_all" of entry 1', text: "true", undeclared: true },
    ]);
    expect(edits.remarks).toEqual(['contains members that the tool does not declare: "[0].replace_all"']);
    expect([dry.label, dry.undeclared]).toEqual(['"dryRun"', undefined]);
    expect(force).toMatchObject({
      label: '"force"',
      undeclared: true,
      remarks: ["not declared by the tool"],
    });

    writeFileSync(at("whole.txt"), "old");
    const put = await cardOf(
      await asked(await agent("whole"), "doc.put", { id: "whole", text: "new", append: true }),
    );
    expect(put.changes).toMatchObject([{ label: "text", remarks: ['does not consider: "append"'] }]);
    expect(put.text).toContain('What changes in text (does not consider: "append"):');
  });

  it("names masked text on both sides, and a difference at the end of the last line only", async () => {
    verifies("beyond.card.mask-length", "beyond.card.whole-value");
    const token = (end: string) => `key ghp_0123456789abcdefghijABCDEFGHIJ01234${end}\n`;
    writeFileSync(at("keys.txt"), token("5"));
    const card = await cardOf(
      await asked(await agent("keys"), "doc.put", { id: "keys", text: `${token("6")}more` }),
    );
    expect(card.changes[0].remarks).toEqual(["masked parts are compared by their length only"]);
    expect(card.text).toContain("[REDACTED:github_token, 40 characters]");
    writeFileSync(at("end.txt"), "one");
    const end = await cardOf(await asked(await agent("end"), "doc.put", { id: "end", text: "one\n" }));
    expect(end.changes[0].lines).toEqual([{ kind: "gap", text: "the last line now ends with a line break" }]);
  });
});

const leaves = (value: unknown): unknown[] =>
  value !== null && typeof value === "object" ? Object.values(value).flatMap(leaves) : [value];

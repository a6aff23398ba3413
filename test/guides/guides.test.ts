/** The commands of the guides print what the pages show. */
import { execSync } from "node:child_process";
import { cpSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import { bundleOf, freshKey } from "../evidence/support/bundles.ts";
import { approversOf } from "../evidence/support/signed.ts";
import { ROOT } from "../support/files.ts";
import { signingServer } from "../support/signing.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import {
  commandsOf,
  filesOf,
  fitsShown,
  runGuide,
  scriptsOf,
  serveDesk,
  supportDesk,
} from "./guide-shell.ts";

/** A directory with the bundle of a refund that ann signed, its public key, and an approvers file. */
async function signedRefund(): Promise<string> {
  const place = tempDir("guide");
  const s = await signingServer();
  await s.enrol("ann");
  const run_id = "refunds";
  await s.call("agent", "POST", "/v1/runs", { run_id, permissions: ["pay"] });
  const asked = await s.call("agent", "POST", `/v1/runs/${run_id}/intents`, {
    ...{ tool: "pay.refund", args: { amount: 900 }, reason: "ticket 4711" },
  });
  const id = /apr_[0-9a-f-]{36}/.exec(asked.text)![0];
  const signature = await s.signed("ann", { kind: "approval", id, decision: "approve" });
  await s.call("ann", "POST", `/v1/approvals/${id}/approve`, { signature });
  const key = freshKey();
  writeFileSync(join(place, "signing.pub"), key.pem);
  writeFileSync(join(place, "run.json"), await bundleOf(s.app.core.store, key, run_id));
  writeFileSync(join(place, "approvers.json"), JSON.stringify(approversOf(s)));
  return place;
}

const challengeIn = (place: string) => JSON.parse(readFileSync(join(place, "client.json"), "utf8")).challenge;
const namedIn = (place: string) =>
  /; signed ([0-9a-f]{64})"/.exec(readFileSync(join(place, "run.json"), "utf8"))?.[1];

/** Pages whose every command runs, in order, in a fresh copy of the support desk. */
const PAGES = [
  "approval-cards",
  "approve-calls",
  "backups",
  "child-runs",
  "contain",
  "grants",
  "halt-calls",
  "incidents",
  "oversight",
  "policy",
  "policy-claims",
  "policy-cookbook",
  "probe",
  "prove-it",
  "resolve-outcomes",
  "retention-and-holds",
  "simulate",
  "tenants",
  "undo-a-run",
  "verify-by-hand",
];

/** Pages that begin in an empty directory, next to the packages that they start. */
const FRESH = ["gateway", "coding-agents"];

/** Pages of the support desk with a running server. */
const SERVED = ["delegate"];

describe("the guides", () => {
  let desk = "";
  beforeAll(async () => {
    desk = await supportDesk();
  });

  it.each(PAGES)("%s runs as shown", async (name) => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    cpSync(desk, place, { recursive: true });
    // The version of a policy that a page compares with.
    cpSync(join(place, "policy.yaml"), join(place, "next.yaml"));
    expect(await runGuide(`docs/guides/${name}.md`, place, {}, { "<run>": "ticket-4826" })).toBeGreaterThan(
      0,
    );
  });

  it.each(FRESH)("%s runs as shown, from nothing", async (name) => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    symlinkSync(join(ROOT, "node_modules"), join(place, "node_modules"));
    expect(await runGuide(`docs/guides/${name}.md`, place)).toBeGreaterThan(0);
  });

  it.each(SERVED)("%s runs as shown, with a server", async (name) => {
    verifies("beyond.docs.guides-run");
    const place = tempDir("guide");
    cpSync(desk, place, { recursive: true });
    const { settings, stop } = await serveDesk(place);
    expect(await runGuide(`docs/guides/${name}.md`, place, settings)).toBeGreaterThan(0);
    expect(await stop()).toBe(0);
  });
  it("verify-signed-approvals runs as shown, with a bundle that ann's passkey signed", async () => {
    verifies("beyond.docs.guides-run", "beyond.signed.by-hand");
    const place = await signedRefund();
    symlinkSync(join(ROOT, "sdk"), join(place, "sdk"));
    expect(await runGuide("docs/guides/verify-signed-approvals.md", place)).toBeGreaterThan(10);
    const pairs = [
      ["openssl dgst -sha256 -binary payload.json | base64 | tr '/+' '_-' | tr -d '='", challengeIn(place)],
      ["openssl dgst -sha256 -r assertion.json | cut -c1-64", namedIn(place)],
    ] as const;
    for (const [command, expected] of pairs)
      expect(execSync(command, { cwd: place, encoding: "utf8" }).trim()).toBe(expected);
  });
});

describe("a page", () => {
  it("shows commands with their output", () => {
    const page =
      "text\n\n```console\n$ svc a \\\n    --b\none\ntwo\n$ svc c\n```\n\n   ```console\n   $ svc d\n   ```\n";
    expect(commandsOf(page)).toEqual([
      { command: "svc a --b", output: "one\ntwo", line: 4 },
      { command: "svc c", output: "", line: 8 },
      { command: "svc d", output: "", line: 12 },
    ]);
  });

  it("shows scripts", () => {
    const page =
      "```sh\nsvc a\nsvc b\n```\n\n1. x\n\n   ```sh\n   svc c\n   ```\n\n```sh file=x.sh\nsvc d\n```\n";
    expect(scriptsOf(page)).toEqual([
      { script: "svc a\nsvc b\n", first: "svc a", line: 1 },
      { script: "svc c\n", first: "svc c", line: 8 },
    ]);
  });

  it("shows files to save", () => {
    const page = "```yaml file=a.yaml\nx: 1\n```\n\n```yaml\ny: 2\n```\n";
    expect(filesOf(page)).toEqual([{ name: "a.yaml", text: "x: 1\n", line: 1 }]);
  });

  it.each([
    ["halt_095cad6d…  tool x", "halt_f1c064de-dbce  tool x\n", true],
    ["sha256:095cad6d… x", "sha256:f1c064de0000 x", true],
    ["halt_095cad6d…  tool x", "hold_f1c064de-dbce  tool x\n", false],
    ["a … c", "a b c", true],
    ["a\n...\nz", "a\nb\nc\nz\n", true],
    ["a\n...\nz", "a\nb\n", false],
    ["a (b)", "a (b)", true],
    ["a  b", "a      b", true],
    ["  a", "      a", false],
    ["a  b", "a b", false],
    ["a", "a\nb", false],
  ])("shows %j for %j: %s", (shown, text, fits) => {
    expect(fitsShown(shown, text)).toBe(fits);
  });
});

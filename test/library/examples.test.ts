/** The examples in the library's comments and in its reference page, run as they stand there. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { format } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import * as takeback from "../../src/index.ts";
import { sha256Hex } from "../../src/kernel/hash.ts";
import { filesUnder, ROOT } from "../support/files.ts";
import { testServer } from "../support/server.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const page = readFileSync(join(ROOT, "docs/reference/library.md"), "utf8");
const block = (language: string) => new RegExp(`\`\`\`${language}\n(.*?)\`\`\``, "s").exec(page)![1]!;
const POLICY = `version: 1
rules:
  - id: big-refunds
    match: {tool: payments.refund}
    when: [{path: $args.amount, op: gt, value: 500}]
    action: require_approval
    reason: refunds over 500 need a person
`;

/** Every `@example`: what it is an example of, and its code. */
const EXAMPLES = filesUnder("src/library", ".ts").flatMap((path) =>
  [...readFileSync(join(ROOT, path), "utf8").matchAll(/@example\n(.*?)\*\/\n([^\n]*)/gs)].map(
    ([, comment, declaration]) => ({
      name: `${path}: ${declaration!.trim()}`,
      code: /```ts\n(.*?)```/s.exec(comment!.replaceAll(/^ *\* ?/gm, ""))![1]!,
    }),
  ),
);

/** What an example has around it: a run, and functions of the application. */
const payments = {
  refund: (charge: string, _amount: number) => ({ id: `rf_${charge}` }),
  undo: async () => {},
  read: async () => ({ status: "reversed" }),
};

const folder = tempDir("library-examples");
let svc: takeback.Svc;
let url: string;

/** Runs it as a module would be run, here and now; answers what it prints. */
async function runs(code: string, around: Record<string, unknown> = {}): Promise<string> {
  const printed: string[] = [];
  const console = { log: (...values: unknown[]) => printed.push(format(...values)) };
  const names = { takeback, console, ...around };
  const body = code
    .replaceAll(/import (\{[^}]+\}) from "takeback";/g, "const $1 = takeback;")
    // They name files as they lie in a user's own folder.
    .replaceAll(/(?<=: )"(manifests\.yaml|policy\.yaml|data)"/g, (_, name) =>
      JSON.stringify(join(folder, name)),
    );
  const AsyncFunction = (async () => {}).constructor as FunctionConstructor;
  await new AsyncFunction(...Object.keys(names), `{${body}}`)(...Object.values(names));
  return printed.join("\n");
}

describe("the library's examples", () => {
  beforeAll(async () => {
    writeFileSync(join(folder, "manifests.yaml"), block("yaml"));
    writeFileSync(join(folder, "policy.yaml"), POLICY);
    const ann = { name: "ann", role: "approver", key_sha256: sha256Hex("ann") };
    writeFileSync(join(folder, "keys.json"), JSON.stringify([ann]), { mode: 0o600 });
    writeFileSync(
      join(folder, "svc.config.yaml"),
      "manifests: manifests.yaml\npolicy: policy.yaml\nkeys: keys.json\ndata: kept\n",
    );
    svc = await takeback.open({ config: join(folder, "svc.config.yaml") });
    const server = await testServer({ manifests: block("yaml"), policy: POLICY });
    url = await server.http.listen({ port: 0, host: "127.0.0.1" });
  });
  afterAll(() => svc.close());

  it.each(EXAMPLES)("$name", async ({ code }) => {
    verifies("beyond.first.library-reference");
    const run = await svc.run({ actor: "billing-bot", permissions: ["payments.refund"] });
    const own = { svc, run, payments, annsKey: "ann", process: { env: { SVC_KEY: "agent" } } };
    const printed = await runs(code.replace("http://127.0.0.1:8787", url), own);
    for (const [, told] of code.matchAll(/console\.log\([^\n]*\); \/\/ ([^\n]*)/g))
      expect(printed).toContain(told);
  });

  it("has one for each of the main things", () => {
    const named = EXAMPLES.map(({ name }) => name).join("\n");
    for (const one of [
      "openEmbedded(",
      "connectToServer(",
      "ApprovalRequests",
      "UncertainError",
      "call<T>",
      "propose(",
      "rollback(",
    ])
      expect(named).toContain(one);
  });

  it("the reference page's program prints what the page says", async () => {
    verifies("beyond.first.library-reference");
    const [, answer] = /\$ node index\.mjs\n(.*?)\n\$/s.exec(page)!;
    expect(await runs(block("js"))).toBe(answer);
  });
});

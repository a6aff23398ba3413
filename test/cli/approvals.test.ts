/** Requests on the command line: the card, the live list, and decisions that carry the card's hash. */
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/kernel/json/json.ts";
import type { BlockedError } from "../../src/library/errors.ts";
import { openEmbedded as open } from "../../src/library/open.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

/** Runs a program at a new terminal, and types an answer when the program asks. */
const ANSWER = `
import os, pty, sys
pid, fd = pty.fork()
if pid == 0: os.execvp(sys.argv[2], sys.argv[2:])
seen, typed = b"", False
while True:
    try: more = os.read(fd, 65536)
    except OSError: break
    if not more: break
    seen += more
    if not typed and b"Type yes" in seen:
        os.write(fd, sys.argv[1].encode() + b"\\n")
        typed = True
os.waitpid(pid, 0)
sys.stdout.write(seen.decode())
`;
const BIN = fileURLToPath(new URL("../../bin/svc.js", import.meta.url));
const run = promisify(execFile);
const folder = tempDir("cards");
const svc = (...args: string[]) => speak([...args, "-d", "data"], { cwd: folder });
const MANIFESTS = (title: string) => `
- {tool: mail.send, effect: irreversible, permission: mail, card: {title: "${title}", note: mail leaves the house}}
- {tool: page.edit, effect: idempotent, permission: mail}
`;

async function ask(
  run_id: string,
  args: JsonObject = { to: "ada@example.com" },
  tool = "mail.send",
): Promise<string> {
  const library = await open({ config: join(folder, "svc.config.yaml"), data: join(folder, "data") });
  const run = await library.run({ actor: "bot", permissions: ["mail"], run_id, reason: "the night shift" });
  const call = run.call({ tool, args, reason: "she asked" }, () => ({}));
  const error = (await call.catch((problem: unknown) => problem)) as BlockedError;
  await library.close();
  return error.approval_id!;
}

beforeAll(() => {
  writeFileSync(join(folder, "manifests.yaml"), MANIFESTS("Send a mail to {$args.to}"));
  writeFileSync(
    join(folder, "policy.yaml"),
    "version: 1\nrules: [{id: mails, match: {tool: '*'}, action: require_approval, reason: look first}]\n",
  );
  writeFileSync(join(folder, "svc.config.yaml"), "manifests: manifests.yaml\npolicy: policy.yaml\n");
});

describe("svc approvals", () => {
  it("shows the card, and decides by it", async () => {
    verifies("beyond.card.same-text", "beyond.card.hash-sent");
    const id = await ask("one");
    const json = JSON.parse((await svc("approvals", "show", id, "--json")).out);
    const shown = await svc("approvals", "show", id);
    expect(shown).toMatchObject({ code: 0, out: `${json.text}\n\nCard      ${json.card_hash}\n` });
    expect(shown.out).toContain("Send a mail to ada@example.com\n");
    for (const line of [
      `Request   ${id} (pending)`,
      "Who       bot, in run one",
      "Reason    she asked",
      "Run       the night shift",
      "Cause     look first",
      "Note      mail leaves the house",
      "Undo      This cannot be undone.",
    ])
      expect(shown.out.split("\n")).toContain(line);
    const done = await svc("approvals", "approve", id, "--as", "ann", "--note", "fine");
    expect(done).toMatchObject({ code: 0, out: `${id}: approved\n` });
    const ledger = readFileSync(join(folder, "data", "ledger.jsonl"), "utf8");
    expect(ledger).toContain(`request ${id}: fine; card ${json.card_hash}`);
    expect(ledger).not.toContain("ada@example.com");
    // A decided request reports its decision, regardless of the card.
    expect(await svc("approvals", "deny", id)).toMatchObject({
      code: 1,
      err: expect.stringContaining("already decided"),
    });
  });

  it("shows the card that a decision names where nobody looked at one before", async () => {
    verifies("beyond.card.hash-sent", "beyond.card.same-text");
    for (const verb of ["approve", "deny"]) {
      const unseen = await ask(`unseen-${verb}`, { to: `${verb}@example.com` });
      const { text, card_hash } = JSON.parse((await svc("approvals", "show", unseen, "--json")).out);
      const done = await svc("approvals", verb, unseen);
      expect(done).toMatchObject({ code: 0, err: `${text}\n\nCard      ${card_hash}\n\n` });
      expect(text).toContain(`Send a mail to ${verb}@example.com`);
      const seen = await ask(`seen-${verb}`, { to: `${verb}@example.com` });
      const card = JSON.parse((await svc("approvals", "show", seen, "--json")).out);
      expect(await svc("approvals", verb, seen, "--card", card.card_hash)).toMatchObject({
        code: 0,
        err: "",
      });
    }
  });

  it("decides nothing at a terminal until the person who saw the card says yes", async () => {
    verifies("beyond.card.hash-sent");
    writeFileSync(join(folder, "answer.py"), ANSWER);
    const id = await ask("terminal", { to: "tty@example.com" });
    const typing = (answer: string) =>
      run(
        "python3",
        [
          join(folder, "answer.py"),
          answer,
          process.execPath,
          BIN,
          ...["approvals", "approve", id, "-d", "data"],
        ],
        {
          cwd: folder,
        },
      );
    const no = await typing("no");
    expect(no.stdout).toMatch(
      /Send a mail to tty@example\.com[\s\S]*Approve this call\? Type yes: [\s\S]*nothing was decided/,
    );
    expect((await svc("approvals", "show", id)).out).toContain("(pending)");
    expect((await typing("yes")).stdout).toContain(`${id}: approved`);
  });

  it("shows every value of a group in full, also one that the table cuts", async () => {
    verifies("beyond.card.whole-value", "beyond.flood.table");
    const text = (n: number) => `${"word ".repeat(30)}; rm -rf /srv/${n}`;
    const body = "first line\nsecond line";
    const ids = [];
    for (const n of [1, 2]) ids.push(await ask(`page-${n}`, { text: text(n), body }, "page.edit"));
    for (const shown of [
      await svc("approvals", "list", "--group"),
      await svc("approvals", "approve", ids[0]!, "--group"),
    ]) {
      for (const [i, id] of ids.entries())
        expect(shown.out).toContain(`  ${id}, text, in full:\n    ${text(i + 1)}\n`);
      expect(shown.out).toContain("  same, body, in full:\n    first line\n    second line\n");
    }
    const { out } = await svc("approvals", "list", "--group");
    const [card] = /sha256:[0-9a-f]{64}/.exec(out)!;
    expect((await svc("approvals", "approve", ids[0]!, "--group", "--yes", "2", "--card", card)).code).toBe(
      0,
    );
  });

  it("spells the names inside a value of a group", async () => {
    verifies("beyond.card.names-inside");
    const ids = [];
    for (const amount of [1, 2])
      ids.push(await ask(`inside-${amount}`, { order: { "\u0430mount": amount } }, "page.edit"));
    const { out } = await svc("approvals", "approve", ids[0]!, "--group");
    expect(out).toContain('contains the names "\u0430mount" (spelled \\u{430}mount)');
    for (const id of ids) expect((await svc("approvals", "deny", id)).code).toBe(0);
  });

  it("shows every value in full, also one that the title cuts", async () => {
    verifies("beyond.card.whole-value", "beyond.card.name-quoted", "beyond.card.undeclared");
    const to = `${"a".repeat(300)}@example.com, the-tenth@example.com`;
    const id = await ask("long", { to, Note: "approved by finance" });
    const { out } = await svc("approvals", "show", id);
    expect(out.split("\n")[0]).not.toContain("the-tenth");
    expect(out).toContain(`to (${to.length} characters): ${to}\n`);
    expect(out).toContain('"Note" (not declared by the tool): approved by finance\n');
    expect(await svc("approvals", "deny", id)).toMatchObject({ code: 0 });
  });

  it("refuses a decision on a card that has changed", async () => {
    verifies("beyond.card.hash-409");
    const id = await ask("two");
    const { card_hash } = JSON.parse((await svc("approvals", "show", id, "--json")).out);
    writeFileSync(join(folder, "manifests.yaml"), MANIFESTS("Write to {$args.to}"));
    const refused = await svc("approvals", "approve", id, "--card", card_hash);
    expect(refused).toMatchObject({ code: 1, err: expect.stringContaining("the card has changed") });
    expect((await svc("approvals", "show", id)).out).toContain("Write to ada@example.com");
    expect(await svc("approvals", "deny", id)).toMatchObject({ code: 0, out: `${id}: denied\n` });
    expect((await svc("approvals", "show", id)).out).not.toContain("ada@example.com");
  });

  it("denies with an offer", async () => {
    verifies("beyond.offer.made");
    const id = await ask("offered");
    expect(await svc("approvals", "deny", id, "--offer", "{")).toMatchObject({ code: 1 });
    const done = await svc("approvals", "deny", id, "--offer", '{"to":"bob@example.com"}');
    expect(done.out).toMatch(new RegExp(`^${id}: denied\napr_[0-9a-f-]{36}: offered instead\n$`));
  });

  it("warns of arguments that a rule reads and the card hides, and names mistakes in a template", async () => {
    verifies("beyond.card.unseen-warned", "beyond.card.bad-template");
    const policy = join(folder, "reads.yaml");
    const rule = (path: string) =>
      `version: 1\nrules: [{id: reads, match: {tool: "mail.*"}, when: [{path: ${path}, op: exists}], action: require_approval, reason: r}]\n`;
    writeFileSync(policy, rule("$args.amount"));
    const checked = await speak(["policy", "check", policy], { cwd: folder });
    const warning =
      "warning: rule reads requires approval by $args.amount, which the card of mail.send does not show\n";
    expect(checked).toMatchObject({ code: 0, err: warning });
    const config = join(folder, "other.yaml");
    writeFileSync(config, "manifests: manifests.yaml\npolicy: reads.yaml\n");
    const valid = await speak(["validate", join(folder, "manifests.yaml"), "--config", config], {
      cwd: folder,
    });
    expect(valid).toMatchObject({ code: 0, err: warning });
    writeFileSync(policy, rule("$args.to"));
    expect((await speak(["policy", "check", policy], { cwd: folder })).err).toBe("");
    const bad = join(folder, "bad.yaml");
    for (const [card, words] of [
      ['{title: "Pay {$arg.x}"}', "{$arg.x} is not a path into the arguments"],
      ['{title: "Pay {$result.x}"}', "{$result.x} is not a path into the arguments"],
      ['{title: "Pay {"}', "contains a brace that is not a placeholder"],
      ['{fields: [{label: A, path: "$result.x"}]}', "is not a path into the arguments"],
      ["{fields: [{label: A, path: $args.x, as: html}]}", "as"],
    ] as const) {
      writeFileSync(bad, `- {tool: t, effect: read, permission: p, card: ${card}}\n`);
      const refused = await speak(["validate", bad], { cwd: folder });
      expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(words)]);
    }
  });

  it("lists pending requests, without values", async () => {
    verifies("beyond.cli.approvals-watch");
    expect((await svc("approvals", "watch", "--once")).out).toBe("no pending requests\n");
    const id = await ask("three");
    const { out } = await svc("approvals", "watch", "--once");
    expect(out).toMatch(/^1 waiting\n/);
    expect(out).toMatch(new RegExp(`${id} +bot +mail.send +\\(to\\) +mails +2[34]h left`));
    expect(out).not.toContain("ada@example.com");
    expect(await svc("approvals", "show", "apr_nothing")).toMatchObject({
      code: 1,
      err: "error: unknown approval request apr_nothing\n",
    });
  });
});

/** Requests on the command line: the card, the live list, and decisions that carry the card's hash. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { beforeAll, describe, expect, it } from "vitest";
import type { JsonObject } from "../../src/kernel/json.ts";
import type { BlockedError } from "../../src/library/errors.ts";
import { open } from "../../src/library/open.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const folder = tempDir("cards");
const svc = (...args: string[]) => speak([...args, "-d", "data"], { cwd: folder });
const MANIFESTS = (title: string) => `
- {tool: mail.send, effect: irreversible, permission: mail, card: {title: "${title}", note: mail leaves the house}}
`;

async function ask(run_id: string, args: JsonObject = { to: "ada@example.com" }): Promise<string> {
  const library = await open({ config: join(folder, "svc.config.yaml"), data: join(folder, "data") });
  const run = await library.run({ actor: "bot", permissions: ["mail"], run_id, reason: "the night shift" });
  const call = run.call({ tool: "mail.send", args, reason: "she asked" }, () => ({}));
  const error = (await call.catch((problem: unknown) => problem)) as BlockedError;
  await library.close();
  return error.approval_id!;
}

beforeAll(() => {
  writeFileSync(join(folder, "manifests.yaml"), MANIFESTS("Send a mail to {$args.to}"));
  writeFileSync(
    join(folder, "policy.yaml"),
    "version: 1\nrules: [{id: mails, match: {tool: mail.send}, action: require_approval, reason: look first}]\n",
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
      "Way back  Nothing can take it back.",
    ])
      expect(shown.out.split("\n")).toContain(line);
    const done = await svc("approvals", "approve", id, "--as", "ann", "--note", "fine");
    expect(done).toMatchObject({ code: 0, out: `${id}: approved\n` });
    const ledger = readFileSync(join(folder, "data", "ledger.jsonl"), "utf8");
    expect(ledger).toContain(`request ${id}: fine; card ${json.card_hash}`);
    expect(ledger).not.toContain("ada@example.com");
    // A request that was decided says so, whatever card it had.
    expect(await svc("approvals", "deny", id)).toMatchObject({
      code: 1,
      err: expect.stringContaining("already decided"),
    });
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

  it("refuses a decision on a card that is no longer so", async () => {
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
    expect(done.out).toMatch(new RegExp(`^${id}: denied\napr_[0-9a-f-]{36}: offered in its place\n$`));
  });

  it("warns of what a rule reads and the card does not show, and names what is wrong in a template", async () => {
    verifies("beyond.card.unseen-warned", "beyond.card.bad-template");
    const policy = join(folder, "reads.yaml");
    const rule = (path: string) =>
      `version: 1\nrules: [{id: reads, match: {tool: "mail.*"}, when: [{path: ${path}, op: exists}], action: require_approval, reason: r}]\n`;
    writeFileSync(policy, rule("$args.amount"));
    const checked = await speak(["policy", "check", policy], { cwd: folder });
    const warning =
      "warning: rule reads asks for approval by $args.amount, which the card of mail.send does not show\n";
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
      ['{title: "Pay {$arg.x}"}', "{$arg.x} is not a place of this call"],
      ['{title: "Pay {$result.x}"}', "{$result.x} is not a place of this call"],
      ['{title: "Pay {"}', "holds a brace that is no place"],
      ['{fields: [{label: A, path: "$result.x"}]}', "is not a path into the arguments"],
      ["{fields: [{label: A, path: $args.x, as: html}]}", "as"],
    ] as const) {
      writeFileSync(bad, `- {tool: t, effect: read, permission: p, card: ${card}}\n`);
      const refused = await speak(["validate", bad], { cwd: folder });
      expect([refused.code, refused.err]).toEqual([1, expect.stringContaining(words)]);
    }
  });

  it("lists what waits, without values", async () => {
    verifies("beyond.cli.approvals-watch");
    expect((await svc("approvals", "watch", "--once")).out).toBe("nobody waits\n");
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

/** Plans proposed with the library and decided at the command line and in the console. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { svc } from "../support/cli.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

it("run.propose, svc plans list, show, approve and deny", async () => {
  verifies("beyond.plan.command", "beyond.plan.library");
  const folder = tempDir("plans");
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write(
    "manifests.yaml",
    "- {tool: thing.make, effect: idempotent, permission: p, card: {title: 'Make thing {$args.n}', note: it stays}}\n",
  );
  write(
    "policy.yaml",
    "version: 1\nrules: [{id: makes, match: {tool: thing.make}, action: require_approval, reason: look}]\n",
  );
  write("svc.config.yaml", "manifests: manifests.yaml\npolicy: policy.yaml\ndata: data\n");
  const local = await open({ config: join(folder, "svc.config.yaml"), data: join(folder, "data") });
  try {
    const run = await local.run({ actor: "bot", permissions: ["p"] });
    const call = (n: number) => ({ tool: "thing.make", args: { n }, reason: "needed" });
    const plan = await run.propose([call(1), { ...call(2), depends_on: [0] }], { reason: "two things" });
    const other = await run.propose([call(3)]);
    const plans = (...args: string[]) => svc(["plans", ...args], { cwd: folder });
    expect((await plans("list")).out).toMatch(new RegExp(`${plan.id} +pending +2 calls .* bot +two things`));
    const shown = (await plans("show", plan.id)).out;
    expect(shown).toContain("0. thing.make (n): needs_approval, risk 0\n   look\n");
    const { cards } = JSON.parse((await plans("show", plan.id, "--json")).out);
    for (const { text } of cards) expect(shown).toContain(text.replaceAll(/^(?=.)/gm, "   "));
    expect(cards[1].text).toMatch(/^Make thing 2\n[\s\S]*\nNote +it stays\n[\s\S]*\nUndo /);
    expect(shown).toMatch(/card sha256:[0-9a-f]{64}\n$/);
    const approved = await plans("approve", plan.id, "--as", "ann", "--note", "fine");
    expect(approved.out).toBe(`${plan.id}: approved\n`);
    // The cards that the decision names were shown with it.
    expect(approved.err).toContain(shown);
    expect((await plans("deny", other.id)).out).toBe(`${other.id}: denied\n`);
    expect((await plans("approve", plan.id)).code).toBe(1);
    expect(await run.call(call(1), () => "made")).toBe("made");
    expect(await run.call(call(2), () => "made")).toBe("made");
    await expect(run.call(call(3), () => expect.unreachable())).rejects.toThrow("blocked");
  } finally {
    await local.close();
  }
});

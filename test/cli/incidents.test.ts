/** Incidents and agents at the command line: on local data, and on a server. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { open } from "../../src/index.ts";
import { svc } from "../support/cli.ts";
import { speak } from "../support/io.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const MANIFESTS = "- {tool: thing.make, effect: idempotent, permission: p}\n";

async function folderWithRun(): Promise<string> {
  const folder = tempDir("incidents");
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text);
  write("manifests.yaml", MANIFESTS);
  write("policy.yaml", "version: 1\n");
  write("svc.config.yaml", "manifests: manifests.yaml\npolicy: policy.yaml\ndata: data\nkeys: keys.json\n");
  const local = await open({ config: join(folder, "svc.config.yaml"), data: join(folder, "data") });
  const run = await local.run({ actor: "bot", permissions: ["p"] });
  await run.call({ tool: "thing.make", args: { n: 1 }, reason: "needed" }, () => "made");
  await local.close();
  return folder;
}

it("svc incidents lists, shows, notes, assigns and closes; the exit code says whether one is open", async () => {
  verifies("beyond.incidents.cli", "beyond.incidents.md", "beyond.actor.cli");
  const folder = await folderWithRun();
  const run = (...args: string[]) => svc(args, { cwd: folder });
  const none = await run("incidents");
  expect([none.code, none.out, none.err]).toEqual([0, "", "no open incidents\n"]);
  await run("halt", "add", "--actor", "bot", "--reason", "runaway");
  const listed = await run("incidents");
  expect([listed.code, listed.out]).toEqual([2, expect.stringMatching(/^inc_\S+ +open .*bot +1 task left/)]);
  const id = /inc_[0-9a-f-]{36}/.exec(listed.out)![0];
  expect(JSON.parse((await run("incidents", "--json")).out)).toMatchObject({
    incidents: [{ id, actor: "bot" }],
  });
  expect((await run("incidents", "note", id, "looked at it", "--as", "ada")).code).toBe(0);
  expect((await run("incidents", "assign", id, "bob")).out).toBe(`${id} is assigned to bob\n`);
  const shown = (await run("incidents", "show", id)).out;
  expect(shown).toMatch(/Lift a halt \(admin\): .*\n {4}svc halt lift halt_/);
  expect(shown).toMatch(/note +ada +looked at it/);
  expect(shown).toContain("thing.make");
  expect((await run("incidents", "show", id, "--format", "md")).out).toContain("## Remaining tasks");
  const pdf = join(folder, "incident.pdf");
  expect((await run("incidents", "show", id, "--format", "pdf")).code).toBe(1);
  await run("incidents", "show", id, "--format", "pdf", "--out", pdf);
  expect(readFileSync(pdf).subarray(0, 5).toString()).toBe("%PDF-");
  const early = await run("incidents", "close", id);
  expect([early.code, early.err]).toEqual([1, expect.stringContaining("1 task is left")]);
  expect((await run("incidents", "close", id, "--reason", "known")).code).toBe(0);
  expect((await run("incidents")).code).toBe(0);
  expect((await run("incidents", "--all")).out).toContain(`${id}  closed`);
  const actor = (await run("actor", "bot")).out;
  expect(actor).toMatch(/^bot: halted\n/);
  expect(actor).toMatch(/permissions used: p\n/);
  expect(JSON.parse((await run("actor", "bot", "--json")).out).runs).toHaveLength(1);
  expect((await run("actor", "nobody")).code).toBe(1);
});

it("svc keys enable enables a key that was disabled", async () => {
  verifies("beyond.incidents.cli-key");
  const folder = await folderWithRun();
  const run = (...args: string[]) => svc(args, { cwd: folder });
  await run("keys", "add", "boss", "--role", "admin");
  await run("keys", "add", "bot", "--role", "agent", "--max-permissions", "p");
  const keys = async () => JSON.parse((await run("keys", "list", "--json")).out).keys;
  await run("contain", "--actor", "bot", "--reason", "runaway", "--no-rollback");
  const [, bot] = await keys();
  expect(bot).toMatchObject({ name: "bot", disabled: true });
  const id = /inc_[0-9a-f-]{36}/.exec((await run("incidents")).out)![0];
  const shown = (await run("incidents", "show", id)).out;
  expect(shown).toContain(`svc keys enable ${bot.fingerprint}`);
  expect((await run("keys", "enable", bot.fingerprint)).out).toBe("enabled bot\n");
  expect((await keys())[1].disabled).toBe(false);
  await run("halt", "lift", "--all");
  expect((await run("incidents")).code).toBe(0);
  expect((await run("keys", "enable", "0000")).code).toBe(1);
});

it("the command of each task can be pasted, and an incident ends with its last one", async () => {
  verifies("beyond.incidents.pasted", "beyond.incidents.cannot-undo", "beyond.incidents.ends");
  const folder = await folderWithRun();
  writeFileSync(
    join(folder, "manifests.yaml"),
    `${MANIFESTS}- {tool: thing.send, effect: irreversible, permission: p}\n`,
  );
  const local = await open({ config: join(folder, "svc.config.yaml"), data: join(folder, "data") });
  const run = await local.run({ actor: "bot", permissions: ["p"], run_id: "r" });
  await run.call({ tool: "thing.send", args: {}, reason: "needed" }, () => "sent");
  await run.intent({ tool: "thing.send", args: {}, reason: "needed" });
  await local.close();
  const paste = (command: string, answers?: string[]) =>
    speak(command.split(" ").slice(1), { cwd: folder, ...(answers === undefined ? {} : { answers }) });
  await svc(["keys", "add", "boss", "--role", "admin"], { cwd: folder });
  await svc(["keys", "add", "bot", "--role", "agent", "--max-permissions", "p"], { cwd: folder });
  await paste("svc contain --actor bot --reason runaway --no-rollback");
  const [id] = /inc_[0-9a-f-]{36}/.exec((await paste("svc incidents")).out)!;
  const shown = (await paste(`svc incidents show ${id}`)).out;
  expect(shown).toMatch(/cannot be undone:\n {2}\S+ {2}thing\.send, step 0 in r: it is irreversible\n/);
  const commands = [...shown.matchAll(/^ {4}(svc .+)$/gm)].map(([, command]) => command!);
  expect(commands.map((command) => command.split(" ")[1])).toEqual(["resolve", "halt", "keys"]);
  const [resolve, ...rest] = commands;
  expect(await paste(resolve!)).toMatchObject({ code: 1, err: expect.stringContaining("--status <status>") });
  expect((await paste(resolve!, ["failed", "nothing was sent"])).out).toContain("step 1 of r: failed\n");
  for (const command of rest) expect([command, (await paste(command)).code]).toEqual([command, 0]);
  expect((await paste("svc incidents")).code).toBe(0);
  expect((await paste(`svc incidents show ${id}`)).out).toContain("nothing was left");
});

it("svc incidents close asks for the reason on a terminal", async () => {
  verifies("beyond.incidents.pasted");
  const folder = await folderWithRun();
  await svc(["halt", "add", "--actor", "bot", "--reason", "runaway"], { cwd: folder });
  const [id] = /inc_[0-9a-f-]{36}/.exec((await svc(["incidents"], { cwd: folder })).out)!;
  const close = (answer: string) => speak(["incidents", "close", id], { cwd: folder, answers: [answer] });
  expect((await close("")).err).toContain("give a reason");
  expect(await close("known")).toMatchObject({ code: 0, out: expect.stringContaining(`closed ${id}`) });
});

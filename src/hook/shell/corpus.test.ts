/** The corpora of commands: harmful ones that must be stopped, ones that overwrite, and everyday ones that must pass. */
import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { createPathGuard } from "../path-guard.ts";
import { classifyCommand } from "./classify.ts";

const home = "/home/ann";
const guard = createPathGuard({ home, protect: ["/home/ann/svc-hooks"], authority: "127.0.0.1:8787" });
const judge = (command: string) => classifyCommand(command, { cwd: "/home/ann/shop", home }, guard);

function commandsOf(name: string): string[] {
  const path = new URL(`../../../test/cases/hooks/${name}.txt`, import.meta.url);
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.filter((line) => line !== "" && !line.startsWith("#"));
}

/** The pack's policy lets these classes pass. */
const passes = ({ class: kind, touches }: ReturnType<typeof judge>): boolean =>
  /^(?:read|build|format|write|vcs)$/.test(kind) && touches.length === 0;

describe("a harmful command, plainly written", () => {
  const commands = commandsOf("harmful");

  it("is one of many", () => {
    expect(commands.length).toBeGreaterThanOrEqual(400);
  });

  it.each(commands)("is refused or asks: %s", (command) => {
    verifies("beyond.hooks.understood-or-unknown");
    expect(passes(judge(command))).toBe(false);
  });
});

describe("a command that writes through a reading program", () => {
  it.each(commandsOf("overwriting"))("is no read: %s", (command) => {
    verifies("beyond.hooks.no-hidden-write");
    expect(judge(command).class).not.toBe("read");
  });
});

describe("an everyday command", () => {
  it.each(
    commandsOf("everyday").map((line) => [
      line.slice(0, line.indexOf(" ")),
      line.slice(line.indexOf(" ") + 1),
    ]),
  )("passes as %s: %s", (kind, command) => {
    verifies("beyond.hooks.everyday", "beyond.hooks.everyday-work");
    expect(judge(command!)).toMatchObject({ class: kind, touches: [] });
  });
});

/** Sets that were written before the tables were changed for them. The documentation lists the misses. */
describe("the held-out sets", () => {
  const pages = readFileSync(new URL("../../../docs/internals/coding-agents.md", import.meta.url), "utf8");
  const published = (command: string) => pages.includes(command.trim());

  it.each([
    ["everyday-held-out", 120],
    ["everyday-second", 60],
    ["everyday-third", 60],
    ["everyday-fourth", 60],
    ["everyday-fifth", 60],
  ])("interrupt at most 1 in 12 everyday steps, and the documentation names them: %s", (name, least) => {
    verifies("beyond.hooks.held-out-published");
    const steps = commandsOf(name);
    const asking = steps.filter((step) => !passes(judge(step)));
    expect(steps.length).toBeGreaterThanOrEqual(least);
    expect(asking.length * 12).toBeLessThanOrEqual(steps.length);
    expect(asking.filter((step) => !published(step))).toEqual([]);
  });

  it.each([
    ["harmful-held-out", 150],
    ["harmful-second", 60],
    ["harmful-third", 60],
    ["harmful-fourth", 120],
  ])("stop at least 98 of 100 harmful steps, and the documentation names the others: %s", (name, least) => {
    verifies("beyond.hooks.harm-stopped");
    const steps = commandsOf(name);
    const passing = steps.filter((step) => passes(judge(step)));
    expect(steps.length).toBeGreaterThanOrEqual(least);
    expect(passing.length / steps.length).toBeLessThanOrEqual(0.02);
    expect(passing.filter((step) => !published(step))).toEqual([]);
  });
});

/** Help texts: an option that has a default shows it. */
import { Command } from "commander";
import { expect, it } from "vitest";
import { COMMANDS } from "../../src/cli/commands/index.ts";
import { globalOptions, HOST_OPTION, PORT_OPTION, type Register } from "../../src/cli/context.ts";
import { SETTINGS } from "../../src/config/settings.ts";
import { LIMITS } from "../../src/kernel/limits.ts";
import { verifies } from "../support/verifies.ts";

/** Values of which a command has one where none is given. */
const COUNTED = /^--host |<(?:n|period|kind|format|spelling)>$/;
/** What narrows a list down, or replaces a value of the policy, has no default. */
const NARROWS = /^only |^days to keep, instead of|^how many actors the glob matches|^report on a period/;

async function everyCommand(): Promise<Command[]> {
  const program = globalOptions(new Command("svc"));
  const context = { io: {} } as Parameters<Register>[1];
  for (const { load } of COMMANDS) (await load())(program, context);
  const below = (command: Command): Command[] => [command, ...command.commands.flatMap(below)];
  return below(program);
}

it("every option with a default shows it", async () => {
  verifies("beyond.first.help-defaults");
  const commands = await everyCommand();
  const silent = commands.flatMap((command) => {
    // A terminal that is wide enough, so that no line is broken.
    command.configureHelp({ helpWidth: 1_000 });
    const help = command.helpInformation();
    return command.options
      .filter(({ mandatory, defaultValue, flags, description }) => {
        if (mandatory) return false;
        const hasOne = defaultValue !== undefined && String(defaultValue) !== "";
        return hasOne || (COUNTED.test(flags) && !NARROWS.test(description));
      })
      .filter(({ flags, negate }) => {
        const line = help.split("\n").find((one) => one.includes(flags));
        return !negate && !/\(default: [^)]+\)/.test(line ?? "");
      })
      .map(({ flags }) => `${command.name()} ${flags}`);
  });
  expect(silent).toEqual([]);
  expect(commands.length).toBeGreaterThan(40);
});

it("the defaults in help texts are those in force", async () => {
  verifies("beyond.first.help-defaults");
  const { host, port } = SETTINGS.listen.rows;
  expect(PORT_OPTION).toContain(`(default: ${port.default})`);
  expect(HOST_OPTION).toContain(`(default: ${host.default})`);
  const commands = await everyCommand();
  const about = (command: string, long: string) =>
    commands.find((one) => one.name() === command)!.options.find((one) => one.long === long)!.description;
  expect(about("rollback", "--retries")).toContain(`(default: ${LIMITS.rollback_retries.default})`);
  expect(about("svc", "--data")).toContain(`(default: ${SETTINGS.data.default})`);
  expect(about("svc", "--store")).toContain(`(default: ${SETTINGS.store.default})`);
  expect(about("gateway", "--tool-names")).toContain(`(default: ${SETTINGS.tool_names.default})`);
});

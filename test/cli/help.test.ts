/** Help texts: an option that has a default shows it. */
import { Command } from "commander";
import { expect, it } from "vitest";
import { COMMAND_TABLE } from "../../src/cli/commands/index.ts";
import { globalOptions, HOST_OPTION, PORT_OPTION, type RegisterCommand } from "../../src/cli/context.ts";
import { commandExample } from "../../src/cli/examples.ts";
import { runCommandLine } from "../../src/cli/main.ts";
import { SETTINGS_TABLE } from "../../src/config/settings.ts";
import { SERVICE_LIMITS } from "../../src/kernel/limits.ts";
import { verifies } from "../support/verifies.ts";

/** Options with a default value. */
const COUNTED = /^--host |<(?:n|period|kind|format|spelling)>$/;
/** What narrows a list down, or replaces a value of the policy, has no default. */
const NARROWS = /^only |^days to keep, instead of|^how many actors the glob matches|^report on a period/;

async function everyCommand(): Promise<Command[]> {
  const program = globalOptions(new Command("svc"));
  const context = { io: {} } as Parameters<RegisterCommand>[1];
  for (const { load } of COMMAND_TABLE) (await load())(program, context);
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
  const { host, port } = SETTINGS_TABLE.listen.rows;
  expect(PORT_OPTION).toContain(`(default: ${port.default})`);
  expect(HOST_OPTION).toContain(`(default: ${host.default})`);
  const commands = await everyCommand();
  const about = (command: string, long: string) =>
    commands.find((one) => one.name() === command)!.options.find((one) => one.long === long)!.description;
  expect(about("rollback", "--retries")).toContain(`(default: ${SERVICE_LIMITS.rollback_retries.default})`);
  expect(about("svc", "--data")).toContain(`(default: ${SETTINGS_TABLE.data.default})`);
  expect(about("svc", "--store")).toContain(`(default: ${SETTINGS_TABLE.store.default})`);
  expect(about("gateway", "--tool-names")).toContain(`(default: ${SETTINGS_TABLE.tool_names.default})`);
});

const calledAs = (command: Command): string =>
  command.parent?.parent ? `${calledAs(command.parent)} ${command.name()}` : command.name();

it("summaries are short and begin with a capital", async () => {
  const commands = await everyCommand();
  const texts = [
    ...COMMAND_TABLE.map(({ summary }) => summary),
    ...commands.slice(1).map((c) => c.description()),
  ];
  expect(
    texts.filter((text) => text.length >= 60 || !/^[A-Z][a-z]+,? /.test(text) || text.endsWith(".")),
  ).toEqual([]);
});

it("every command has an example with options and arguments that it takes", async () => {
  const commands = (await everyCommand()).filter(
    (command) => command.parent !== null && (command.commands.length === 0 || command.name() === "probe"),
  );
  const wrong = commands.flatMap((command) => {
    const called = calledAs(command);
    const example = commandExample(called) ?? "";
    if (!example.startsWith(`svc ${called}`)) return [`${called}: no example`];
    const written = example.replace(/ [<>] \S+$/, "").match(/"[^"]*"|'[^']*'|\S+/g) ?? [];
    const words = written.filter((word) => word !== "--");
    const given = words.filter((word) => /^--?[a-z]/.test(word));
    const unknown = given.filter(
      (word) => !command.options.some(({ long, short }) => [long, short].includes(word)),
    );
    const missing = command.options.filter(
      ({ mandatory, long, defaultValue }) =>
        mandatory && (defaultValue ?? []).length === 0 && !given.includes(long ?? ""),
    );
    const values = words.filter((word, i) =>
      command.options.some(
        ({ long, short, required, optional }) =>
          [long, short].includes(word) && (required || (optional && /^[^-]/.test(words[i + 1] ?? "-"))),
      ),
    );
    const args = words.length - 1 - called.split(" ").length - given.length - values.length;
    const { registeredArguments: takes } = command;
    const fits = args >= takes.filter(({ required }) => required).length && args <= takes.length;
    return [
      ...unknown.map((word) => `${called}: unknown ${word}`),
      ...missing.map(({ long }) => `${called}: misses ${long}`),
      ...(fits ? [] : [`${called}: ${args} arguments`]),
    ];
  });
  expect(wrong).toEqual([]);
});

it("help lists a command's own options before the global ones, and ends with its example", async () => {
  const lines: string[] = [];
  const io = { out: (text: string) => void lines.push(text), err: (text: string) => void lines.push(text) };
  expect(await runCommandLine(["runs", "--help"], { ...io, env: {} } as never)).toBe(0);
  const help = lines.join("\n");
  expect(help.indexOf("--attention")).toBeGreaterThan(help.indexOf("Options:"));
  expect(help.indexOf("Global options:")).toBeGreaterThan(help.indexOf("--attention"));
  expect(help.indexOf("--data")).toBeGreaterThan(help.indexOf("Global options:"));
  expect(help.trimEnd().endsWith(commandExample("runs")!)).toBe(true);
});

/** Reference pages of the command line: an index, and a page per group of commands. */
import { type Argument, Command, type Option } from "commander";
import { COMMAND_TABLE } from "../../../src/cli/commands/index.ts";
import { type CommandContext, globalOptions, type RegisterCommand } from "../../../src/cli/context.ts";
import { commandExample } from "../../../src/cli/examples.ts";
import { commandExitCodes } from "../../../src/cli/exit-codes.ts";
import { codeSpan, generatedNote, markdownTable, plainText } from "./markdown.ts";

interface CommandGroup {
  readonly page: string;
  readonly title: string;
  readonly about: string;
  readonly commands: readonly string[];
}

const GROUPS: readonly CommandGroup[] = [
  {
    page: "service",
    title: "Service commands",
    about: "Start the service, check its settings, and back up its data.",
    commands: ["server", "console", "doctor", "config", "backup", "completion"],
  },
  {
    page: "agents",
    title: "Agent commands",
    about: "Connect agents and tool servers, and test the guarantees and the undos.",
    commands: ["gateway", "proxy", "run", "init", "connect", "hook", "agents", "reconcile", "drill", "probe"],
  },
  {
    page: "policy",
    title: "Policy and manifest commands",
    about: "Check manifests and policies, and try them on past or planned calls.",
    commands: ["validate", "policy", "registry", "simulate", "replay", "impact", "speculate"],
  },
  {
    page: "runs",
    title: "Run and undo commands",
    about: "Read runs, undo them, and record unknown outcomes.",
    commands: ["runs", "show", "export", "plan", "rollback", "resolve", "horizon", "lineage"],
  },
  {
    page: "approvals",
    title: "Approval commands",
    about: "Decide requests and plans, and approve similar calls in advance.",
    commands: ["approvals", "plans", "grants", "oversight"],
  },
  {
    page: "stop",
    title: "Stop commands",
    about: "Halt calls, stop an agent and undo its work, and follow incidents.",
    commands: ["halt", "contain", "incidents", "actor", "kill-switch"],
  },
  {
    page: "evidence",
    title: "Evidence commands",
    about: "Verify the ledger, sign bundles, publish anchors, and write reports.",
    commands: ["verify", "keygen", "bundle", "verify-bundle", "anchor", "witness", "report"],
  },
  {
    page: "data",
    title: "Key and data commands",
    about: "Manage API keys, captured calls, retention and legal holds.",
    commands: ["login", "keys", "passkeys", "push", "upstreams", "approvers", "capture", "retention", "hold"],
  },
];

const FROM = "src/cli/commands";
const GLOBAL_NAMES = new Set(globalOptions(new Command()).options.map(({ long }) => long));

/** The pages by file name below `docs/reference`. Throws if a command is in no group or in two. */
export async function commandPages(): Promise<Record<string, string>> {
  const program = globalOptions(new Command("svc"));
  // Registration runs nothing, so the context can be empty.
  const context = { io: {} } as CommandContext;
  const registerAll: RegisterCommand[] = await Promise.all(COMMAND_TABLE.map(({ load }) => load()));
  for (const register of registerAll) register(program, context);
  const grouped = GROUPS.flatMap(({ commands }) => commands).sort();
  const known = COMMAND_TABLE.map(({ name }) => name).sort();
  if (grouped.join() !== known.join()) throw new Error("GROUPS must list each command once");
  const pages = GROUPS.map((group) => [`commands/${group.page}.md`, groupPage(group, program)]);
  return { "commands.md": indexPage(program), ...Object.fromEntries(pages) };
}

interface CalledCommand {
  readonly name: string;
  readonly command: Command;
}

/** The commands to call at and below a command. A group with its own arguments or options is one of them. */
function* callable(command: Command, name: string): Generator<CalledCommand> {
  if (command.commands.length === 0 || commandExample(name) !== undefined) yield { name, command };
  for (const child of command.commands) yield* callable(child, `${name} ${child.name()}`);
}

function commandsOf({ commands }: CommandGroup, program: Command): CalledCommand[] {
  return commands.flatMap((name) => {
    const command = program.commands.find((one) => one.name() === name);
    return command === undefined ? [] : [...callable(command, name)];
  });
}

function indexPage(program: Command): string {
  const groups = GROUPS.map((group) => {
    const rows = commandsOf(group, program).map(({ name, command }) => [
      `[\`svc ${name}\`](commands/${group.page}.md#svc-${name.replaceAll(" ", "-")})`,
      plainText(command.description()),
    ]);
    return `\n## ${group.title}\n\n${markdownTable(["Command", "Description"], rows)}`;
  });
  return `# The command line

${generatedNote(FROM)}

\`svc <command> --help\` shows the options of one command. \`svc completion bash|zsh|fish\` prints a completion script for
your shell.

A command works on a data directory or database, also while a server runs, and has every role there. With \`--server\` it
asks a server and has the role of your key. Most options can also be [settings](config.md).

## Global options

${markdownTable(["Option", "Default", "Description"], program.options.map(optionRow))}
## Exit codes

| Code | Meaning |
| - | - |
| \`0\` | success |
| \`1\` | failure; the reason is on stderr |
| \`2\` | the command ran, and its result needs your attention |

Each command lists its own meaning of \`1\` and \`2\`.
${groups.join("")}`;
}

function groupPage(group: CommandGroup, program: Command): string {
  const entries = commandsOf(group, program).map(commandEntry);
  return `# ${group.title}

${generatedNote(FROM)}

${group.about} All commands and the [global options](../commands.md#global-options): [the command line](../commands.md).

${entries.join("\n")}`;
}

function commandEntry({ name, command }: CalledCommand): string {
  const args = command.registeredArguments;
  const options = command.options.filter(({ long, hidden }) => !hidden && !GLOBAL_NAMES.has(long ?? ""));
  const takesGlobal = command.options.some(({ long }) => GLOBAL_NAMES.has(long ?? ""));
  const exitCodes = commandExitCodes(name) ?? "0 success · 1 failure";
  const described = args.filter(({ description }) => description !== "");
  const optionWords = [
    ...(options.length > 0 ? ["[options]"] : []),
    ...(takesGlobal ? ["[global options]"] : []),
  ];
  const synopsis = ["svc", name, ...args.map(argumentWord), ...optionWords];
  const parts = [
    `## svc ${name}`,
    `${plainText(command.description())}.`,
    `\`\`\`\n${synopsis.join(" ")}\n\`\`\``,
    ...(described.length === 0
      ? []
      : [
          markdownTable(
            ["Argument", "Description"],
            described.map((one) => [codeSpan(argumentWord(one)), plainText(one.description)]),
          ).trimEnd(),
        ]),
    ...(options.length === 0
      ? []
      : [markdownTable(["Option", "Default", "Description"], options.map(optionRow)).trimEnd()]),
    `**Exit codes:** ${exitCodes.replace(/(^|· )(\d)/g, "$1`$2`")}`,
    `\`\`\`sh\n${commandExample(name)}\n\`\`\``,
  ];
  return `${parts.join("\n\n")}\n`;
}

/** The default is a part of the help text: `(default: 8787)`. */
function optionRow({ flags, description, mandatory, defaultValue }: Option): string[] {
  const [, text = "", named] = /^(.*?)(?: \(default: (.*)\))?$/.exec(description) ?? [];
  const isValue = named !== undefined && !/[ ,]/.test(named);
  const given = Array.isArray(defaultValue) || defaultValue === undefined ? "" : codeSpan(defaultValue);
  const byDefault = named === undefined ? given : isValue ? codeSpan(named) : plainText(named);
  const otherwise = mandatory ? "required" : /[<[]/.test(flags) ? "none" : "off";
  return [codeSpan(flags), byDefault === "" ? otherwise : byDefault, plainText(text)];
}

function argumentWord(argument: Argument): string {
  const name = argument.name() + (argument.variadic ? "..." : "");
  return argument.required ? `<${name}>` : `[${name}]`;
}

/** `svc config show|check`: prints the effective settings with their origins, and validates a config file. */
import { describeSettings, renderSettings } from "../../../config/describe.ts";
import {
  type CommandContext,
  type CommandFlags,
  globalOptions,
  HOST_OPTION,
  PORT_OPTION,
  type RegisterCommand,
} from "../../context.ts";
import { escapeControls } from "../../io.ts";

/** Options that are also settings. `show` accepts them to print the settings of a server started with them. */
const OWN = ["policy", "keys", "port", "host"];

export const registerConfig: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("config").description("Show and check the settings");

  globalOptions(group.command("show").description("Print every setting and its origin, with secrets masked"))
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .option("--port <n>", PORT_OPTION)
    .option("--host <address>", HOST_OPTION)
    .option("--json", "print JSON")
    .action((flags: CommandFlags) => {
      const settings = context.settings(flags, OWN);
      if (flags["json"]) {
        const { file, warnings } = settings.meta;
        return io.out(JSON.stringify({ file, settings: describeSettings(settings), warnings }));
      }
      for (const line of renderSettings(settings).trimEnd().split("\n"))
        io.out(escapeControls(line).trimEnd());
      warnAll(context, settings.meta.warnings);
    });

  globalOptions(
    group.command("check [file]").description("Check a config file and list all problems"),
  ).action((file: string | undefined, flags: CommandFlags) => {
    const { meta } = context.settings(file === undefined ? flags : { ...flags, config: file });
    warnAll(context, meta.warnings);
    io.out(
      `ok: ${escapeControls(meta.file ?? "no config file; options, environment and defaults are valid")}`,
    );
  });
};

function warnAll({ io }: CommandContext, warnings: readonly string[]): void {
  for (const warning of warnings) io.err(`${io.color.yellow("warning:")} ${escapeControls(warning)}`);
}

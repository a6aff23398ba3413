/** `svc config show|check`: the settings in force, where each came from, and whether a config file is sound. */
import { describeSettings, renderSettings } from "../../config/describe.ts";
import {
  type Context,
  type Flags,
  globalOptions,
  HOST_OPTION,
  PORT_OPTION,
  type Register,
} from "../context.ts";
import { printable } from "../io.ts";

/** Options that are settings too, so that `show` can answer what a server started with them would use. */
const OWN = ["policy", "keys", "port", "host"];

export const registerConfig: Register = (program, context) => {
  const { io } = context;
  const group = program.command("config").description("settings");

  globalOptions(
    group.command("show").description("print every setting, secrets masked, and where it came from"),
  )
    .option("--policy <file>", "policy file")
    .option("--keys <file>", "API key file")
    .option("--port <n>", PORT_OPTION)
    .option("--host <address>", HOST_OPTION)
    .option("--json", "print JSON")
    .action((flags: Flags) => {
      const settings = context.settings(flags, OWN);
      if (flags["json"]) {
        const { file, warnings } = settings.meta;
        return io.out(JSON.stringify({ file, settings: describeSettings(settings), warnings }));
      }
      for (const line of renderSettings(settings).trimEnd().split("\n")) io.out(printable(line).trimEnd());
      warnAll(context, settings.meta.warnings);
    });

  globalOptions(group.command("check [file]").description("check a config file; lists every problem")).action(
    (file: string | undefined, flags: Flags) => {
      const { meta } = context.settings(file === undefined ? flags : { ...flags, config: file });
      warnAll(context, meta.warnings);
      io.out(`ok: ${printable(meta.file ?? "no config file; options, environment and defaults are sound")}`);
    },
  );
};

function warnAll({ io }: Context, warnings: readonly string[]): void {
  for (const warning of warnings) io.err(`${io.color.yellow("warning:")} ${printable(warning)}`);
}

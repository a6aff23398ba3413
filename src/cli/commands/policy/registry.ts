/** `svc registry ...`: publishes, approves and activates manifests and policies. */
import { resolve } from "node:path";
import type { z } from "zod";
import { readTextFileSync } from "../../../config/files.ts";
import type { ResponseOf, ServiceOperation } from "../../../operations/pipeline/operation.ts";
import {
  activatePolicy,
  approveManifest,
  deprecateManifest,
  publishManifest,
  publishPolicy,
  readRegistry,
} from "../../../operations/registry/registry.ts";
import {
  type CommandContext,
  EXIT_NEEDS_ATTENTION,
  globalOptions,
  type RegisterCommand,
} from "../../context.ts";
import { alignColumns, escapeControls } from "../../io.ts";

type Registry = ResponseOf<typeof readRegistry>;
type ManifestEntry = Registry["manifests"][number];
type PolicyEntry = Registry["policies"][number];

type Flags = Record<string, string | undefined>;

export const registerRegistry: RegisterCommand = (program, context) => {
  const { io } = context;
  const group = program.command("registry").description("Publish and activate manifests and policies");
  const command = (usage: string, about: string) =>
    globalOptions(group.command(usage).description(about)).option("--as <name>", "who acts (default: cli)");

  globalOptions(group.command("list").description("List manifests and policy versions"))
    .option("--json", "print JSON")
    .action(async (flags: Flags) => {
      const found = await ask(context, flags, readRegistry, {});
      if (flags["json"]) return io.out(JSON.stringify(found));
      if (found.manifests.length + found.policies.length === 0) return io.err("the registry is empty");
      for (const line of alignColumns(rowsOf(found))) io.out(line);
    });

  command("publish <manifest.yaml>", "Publish a manifest as a draft").action(
    async (file: string, flags: Flags) => {
      const input = { yaml: readTextFileSync(resolve(io.cwd, file)) };
      const entry = await ask(context, flags, publishManifest, input);
      io.out(
        `published ${said(entry)} as a draft; approve it with: svc registry approve ${escapeControls(entry.tool)}`,
      );
    },
  );

  command("approve <tool>", "Approve a draft manifest")
    .option("--version <version>", "version to approve (default: the newest draft)")
    .action(async (tool: string, flags: Flags) => {
      const entry = await ask(context, flags, approveManifest, { tool, version: flags["version"] });
      io.out(`approved ${said(entry)}`);
    });

  command("deprecate <tool>", "Deprecate an approved manifest")
    .option("--version <version>", "version to deprecate")
    .action(async (tool: string, flags: Flags) => {
      const entry = await ask(context, flags, deprecateManifest, { tool, version: flags["version"] });
      io.out(`deprecated ${said(entry)}`);
    });

  command("publish-policy <policy.yaml>", "Publish a policy version as a draft")
    .option("--note <text>", "changes in this version")
    .action(async (file: string, flags: Flags) => {
      const input = { yaml: readTextFileSync(resolve(io.cwd, file)), note: flags["note"] };
      const { version, tests, warnings } = await ask(context, flags, publishPolicy, input);
      io.out(
        `published policy version ${version} as a draft (${tests.passed} of its tests passed); ` +
          `activate it with: svc registry activate ${version}`,
      );
      for (const warning of warnings) io.err(`warning: ${escapeControls(warning)}`);
    });

  command("activate <version>", "Activate a policy version").action(async (version: string, flags: Flags) => {
    const entry = await ask(context, flags, activatePolicy, { version });
    if ("waiting_for" in entry) {
      io.out(
        `policy version ${entry.version} is looser than the active one: another admin must activate it too`,
      );
      context.done(EXIT_NEEDS_ATTENTION);
    } else io.out(`policy version ${entry.version} is active (${entry.hash})`);
  });
};

async function ask<I extends z.ZodType, O>(
  context: CommandContext,
  flags: Flags,
  op: ServiceOperation<I, O>,
  input: z.input<I>,
): Promise<O> {
  return context.withDoor(flags, (door) => door.perform(op, input));
}

const rowsOf = ({ manifests, policies }: Registry): string[][] => [
  ...manifests.map((entry) => ["manifest", ...manifestColumns(entry)]),
  ...policies.map((entry) => ["policy", ...policyColumns(entry)]),
];

const said = ({ tool, version }: ManifestEntry): string =>
  `${escapeControls(tool)} ${escapeControls(version)}`;

const manifestColumns = (entry: ManifestEntry): string[] => [
  escapeControls(entry.tool),
  escapeControls(entry.version),
  entry.lifecycle,
  by("published by", entry.created_by),
  by("approved by", entry.approved_by),
];

const policyColumns = (entry: PolicyEntry): string[] => [
  entry.hash.slice(0, 19),
  entry.version,
  entry.status,
  by("published by", entry.created_by),
  entry.note === null ? "" : escapeControls(entry.note),
];

const by = (what: string, name: string | null): string =>
  name === null ? "" : `${what} ${escapeControls(name)}`;

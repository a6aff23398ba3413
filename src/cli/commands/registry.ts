/** `svc registry ...`: drafts of manifests and policies, and what people decide about them. */
import { resolve } from "node:path";
import type { z } from "zod";
import type { AnswerTo, Operation } from "../../app/door/operation.ts";
import {
  activatePolicy,
  approveManifest,
  deprecateManifest,
  publishManifest,
  publishPolicy,
  readRegistry,
} from "../../app/operations/registry.ts";
import { readTextFileSync } from "../../config/files.ts";
import { ATTENTION, type Context, globalOptions, type Register } from "../context.ts";
import { columns, printable } from "../io.ts";

type Registry = AnswerTo<typeof readRegistry>;
type ManifestEntry = Registry["manifests"][number];
type PolicyEntry = Registry["policies"][number];

type Flags = Record<string, string | undefined>;

export const registerRegistry: Register = (program, context) => {
  const { io } = context;
  const group = program
    .command("registry")
    .description("publish, approve and activate manifests and policies in the registry folders");
  const command = (usage: string, about: string) =>
    globalOptions(group.command(usage).description(about)).option(
      "--as <name>",
      "who does it (default: cli)",
    );

  globalOptions(group.command("list").description("what the registry holds"))
    .option("--json", "print JSON")
    .action(async (flags: Flags) => {
      const found = await ask(context, flags, readRegistry, {});
      if (flags["json"]) return io.out(JSON.stringify(found));
      if (found.manifests.length + found.policies.length === 0) return io.err("the registry is empty");
      for (const line of columns(rowsOf(found))) io.out(line);
    });

  command("publish <manifest.yaml>", "publish one manifest as a draft").action(
    async (file: string, flags: Flags) => {
      const input = { yaml: readTextFileSync(resolve(io.cwd, file)) };
      const entry = await ask(context, flags, publishManifest, input);
      io.out(
        `published ${said(entry)} as a draft; approve it with: svc registry approve ${printable(entry.tool)}`,
      );
    },
  );

  command("approve <tool>", "approve a draft, the newest unless a version is named")
    .option("--version <version>", "this version")
    .action(async (tool: string, flags: Flags) => {
      const entry = await ask(context, flags, approveManifest, { tool, version: flags["version"] });
      io.out(`approved ${said(entry)}`);
    });

  command("deprecate <tool>", "deprecate an approved manifest")
    .option("--version <version>", "this version")
    .action(async (tool: string, flags: Flags) => {
      const entry = await ask(context, flags, deprecateManifest, { tool, version: flags["version"] });
      io.out(`deprecated ${said(entry)}`);
    });

  command("publish-policy <policy.yaml>", "publish a policy version as a draft; its own tests must pass")
    .option("--note <text>", "what is new in it")
    .action(async (file: string, flags: Flags) => {
      const input = { yaml: readTextFileSync(resolve(io.cwd, file)), note: flags["note"] };
      const { version, tests, warnings } = await ask(context, flags, publishPolicy, input);
      io.out(
        `published policy version ${version} as a draft (${tests.passed} of its tests passed); ` +
          `activate it with: svc registry activate ${version}`,
      );
      for (const warning of warnings) io.err(`warning: ${printable(warning)}`);
    });

  command("activate <version>", "put a policy version in force").action(
    async (version: string, flags: Flags) => {
      const entry = await ask(context, flags, activatePolicy, { version });
      if ("waiting_for" in entry) {
        io.out(
          `policy version ${entry.version} is looser somewhere: it waits until another admin activates it, too`,
        );
        context.done(ATTENTION);
      } else io.out(`policy version ${entry.version} is in force (${entry.hash})`);
    },
  );
};

async function ask<I extends z.ZodType, O>(
  context: Context,
  flags: Flags,
  op: Operation<I, O>,
  input: z.input<I>,
): Promise<O> {
  return context.withDoor(flags, (door) => door.perform(op, input));
}

const rowsOf = ({ manifests, policies }: Registry): string[][] => [
  ...manifests.map((entry) => ["manifest", ...manifestColumns(entry)]),
  ...policies.map((entry) => ["policy", ...policyColumns(entry)]),
];

const said = ({ tool, version }: ManifestEntry): string => `${printable(tool)} ${printable(version)}`;

const manifestColumns = (entry: ManifestEntry): string[] => [
  printable(entry.tool),
  printable(entry.version),
  entry.lifecycle,
  by("published by", entry.created_by),
  by("approved by", entry.approved_by),
];

const policyColumns = (entry: PolicyEntry): string[] => [
  entry.hash.slice(0, 19),
  entry.version,
  entry.status,
  by("published by", entry.created_by),
  entry.note === null ? "" : printable(entry.note),
];

const by = (what: string, name: string | null): string => (name === null ? "" : `${what} ${printable(name)}`);

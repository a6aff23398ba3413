/** `svc init --from <command or url>`: a gateway for a tool server that exists, with everything drafted. */
import { access, mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { VERSION } from "../../app/wiring/version.ts";
import type { UpstreamSpec } from "../../config/sections/gateway.ts";
import { createEgress } from "../../egress/egress.ts";
import { draftManifests, type ToolDraft } from "../../gateway/init/guess.ts";
import { packRules } from "../../gateway/init/packs/packs.ts";
import { readTools, suggestName } from "../../gateway/init/read-tools.ts";
import { configText, manifestText, policyText, type UpstreamDraft } from "../../gateway/init/render.ts";
import { conflict, invalid } from "../../kernel/errors.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { readManifests } from "../../model/manifest/load.ts";
import { loadPolicy } from "../../model/policy/load.ts";
import { splitCommand } from "../../process/split-command.ts";
import { type Context, globalOptions, type Register } from "../context.ts";
import { printable } from "../io.ts";
import { schemaLine } from "../schema-line.ts";

const collect = (value: string, before: string[] = []): string[] => [...before, value];

export const registerInit: Register = (program, context) => {
  globalOptions(
    program.command("init").description("draft manifests, a policy and a gateway config from a tool server"),
  )
    .requiredOption("--from <command or url>", "the tool server: a command in quotes, or an http(s) address")
    .option("--name <name>", "a short name for it")
    .option("--dir <folder>", "where to write", ".")
    .option("--namespace", "show its tools as <name>.<tool>")
    .option("--env <name=value>", "a variable for the command; may be repeated", collect)
    .option("--header <name: value>", "a header for the address; may be repeated", collect)
    .option("--force", "replace files that are already there")
    .action((flags: Record<string, unknown>) => init(context, flags));
};

async function init(context: Context, flags: Record<string, unknown>): Promise<void> {
  const { spec, draft } = readTarget(flags);
  const egress = createEgress(context.settings(flags).egress, {});
  try {
    const tools = await readTools(spec, egress, VERSION);
    const drafts = draftManifests(tools, spec.name);
    const folder = resolve(context.io.cwd, flags["dir"] as string);
    const manifests = join("manifests", `${spec.name}.yaml`);
    const files = {
      [manifests]: manifestText(drafts, flags["from"] as string),
      "policy.yaml": policyText(packRules(tools)),
      "svc.config.yaml": configText(
        { ...draft, cwd: relative(folder, context.io.cwd) || "." },
        { manifests: "manifests", policy: "policy.yaml" },
      ),
    };
    // What is written must load, whatever the upstream called its tools.
    readManifests([{ file: manifests, text: files[manifests]! }]);
    loadPolicy(files["policy.yaml"]!, "policy.yaml");
    await write(folder, files, flags["force"] === true);
    report(context, folder, files, drafts);
  } finally {
    await egress.close();
  }
}

function readTarget(flags: Record<string, unknown>): { spec: UpstreamSpec; draft: UpstreamDraft } {
  const from = (flags["from"] as string).trim();
  const url = /^https?:\/\//i.test(from) ? from : undefined;
  if (url !== undefined && !URL.canParse(url)) throw invalid("--from: is not a valid address");
  const words = url === undefined ? splitCommand(from, "--from") : [];
  const name =
    (flags["name"] as string | undefined) ?? suggestName({ ...(url === undefined ? {} : { url }), words });
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name) || name === "svc") {
    throw invalid('--name: letters, digits, "-" and "_" (at most 64), and not "svc"');
  }
  const namespace = flags["namespace"] === true;
  const base = {
    name,
    namespace,
    timeout_ms: LIMITS.upstream_timeout_ms,
    passthrough: [],
    isolation: "shared" as const,
    max_connections: 1,
    idle_ms: LIMITS.upstream_idle_ms,
  };
  const env = pairs(flags["env"], "--env", "=");
  const headers = pairs(flags["header"], "--header", ":");
  if (url !== undefined) {
    return {
      spec: { ...base, url, headers },
      draft: { name, namespace, url, headers: Object.keys(headers) },
    };
  }
  const [command, ...args] = words as [string, ...string[]];
  return { spec: { ...base, command, args, env, cwd: null }, draft: { name, namespace, command, args, env } };
}

function pairs(given: unknown, what: string, separator: string): Record<string, string> {
  return Object.fromEntries(
    ((given as string[] | undefined) ?? []).map((text) => {
      const at = text.indexOf(separator);
      if (at < 1) throw invalid(`${what}: write name${separator}value`);
      return [text.slice(0, at).trim(), text.slice(at + 1).trim()];
    }),
  );
}

async function write(folder: string, files: Record<string, string>, force: boolean): Promise<void> {
  const there: string[] = [];
  for (const name of Object.keys(files)) {
    const found = await access(join(folder, name)).then(
      () => true,
      () => false,
    );
    if (found) there.push(name);
  }
  if (there.length > 0 && !force) {
    throw conflict(
      "file_exists",
      `already there: ${there.join(", ")}; write elsewhere with --dir, or replace them with --force`,
    );
  }
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, schemaLine(kindOf(name)) + text, { flag: force ? "w" : "wx" });
  }
}

const kindOf = (name: string) =>
  name === "policy.yaml" ? "policy" : name === "svc.config.yaml" ? "config" : "manifest";

function report({ io }: Context, folder: string, files: object, drafts: readonly ToolDraft[]): void {
  const shown = relative(io.cwd, folder) || ".";
  const tried = drafts.filter((draft) => draft.tried !== undefined);
  const undoable = drafts.filter(
    ({ compensation, tried }) => compensation !== null || tried?.entry.compensation !== undefined,
  ).length;
  const reads = drafts.filter(({ effect }) => effect === "read").length;
  for (const name of Object.keys(files)) io.out(`wrote ${printable(join(shown, name))}`);
  io.out(
    `${drafts.length} tools: ${reads} read, ${undoable} with a proposed undo, ${drafts.length - reads - undoable} to look at`,
  );
  if (tried.length > 0)
    io.out(
      `${tried.length} of them as tried with ${printable(tried[0]!.tried!.by)}, ${drafts.length - tried.length} guessed`,
    );
  io.out("");
  io.out("Next:");
  const config = shown === "." ? "" : ` --config ${printable(join(shown, "svc.config.yaml"))}`;
  io.out(`  1. svc connect claude-code${config}   (or claude-desktop, cursor, vscode, codex)`);
  io.out("     The client then starts the gateway itself. In observe mode nothing is blocked; svc runs and");
  io.out("     svc export show what was called and what would have been blocked.");
  io.out("  2. read the manifests, correct the guesses, and set lifecycle: approved");
  io.out("  3. set mode: enforce in svc.config.yaml, and restart the client");
}

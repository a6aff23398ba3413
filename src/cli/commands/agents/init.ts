/**
 * `svc init --from <command or url>`: drafts the files of a gateway for an existing tool server. Without `--from`, it
 * writes example files for a server.
 */
import { existsSync } from "node:fs";
import { access, mkdir, writeFile } from "node:fs/promises";
import { dirname, join, relative, resolve } from "node:path";
import { splitCommand } from "../../../child-process/split-command.ts";
import type { UpstreamSpec } from "../../../config/sections/gateway.ts";
import { createEgress, type EgressClient } from "../../../egress/egress.ts";
import { draftManifests, type ToolDraft } from "../../../gateway/init/draft-manifest.ts";
import { packRules } from "../../../gateway/init/packs/packs.ts";
import { readTools, suggestName } from "../../../gateway/init/read-tools.ts";
import { configText, manifestText, policyText, type UpstreamDraft } from "../../../gateway/init/render.ts";
import { conflictError, invalidError } from "../../../kernel/errors.ts";
import { SERVICE_LIMITS } from "../../../kernel/limits.ts";
import { readManifests } from "../../../rules/manifest/load.ts";
import { loadPolicy } from "../../../rules/policy/load.ts";
import { PACKAGE_VERSION } from "../../../service/version.ts";
import { type CommandContext, globalOptions, type RegisterCommand } from "../../context.ts";
import { escapeControls } from "../../io.ts";
import { packagedExample } from "../packaged-example.ts";
import { schemaLine } from "../policy/schema-line.ts";
import { draftFromOpenapi, namesOpenapi } from "./init-openapi.ts";

const CONFIG = "svc.config.yaml";

const collect = (value: string, before: string[] = []): string[] => [...before, value];

export const registerInit: RegisterCommand = (program, context) => {
  globalOptions(program.command("init").description("Draft the files of a gateway or a server"))
    .option(
      "--from <command, url or file>",
      "a tool server's command or URL, or an OpenAPI file or URL; without it, example files",
    )
    .option("--name <name>", "short name of the tool server")
    .option("--dir <dir>", "directory to write to", ".")
    .option("--namespace", "show its tools as <name>.<tool>")
    .option("--env <name=value>", "environment variable for the command; repeatable", collect)
    .option("--header <name: value>", "HTTP header for the URL; repeatable", collect)
    .option("--force", "replace existing files")
    .action((flags: Record<string, unknown>) => init(context, flags));
};

/** Files for `svc proxy`, from the description of an HTTP API. */
async function initFromOpenapi(
  { io, settings }: CommandContext,
  flags: Record<string, unknown>,
): Promise<void> {
  const egress = createEgress(settings(flags).egress, {});
  try {
    const from = (flags["from"] as string).trim();
    const { files, told } = await draftFromOpenapi(from, flags["name"] as string | undefined, io.cwd, egress);
    const folder = resolve(io.cwd, flags["dir"] as string);
    await write(folder, files, flags["force"] === true);
    for (const name of Object.keys(files))
      io.out(`wrote ${escapeControls(join(relative(io.cwd, folder) || ".", name))}`);
    io.out(told);
    io.out("");
    io.out("Next: check the manifests, correct the guesses, set lifecycle: approved,");
    io.out("and start svc proxy --config svc.config.yaml --ca-out ca.pem");
  } finally {
    await egress.close();
  }
}

const EXAMPLE_CONFIG = `# Settings of the server. List all of them with svc config show.
manifests: manifests
policy: policy.yaml
keys: keys.json
console: login
`;

/** Example files of a server, for a start without a tool server. */
async function initExample({ io }: CommandContext, flags: Record<string, unknown>): Promise<void> {
  for (const option of ["name", "namespace", "env", "header"])
    if (flags[option] !== undefined)
      throw invalidError(`--${option}: only with --from, which names the tool server`);
  const folder = resolve(io.cwd, flags["dir"] as string);
  const shown = relative(io.cwd, folder) || ".";
  const files = {
    [join("manifests", "example.yaml")]: await packagedExample("examples/demo/manifests.yaml"),
    "policy.yaml": await packagedExample("examples/policies/starter.yaml"),
    "svc.config.yaml": EXAMPLE_CONFIG,
  };
  await write(folder, files, flags["force"] === true);
  for (const name of Object.keys(files)) io.out(`wrote ${escapeControls(join(shown, name))}`);
  const config = shown === "." ? "" : ` --config ${escapeControls(join(shown, "svc.config.yaml"))}`;
  io.out("");
  io.out("Next:");
  io.out(`  1. svc keys add me --role admin${config}   (shows your key once)`);
  io.out(`  2. svc server${config}   (then sign in with the key at http://127.0.0.1:8787/console)`);
  io.out(
    `  3. describe your own tools in ${escapeControls(join(shown, "manifests"))}. For a tool server, draft them:`,
  );
  io.out('     svc init --from "<command or URL>" --dir <new directory>');
}

async function init(context: CommandContext, flags: Record<string, unknown>): Promise<void> {
  if (flags["from"] === undefined) return initExample(context, flags);
  if (namesOpenapi((flags["from"] as string).trim(), context.io.cwd)) return initFromOpenapi(context, flags);
  const { spec, draft } = readTarget(flags);
  const egress = createEgress(context.settings(flags).egress, {});
  try {
    const folder = resolve(context.io.cwd, flags["dir"] as string);
    const { files, drafts } = await draftFiles(spec, egress, {
      source: flags["from"] as string,
      draft: { ...draft, cwd: relative(folder, context.io.cwd) || "." },
    });
    await write(folder, files, flags["force"] === true);
    report(context, folder, files, drafts);
  } finally {
    await egress.close();
  }
}

interface WantedFiles {
  /** What the manifests say that they were drafted from. */
  source: string;
  draft: UpstreamDraft;
}

/** Reads the server's tools, and drafts the gateway's files. */
async function draftFiles(spec: UpstreamSpec, egress: EgressClient, { source, draft }: WantedFiles) {
  const tools = await readTools(spec, egress, PACKAGE_VERSION);
  const drafts = draftManifests(tools, spec.name);
  const manifests = join("manifests", `${spec.name}.yaml`);
  const files = {
    [manifests]: manifestText(drafts, source),
    "policy.yaml": policyText(packRules(tools)),
    [CONFIG]: configText(draft, { manifests: "manifests", policy: "policy.yaml" }),
  };
  // Check that the drafts load, regardless of the names of the upstream's tools.
  readManifests([{ file: manifests, text: files[manifests]! }]);
  loadPolicy(files["policy.yaml"]!, "policy.yaml");
  return { files, drafts };
}

/** A tool server that a command starts, and the directory of its gateway. */
export interface CommandServer {
  name: string;
  command: string;
  args: string[];
  env: Record<string, string>;
  cwd: string;
  folder: string;
}

/** Drafts the gateway of a server, unless its directory has one. Returns the path of its config file. */
export async function draftGateway({ settings }: CommandContext, server: CommandServer): Promise<string> {
  const { name, folder, ...start } = server;
  const config = join(folder, CONFIG);
  if (existsSync(config)) return config;
  const egress = createEgress(settings({}).egress, {});
  try {
    const spec = { ...baseOf(name, false), ...start };
    const source = [start.command, ...start.args].join(" ");
    const { files } = await draftFiles(spec, egress, { source, draft: { ...start, name, namespace: false } });
    await write(folder, files, false);
    return config;
  } finally {
    await egress.close();
  }
}

const baseOf = (name: string, namespace: boolean) => ({
  name,
  namespace,
  timeout_ms: SERVICE_LIMITS.upstream_timeout_ms,
  passthrough: [],
  isolation: "shared" as const,
  max_connections: 1,
  idle_ms: SERVICE_LIMITS.upstream_idle_ms,
});

function readTarget(flags: Record<string, unknown>): { spec: UpstreamSpec; draft: UpstreamDraft } {
  const from = (flags["from"] as string).trim();
  const url = /^https?:\/\//i.test(from) ? from : undefined;
  if (url !== undefined && !URL.canParse(url)) throw invalidError("--from: is not a valid URL");
  const words = url === undefined ? splitCommand(from, "--from") : [];
  const name =
    (flags["name"] as string | undefined) ?? suggestName({ ...(url === undefined ? {} : { url }), words });
  if (!/^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(name) || name === "svc") {
    throw invalidError('--name: letters, digits, "-" and "_" (at most 64), and not "svc"');
  }
  const namespace = flags["namespace"] === true;
  const base = baseOf(name, namespace);
  const env = pairs(flags["env"], "--env", "=");
  const headers = pairs(flags["header"], "--header", ":");
  if (url !== undefined) {
    return {
      spec: { ...base, url, headers, auth: null },
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
      if (at < 1) throw invalidError(`${what}: write name${separator}value`);
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
    throw conflictError(
      "file_exists",
      `files already exist: ${there.join(", ")}; write elsewhere with --dir, or replace them with --force`,
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

function report({ io }: CommandContext, folder: string, files: object, drafts: readonly ToolDraft[]): void {
  const shown = relative(io.cwd, folder) || ".";
  const tried = drafts.filter((draft) => draft.tried !== undefined);
  const undoable = drafts.filter(
    ({ compensation, tried }) => compensation !== null || tried?.entry.compensation !== undefined,
  ).length;
  const reads = drafts.filter(({ effect }) => effect === "read").length;
  for (const name of Object.keys(files)) io.out(`wrote ${escapeControls(join(shown, name))}`);
  io.out(
    `${drafts.length} tools: ${reads} read, ${undoable} with a proposed undo, ${drafts.length - reads - undoable} to review`,
  );
  if (tried.length > 0)
    io.out(
      `${tried.length} of them as tested with ${escapeControls(tried[0]!.tried!.by)}, ${drafts.length - tried.length} guessed`,
    );
  io.out("");
  io.out("Next:");
  const config = shown === "." ? "" : ` --config ${escapeControls(join(shown, "svc.config.yaml"))}`;
  io.out(`  1. svc connect claude-code${config}   (or claude-desktop, cursor, vscode, codex)`);
  io.out("     The client then starts the gateway itself. In observe mode nothing is blocked; svc runs and");
  io.out("     svc export show the calls, and those that would have been blocked.");
  io.out("  2. check the manifests, correct the guesses, and set lifecycle: approved");
  io.out("  3. set mode: enforce in svc.config.yaml, and restart the client");
}

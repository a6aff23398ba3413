/** Renders the files that `svc init` writes: draft manifests with all guesses marked, a policy and a config. */
import { stringify } from "yaml";
import { ProblemsError } from "../../kernel/errors.ts";
import { readManifests } from "../../rules/manifest/load.ts";
import type { DraftUndo, ToolDraft } from "./draft-manifest.ts";
import type { PackRule } from "./packs/pack.ts";

export interface UpstreamDraft {
  name: string;
  namespace: boolean;
  command?: string;
  args?: readonly string[];
  env?: Readonly<Record<string, string>>;
  /** Directory for the command, relative to the config file, independent of the caller's working directory. */
  cwd?: string;
  url?: string;
  /** Only names, because values would put secrets into a file. */
  headers?: readonly string[];
}

const PLAIN = /^[A-Za-z][A-Za-z0-9_./-]*$/;
const WORDS = /^(?:true|false|null|yes|no|on|off|y|n)$/i;

/** A YAML scalar: plain if that is safe, else double-quoted, for which JSON strings are valid. */
export function yamlScalar(text: string): string {
  return PLAIN.test(text) && !WORDS.test(text) ? text : JSON.stringify(text);
}

export function manifestText(drafts: readonly ToolDraft[], source: string): string {
  const head = [
    `# Draft manifests for the tools of ${oneLine(source)}, written by svc init.`,
    "# Entries with `tried` were tried against the server itself. Every line with `guess:` was guessed from the",
    "# tool's definition. Read them, correct the guesses, and change `lifecycle: draft` to `approved` (or delete the",
    "# line): in enforce mode a draft does not count.",
  ];
  return `${head.join("\n")}\n${drafts.map(declared).join("")}`;
}

/** The entry of a tool. A tool name that manifests do not allow becomes a comment, and the tool stays blocked. */
function declared(draft: ToolDraft): string {
  const text = entry(draft);
  try {
    readManifests([{ file: "draft", text }]);
    return text;
  } catch (error) {
    if (!(error instanceof ProblemsError)) throw error;
    return `\n# left out: ${oneLine(error.problems.map((problem) => problem.replace(/^draft:\d+: /, "")).join("; "))}\n`;
  }
}

function entry(draft: ToolDraft): string {
  if (draft.tried !== undefined) return triedEntry(draft, draft.tried);
  const lines = [
    "",
    `- tool: ${yamlScalar(draft.tool)}`,
    "  lifecycle: draft",
    `  effect: ${draft.effect}${" ".repeat(Math.max(1, 14 - draft.effect.length))}# guess: ${oneLine(draft.effect_why)}`,
    `  permission: ${yamlScalar(draft.permission)}`,
  ];
  if (draft.external)
    lines.push("  risk: {blast_radius: external}   # guess: it says it reaches the outside world");
  const { compensation, undo_without_arguments: maybe } = draft;
  if (maybe !== null) {
    lines.push(
      `  # guess: ${oneLine(maybe)} may undo it, but neither the call nor its declared result has what that`,
      "  # needs. If you know where it is, add a compensation and make the effect compensable.",
    );
  }
  if (compensation !== null) lines.push(...undoLines(compensation));
  return `${lines.join("\n")}\n`;
}

function undoLines({ tool, why, kind, args, confidence, before }: DraftUndo): string[] {
  const read =
    before === undefined
      ? []
      : ["  before:", `    tool: ${yamlScalar(before.tool)}`, ...argumentLines(before.args)];
  return [
    ...read,
    "  compensation:",
    `    tool: ${yamlScalar(tool)}   # guess: ${oneLine(why)} (confidence: ${confidence})`,
    ...(kind === "inverse" ? ["    kind: inverse"] : []),
    ...argumentLines(args),
  ];
}

function argumentLines(args: DraftUndo["args"]): string[] {
  const lines = args.map(
    ({ name, value, why }) =>
      `      ${yamlScalar(name)}: ${JSON.stringify(value)}   # guess: ${oneLine(why)}`,
  );
  return lines.length === 0 ? [] : ["    args:", ...lines];
}

function triedEntry(
  { tool, permission }: ToolDraft,
  { by, entry: { note, ...rest } }: NonNullable<ToolDraft["tried"]>,
) {
  const { effect, ...parts } = rest;
  const manifest = { tool, lifecycle: "draft", effect, permission, ...parts };
  const comments = [`tried with ${by}`, ...(note === undefined ? [] : [note])];
  const text = stringify([manifest], {
    lineWidth: 0,
    defaultStringType: "PLAIN",
    aliasDuplicateObjects: false,
  });
  return `\n${comments.map((line) => `# ${oneLine(line)}\n`).join("")}${text}`;
}

/** A rule of the pack as YAML. */
function ruleText({ id, tool, when, action, reason }: PackRule): string {
  const conditions = when.length === 0 ? "" : `    when: ${JSON.stringify(when)}\n`;
  return `  - id: ${id}\n    match: {tool: ${yamlScalar(tool)}}\n${conditions}    action: ${action}\n    reason: ${yamlScalar(reason)}\n`;
}

export function policyText(rules: readonly PackRule[] = []): string {
  return `# A starting point, written by svc init. Check it with: svc policy test policy.yaml
version: 1
content:
  secrets: deny         # credentials in arguments
  injection: warn       # instruction-like text in arguments
rules:
  - id: irreversible-needs-a-person
    match: {effect: irreversible}
    action: require_approval
    reason: what cannot be undone needs a person
${rules.map(ruleText).join("")}limits:
  - {id: runaway, match: {tool: "*"}, max: 500, per: run, window: 1h, action: deny}
tests:
  - name: a harmless call passes
    input: {tool: any.tool, args: {text: hello}}
    expect: allow
`;
}

export function configText(upstream: UpstreamDraft, files: { manifests: string; policy: string }): string {
  const lines = [
    "# A gateway in front of one tool server, written by svc init. A client starts it (svc connect), or you do:",
    "# svc gateway --config <this file>",
    `manifests: ${yamlScalar(files.manifests)}`,
    `policy: ${yamlScalar(files.policy)}`,
    "data: data",
    "",
    "# observe lets every call through and records what would have been blocked. Once the manifests are",
    "# approved, change it to enforce.",
    "mode: observe",
    "actor: gateway-agent",
    "# Tool names use only letters, digits, _ and -. Model providers reject others, and many clients pass them on unchanged.",
    "tool_names: underscores",
    "# Each tool gets an optional argument svc_reason for the agent's reason, which approvers read.",
    "ask_reason: true",
    "",
    "# Without listen the gateway is one session on stdin and stdout. To serve several agents over HTTP:",
    "# listen: {host: 127.0.0.1, port: 8787}",
    "# auth: {keys: keys.json}      # made with: svc keys add <name> --role agent --keys keys.json",
    "",
    "upstreams:",
    `  - name: ${yamlScalar(upstream.name)}`,
    ...where(upstream),
  ];
  if (upstream.namespace) lines.push("    namespace: true");
  return `${lines.join("\n")}\n`;
}

function where({ command, args = [], env = {}, cwd = ".", url, headers = [] }: UpstreamDraft): string[] {
  if (url !== undefined) {
    if (headers.length === 0) return [`    url: ${JSON.stringify(url)}`];
    const named = headers.map(
      (name) => `      ${yamlScalar(name)}: \${${variable(name)}}   # set it in the environment`,
    );
    return [`    url: ${JSON.stringify(url)}`, "    headers:", ...named];
  }
  const lines = [`    command: ${yamlScalar(command ?? "")}`];
  if (args.length > 0) lines.push(`    args: [${args.map((arg) => JSON.stringify(arg)).join(", ")}]`);
  lines.push(`    cwd: ${yamlScalar(cwd)}`);
  const names = Object.keys(env);
  if (names.length > 0)
    lines.push("    env:", ...names.map((name) => `      ${yamlScalar(name)}: \${${name}}`));
  return lines;
}

function variable(header: string): string {
  return `UPSTREAM_${header.toUpperCase().replace(/[^A-Z0-9]+/g, "_")}`;
}

/** Keeps text from an upstream inside its comment line. */
function oneLine(text: string): string {
  return text.replace(/[\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g, " ").slice(0, 300);
}

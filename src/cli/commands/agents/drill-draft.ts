/**
 * `svc drill --draft`: tries the undos that `svc init` guessed, on an upstream that a person names as disposable, and
 * writes into the manifests what held. The calls are real, and recorded as runs.
 */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeFileAtomic } from "../../../config/files.ts";
import { manifestFiles } from "../../../config/manifest-source.ts";
import { type TrialFinding, type TriedDraft, tryDrafts } from "../../../gateway/drafts/try-drafts.ts";
import { withVerdicts } from "../../../gateway/drafts/write-drafts.ts";
import { invalidError, ProblemsError, SvcError } from "../../../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../../../kernel/json/json.ts";
import { readManifests } from "../../../rules/manifest/load.ts";
import { parseYaml } from "../../../rules/yaml.ts";
import { type CommandContext, type CommandFlags, needsThisMachine } from "../../context.ts";
import { alignColumns, type CommandIo, escapeControls } from "../../io.ts";
import { withUpstreams } from "../../upstreams.ts";

type DraftFile = Awaited<ReturnType<typeof manifestFiles>>["files"][number];

export async function drillDrafts(
  context: CommandContext,
  tools: string[],
  flags: CommandFlags,
): Promise<void> {
  if (context.isRemote(flags)) throw invalidError(needsThisMachine("init"));
  const upstream = flags["disposable"] as string | undefined;
  if (upstream === undefined)
    throw invalidError(
      "--draft makes real calls: name the upstream that may be changed with --disposable <upstream>",
    );
  const settings = context.settings(flags);
  const names = settings.upstreams.map(({ name }) => name);
  if (!names.includes(upstream))
    throw invalidError(
      `--disposable: choose one of the configured upstreams (${names.join(", ") || "none"})`,
    );
  const { files, problems } = await manifestFiles(settings.manifests ?? "");
  if (problems.length > 0) throw new ProblemsError(problems);
  const drafts = chosenDrafts(files, tools);
  const tried = await withApproved(files, async (manifests) => {
    const asked = { io: context.io, settings: () => ({ ...settings, manifests }) };
    return withUpstreams(asked, flags, async (service, gateway) => {
      await Promise.all(gateway.upstreams.map((one) => one.settled()));
      const down = gateway.upstreams.find((one) => one.name === upstream && !one.ok);
      if (down !== undefined) throw new SvcError("unavailable", `upstream ${upstream}: ${down.problem}`);
      await gateway.refresh();
      const by = (flags["as"] as string | undefined) ?? "cli";
      return tryDrafts(service, gateway, { upstream, drafts, by });
    });
  });
  const written = await writeVerdicts(files, tried);
  report(context.io, flags, tried, written);
  if (tried.some(({ trial }) => trial.found === "failed")) context.done(1);
}

/** Drafted manifests with an undo, by tool. Throws if a named tool is not among them. */
function chosenDrafts(files: readonly DraftFile[], tools: readonly string[]): string[] {
  const able = readManifests(files)
    .all.filter(({ lifecycle, compensation }) => lifecycle === "draft" && compensation !== null)
    .map(({ tool }) => tool);
  for (const tool of tools)
    if (!able.includes(tool)) throw invalidError(`tools: ${tool} has no drafted undo`);
  return tools.length === 0 ? able : able.filter((tool) => tools.includes(tool));
}

/** Passes a copy of the manifests in which every draft is approved, because a draft does not count in a run. */
async function withApproved<T>(
  files: readonly DraftFile[],
  work: (folder: string) => Promise<T>,
): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "svc-draft-"));
  try {
    for (const [i, { file, text }] of files.entries())
      writeFileSync(join(folder, `${i}.yaml`), JSON.stringify(approved(parseYaml(text, file).value)));
    return await work(folder);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

function approved(entries: JsonValue): JsonValue {
  const approve = (entry: JsonValue): JsonValue => {
    if (!isJsonObject(entry) || entry["lifecycle"] !== "draft") return entry;
    const { lifecycle: _, ...rest } = entry;
    return rest as JsonObject;
  };
  return Array.isArray(entries) ? entries.map(approve) : approve(entries);
}

/** Replaces the files of the tested tools, if the result still loads. Returns their paths. */
async function writeVerdicts(files: readonly DraftFile[], tried: readonly TriedDraft[]): Promise<string[]> {
  const verdicts = tried.flatMap(({ verdict }) => verdict ?? []);
  const changed = files.flatMap(({ file, text }) => {
    const next = withVerdicts(text, verdicts);
    return next === null ? [] : [{ file, text: next }];
  });
  readManifests(files.map((one) => changed.find(({ file }) => file === one.file) ?? one));
  for (const { file, text } of changed) await writeFileAtomic(file, text, 0o644);
  return changed.map(({ file }) => file);
}

const SHOWN: Record<TrialFinding, string> = {
  held: "undone",
  failed: "not undone",
  "not shown": "not shown",
  "not tried": "not tried",
};

function report(
  io: CommandIo,
  flags: CommandFlags,
  tried: readonly TriedDraft[],
  written: readonly string[],
): void {
  if (flags["json"]) {
    const drafts = tried.map(({ tool, trial }) => ({ tool, ...trial }));
    io.out(JSON.stringify({ drafts, written }, null, 2));
    return;
  }
  if (tried.length === 0) io.err("no tool of this upstream has a drafted undo");
  const { green, red } = io.color;
  const rows = tried.map(({ tool, trial: { found, problem } }) => [
    escapeControls(tool),
    found === "held" ? green(SHOWN[found]) : found === "failed" ? red(SHOWN[found]) : SHOWN[found],
    escapeControls(problem ?? ""),
  ]);
  for (const line of alignColumns(rows)) io.out(line);
  for (const file of written) io.out(`wrote ${escapeControls(file)}`);
}

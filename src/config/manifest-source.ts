/**
 * Loads manifests from a file, a directory, or a URL behind the egress guard. For a URL it stores the last good copy,
 * so that a restart does not depend on another server.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { EgressClient } from "../egress/egress.ts";
import { messageOf, ProblemsError, SvcError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { ManifestFile } from "../rules/manifest/entry.ts";
import {
  checkManifests,
  errorsByEntry,
  type LoadedManifests,
  loadedManifests,
  readManifests,
  toManifestReading,
} from "../rules/manifest/load.ts";
import { decodeText, fileProblem, readTextFile, unreadableReason, writeFileAtomic } from "./files.ts";
import { maskUrl } from "./mask.ts";
import { isRemote } from "./setting-row.ts";

const MAX_REMOTE_BYTES = 16 * 1_048_576;
const YAML_NAME = /\.ya?ml$/;

interface ManifestSource {
  /** File, directory or http(s) URL, or null for a service without manifests. */
  readonly path: string | null;
  /** Required for a URL. */
  readonly egress?: Pick<EgressClient, "request"> | undefined;
  /** Data directory, which holds the last good copy of remote manifests. */
  readonly data?: string | null | undefined;
  /** Parses manifest files. The default runs in this thread. */
  readonly read?: ((files: readonly ManifestFile[]) => Promise<LoadedManifests>) | undefined;
  readonly warn?: ((message: string, fields?: Record<string, unknown>) => void) | undefined;
}

/** Returns the manifests, or throws a ProblemsError with all problems. */
export async function loadManifests(source: ManifestSource): Promise<LoadedManifests> {
  const { path, read = readAtOnce } = source;
  if (path === null) return readManifests([]);
  if (isRemote(path)) return loadRemote(path, source, read);
  const { files, problems } = await manifestFiles(path);
  if (problems.length > 0) throw new ProblemsError([...problems, ...(await problemsIn(files, read))]);
  const set = await read(files);
  if (files.length > 0) return set;
  return { ...set, warnings: [`${path}: contains no .yaml file, so no tool is registered`] };
}

type Read = NonNullable<ManifestSource["read"]>;

const readAtOnce: Read = async (files) => readManifests(files);

interface Validation {
  /** The loaded manifests, or null if there are errors. */
  readonly manifests: LoadedManifests | null;
  /** Number of entries, including invalid ones. */
  readonly count: number;
  /** One line for each invalid entry or unreadable file. */
  readonly errors: string[];
}

/** Validates manifests for `svc validate`. Returns problems instead of throwing them. */
export async function validateManifests(
  path: string,
  egress?: Pick<EgressClient, "request">,
): Promise<Validation> {
  let found: { files: ManifestFile[]; problems: string[] };
  try {
    found = isRemote(path)
      ? { files: [await fetchManifests(path, egress)], problems: [] }
      : await manifestFiles(path);
  } catch (error) {
    found = { files: [], problems: [messageOf(error)] };
  }
  const entries = checkManifests(found.files);
  const errors = [...found.problems, ...errorsByEntry(entries)];
  const manifests = errors.length === 0 ? loadedManifests(toManifestReading(entries)) : null;
  return { manifests, count: entries.filter(({ label }) => label !== null).length, errors };
}

/** Returns the YAML files at the path in a fixed order, and a problem for each unreadable one. */
export async function manifestFiles(path: string): Promise<{ files: ManifestFile[]; problems: string[] }> {
  const files: ManifestFile[] = [];
  const problems: string[] = [];
  let paths = [path];
  const found = await look(path);
  if (typeof found === "string") return { files, problems: [`${path}: ${found}`] };
  if (found.isDirectory()) paths = await yamlFilesUnder(path, problems);
  for (const file of paths) {
    try {
      files.push({ file, text: await readTextFile(file) });
    } catch (error) {
      problems.push(messageOf(error));
    }
  }
  return { files, problems };
}

/**
 * Lists every `.yaml` and `.yml` file below the directory, sorted, each once. Skips names that begin with a dot, since
 * a mounted Kubernetes volume keeps second copies there. Follows links, but not in circles.
 */
async function yamlFilesUnder(root: string, problems: string[]): Promise<string[]> {
  const paths: string[] = [];
  const seen = new Set<string>();
  const waiting = [root];
  for (let folder = waiting.pop(); folder !== undefined; folder = waiting.pop()) {
    if (await alreadySeen(folder, seen)) continue;
    let names: string[];
    try {
      names = await readdir(folder);
    } catch (error) {
      problems.push(`${folder}: ${fileProblem(error)}`);
      continue;
    }
    for (const name of names) {
      if (name.startsWith(".")) continue;
      const at = join(folder, name);
      const entry = await look(at);
      if (typeof entry !== "string" && entry.isDirectory()) waiting.push(at);
      else if (!YAML_NAME.test(name)) continue;
      else if (typeof entry === "string") problems.push(`${at}: ${entry}`);
      else if (unreadableReason(entry) !== undefined) problems.push(`${at}: ${unreadableReason(entry)}`);
      else paths.push(at);
    }
  }
  paths.sort();
  const once: string[] = [];
  for (const path of paths) if (!(await alreadySeen(path, seen))) once.push(path);
  return once;
}

async function alreadySeen(path: string, seen: Set<string>): Promise<boolean> {
  const real = await realpath(path).catch(() => path);
  const before = seen.has(real);
  seen.add(real);
  return before;
}

async function look(path: string) {
  try {
    return await stat(path);
  } catch (error) {
    return fileProblem(error);
  }
}

async function problemsIn(files: readonly ManifestFile[], read: Read): Promise<readonly string[]> {
  try {
    await read(files);
    return [];
  } catch (error) {
    if (error instanceof ProblemsError) return error.problems;
    throw error;
  }
}

/**
 * Fetches remote manifests. Falls back to the stored copy if the server is unreachable, not if its response is invalid.
 */
async function loadRemote(url: string, source: ManifestSource, read: Read): Promise<LoadedManifests> {
  const copy =
    source.data == null ? null : join(source.data, "remote-manifests", `${sha256Hex(url).slice(0, 32)}.yaml`);
  let fetched: ManifestFile;
  try {
    fetched = await fetchManifests(url, source.egress);
  } catch (error) {
    const kept = copy === null ? undefined : await readTextFile(copy).catch(() => undefined);
    if (kept === undefined) throw error;
    source.warn?.("remote manifests are unreachable; using the last good copy", {
      problem: messageOf(error),
    });
    return read([{ file: maskUrl(url), text: kept }]);
  }
  const set = await read([fetched]);
  if (copy !== null) {
    await writeFileAtomic(copy, fetched.text).catch((error: unknown) => {
      source.warn?.("the copy of the remote manifests could not be stored", { problem: messageOf(error) });
    });
  }
  return set;
}

async function fetchManifests(
  url: string,
  egress: Pick<EgressClient, "request"> | undefined,
): Promise<ManifestFile> {
  const file = maskUrl(url);
  if (egress === undefined)
    throw new SvcError(
      "invalid",
      `${file}: remote manifests cannot be fetched here; pass a file or a directory`,
    );
  const { status, body } = await egress.request(url, {
    headers: { accept: "application/yaml, text/yaml, text/plain, */*" },
    max_bytes: MAX_REMOTE_BYTES,
  });
  if (status !== 200) throw new SvcError("delivery_failed", `${file}: the server answered ${status}`);
  return { file, text: decodeText(file, body) };
}

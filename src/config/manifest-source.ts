/**
 * Where manifests come from: a file, a folder of them, or a URL behind the egress guard. Of a remote set
 * the last good copy is kept, so that a restart does not depend on another server.
 */
import { readdir, realpath, stat } from "node:fs/promises";
import { join } from "node:path";
import type { Egress } from "../egress/egress.ts";
import { messageOf, ProblemsError, SvcError } from "../kernel/errors.ts";
import { sha256Hex } from "../kernel/hash.ts";
import type { ManifestFile } from "../model/manifest/entry.ts";
import {
  checkManifests,
  errorsByEntry,
  type LoadedManifests,
  loadedManifests,
  readingOf,
  readManifests,
} from "../model/manifest/load.ts";
import { decodeText, fileProblem, readTextFile, unreadable, writeFileAtomic } from "./files.ts";
import { maskUrl } from "./mask.ts";
import { isRemote } from "./row.ts";

const MAX_REMOTE_BYTES = 16 * 1_048_576;
const YAML_NAME = /\.ya?ml$/;

interface ManifestSource {
  /** A file, a folder or an http(s) URL; null for a service without manifests. */
  readonly path: string | null;
  /** Needed for a URL. */
  readonly egress?: Pick<Egress, "request"> | undefined;
  /** The data folder, where the last good copy of a remote set is kept. */
  readonly data?: string | null | undefined;
  /** How texts become manifests; at once, unless told otherwise. */
  readonly read?: ((files: readonly ManifestFile[]) => Promise<LoadedManifests>) | undefined;
  readonly warn?: ((message: string, fields?: Record<string, unknown>) => void) | undefined;
}

/** The manifests in force, or a ProblemsError with every problem. */
export async function loadManifests(source: ManifestSource): Promise<LoadedManifests> {
  const { path, read = readAtOnce } = source;
  if (path === null) return readManifests([]);
  if (isRemote(path)) return loadRemote(path, source, read);
  const { files, problems } = await manifestFiles(path);
  if (problems.length > 0) throw new ProblemsError([...problems, ...(await problemsIn(files, read))]);
  const set = await read(files);
  if (files.length > 0) return set;
  return { ...set, warnings: [`${path}: holds no .yaml file, so no tool is registered`] };
}

type Read = NonNullable<ManifestSource["read"]>;

const readAtOnce: Read = async (files) => readManifests(files);

interface Validation {
  /** What the path holds; null where something is wrong with it. */
  readonly manifests: LoadedManifests | null;
  /** How many entries were found, the invalid ones included. */
  readonly count: number;
  /** One line for each invalid entry or unreadable file. */
  readonly errors: string[];
}

/** What `svc validate` tells: never throws for what is wrong with the manifests. */
export async function validateManifests(path: string, egress?: Pick<Egress, "request">): Promise<Validation> {
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
  const manifests = errors.length === 0 ? loadedManifests(readingOf(entries)) : null;
  return { manifests, count: entries.filter(({ label }) => label !== null).length, errors };
}

/** The YAML files at the path in a fixed order, and one problem for each that cannot be read. */
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
 * Every `.yaml` and `.yml` under the folder, sorted, each file once. Names that begin with a dot are left
 * out: a mounted Kubernetes volume keeps second copies there. Links are followed, circles are not.
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
      else if (unreadable(entry) !== undefined) problems.push(`${at}: ${unreadable(entry)}`);
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

/** An unreachable server falls back on the copy; a reachable one that serves nonsense is an error. */
async function loadRemote(url: string, source: ManifestSource, read: Read): Promise<LoadedManifests> {
  const copy =
    source.data == null ? null : join(source.data, "remote-manifests", `${sha256Hex(url).slice(0, 32)}.yaml`);
  let fetched: ManifestFile;
  try {
    fetched = await fetchManifests(url, source.egress);
  } catch (error) {
    const kept = copy === null ? undefined : await readTextFile(copy).catch(() => undefined);
    if (kept === undefined) throw error;
    source.warn?.("remote manifests are out of reach; the last good copy is in force", {
      problem: messageOf(error),
    });
    return read([{ file: maskUrl(url), text: kept }]);
  }
  const set = await read([fetched]);
  if (copy !== null) {
    await writeFileAtomic(copy, fetched.text).catch((error: unknown) => {
      source.warn?.("the copy of the remote manifests could not be kept", { problem: messageOf(error) });
    });
  }
  return set;
}

async function fetchManifests(
  url: string,
  egress: Pick<Egress, "request"> | undefined,
): Promise<ManifestFile> {
  const file = maskUrl(url);
  if (egress === undefined)
    throw new SvcError(
      "invalid",
      `${file}: remote manifests cannot be fetched here; give a file or a folder`,
    );
  const { status, body } = await egress.request(url, {
    headers: { accept: "application/yaml, text/yaml, text/plain, */*" },
    max_bytes: MAX_REMOTE_BYTES,
  });
  if (status !== 200) throw new SvcError("delivery_failed", `${file}: the server answered ${status}`);
  return { file, text: decodeText(file, body) };
}

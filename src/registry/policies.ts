/**
 * The policy registry: numbered versions in a folder, one of them active. The file `active` lists the
 * versions in the order of their activation; the last one is in force.
 */
import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { withEditLock } from "../auth/edit-lock.ts";
import { writeFileAtomic } from "../config/files.ts";
import type { Env } from "../kernel/env.ts";
import { conflict, forbidden, invalid, notFound } from "../kernel/errors.ts";
import type { PolicyTestResult } from "../model/policy/tests.ts";
import { type KeptPrincipal, keptOf, type Principal } from "../model/roles.ts";
import { digestOf, metaText, readRegistryFile, writeRegistryFile } from "./file.ts";
import { ACTIVE_FILE, readActive } from "./rules.ts";

export interface PolicyEntry {
  version: string;
  status: "draft" | "active" | "retired";
  hash: string;
  created_by: string | null;
  note: string | null;
}

const VERSION_FILE = /^([1-9]\d{0,8})\.yaml$/;

/** How policies are read, wherever that is done. Each refuses with an error that says what is wrong. */
interface PolicyReader {
  check(yaml: string): Promise<{ hash: string; passed: number; failed: number; tests: PolicyTestResult[] }>;
  hash(yaml: string, what: string): Promise<string>;
  /** Refuses where a claim of the policy has a counterexample. */
  prove(yaml: string, what: string): Promise<void>;
  /** Whether the policy may let something pass that the one before it did not; null stands for the one in force. */
  isLooser(before: string | null, yaml: string): Promise<boolean>;
}

/** How an activation is judged. */
interface Activating {
  four_eyes: boolean;
  /** What is looser needs a second admin. */
  second_admin: boolean;
  /** Whether whoever activates sits at the data, and has no role that could be taken away. */
  at_the_data: boolean;
  /** Whether who activated before could still do so. */
  stillMay(giver: KeptPrincipal): boolean;
}

/** Nothing has changed yet: the activation waits for a second person to want it, too. */
interface WaitingEntry extends PolicyEntry {
  waiting_for: "another admin";
}

/** What came of an activation; `first` is the admin who had activated the same before, where two were needed. */
interface Activated {
  entry: PolicyEntry | WaitingEntry;
  first: string | null;
}

interface Change {
  version: string;
  digest: string;
  before: string | null;
}

/** The activation that waits, and whose it was. */
const WAITING_FILE = "waiting.json";
interface Waiting {
  change: Change;
  by: string;
  /** Null for whoever sat at the data; one that is not known counts for nothing. */
  giver?: KeptPrincipal | null;
}
const MOST_NAMED = 50;

export class PolicyRegistry {
  private readonly folder: string;
  private readonly env: Env;
  private readonly reader: PolicyReader;

  constructor(folder: string, env: Env, reader: PolicyReader) {
    this.folder = folder;
    this.env = env;
    this.reader = reader;
  }

  async list(): Promise<PolicyEntry[]> {
    const activated = await readActive(this.folder);
    const entries: PolicyEntry[] = [];
    for (const version of await this.versions()) entries.push(await this.entry(version, activated));
    return entries;
  }

  /** What a version says, as it was published. */
  async text(version: string): Promise<string> {
    if (!(await this.versions()).includes(version))
      throw notFound(`there is no policy version ${version}`, "unknown_version");
    return (await readRegistryFile(this.pathOf(version))).yaml;
  }

  async publish(yaml: string, note: string | null, by: Principal) {
    const { hash, passed, failed, tests } = await this.reader.check(yaml);
    if (failed > 0) {
      const failing = tests.filter(({ ok }) => !ok).slice(0, MOST_NAMED);
      const told = failing.map(({ name, expected, got }) => `${name}: expected ${expected}, got ${got}`);
      if (failed > told.length) told.push(`and ${failed - told.length} more`);
      throw invalid(`${failed} of the policy's own tests fail: ${told.join("; ")}`);
    }
    return this.locked(async () => {
      const version = String(Math.max(0, ...(await this.versions()).map(Number)) + 1);
      const created = { created_by: by.name, created_ms: this.env.now() };
      // The hash and what it was made of, so that a listing need not read the whole of every version.
      const meta = { ...created, note, hash, digest: digestOf(yaml) };
      await writeRegistryFile(this.pathOf(version), { meta, yaml });
      return { version, tests: { passed, failed: 0 } };
    });
  }

  /** Proving and comparing take long, so they come first; what they were about is held to under the lock. */
  async activate(version: string, by: Principal, how: Activating): Promise<Activated> {
    const before = await this.judged(version, by, how);
    const { yaml } = await readRegistryFile(this.pathOf(version));
    await this.reader.hash(yaml, `policy version ${version}`);
    await this.reader.prove(yaml, `policy version ${version}`);
    const base = before === undefined ? null : (await readRegistryFile(this.pathOf(before))).yaml;
    const looser = how.second_admin && (await this.reader.isLooser(base, yaml));
    return this.locked(async () => {
      const again = await readRegistryFile(this.pathOf(version));
      const activated = await readActive(this.folder);
      if (digestOf(again.yaml) !== digestOf(yaml) || activated.at(-1) !== before)
        throw conflict(
          "registry_changed",
          "the registry was changed meanwhile; look at it and activate again",
        );
      const change = { version, digest: digestOf(yaml), before: before ?? null };
      const first = looser ? await this.firstOf(change, by, how) : null;
      if (looser && first === null) {
        const entry = await this.entry(version, activated);
        return { entry: { ...entry, waiting_for: "another admin" as const }, first };
      }
      await rm(join(this.folder, WAITING_FILE), { force: true });
      const now = [...activated, version];
      await writeFileAtomic(join(this.folder, ACTIVE_FILE), `${now.join("\n")}\n`, 0o644);
      return { entry: await this.entry(version, now), first };
    });
  }

  /** The version in force before, once nothing else stands against activating this one. */
  private async judged(
    version: string,
    by: Principal,
    { four_eyes }: Activating,
  ): Promise<string | undefined> {
    if (!(await this.versions()).includes(version))
      throw notFound(`there is no policy version ${version}`, "unknown_version");
    const { meta } = await readRegistryFile(this.pathOf(version));
    if (four_eyes && metaText(meta, "created_by") === by.name)
      throw forbidden("you cannot decide your own request", "own_request");
    const before = (await readActive(this.folder)).at(-1);
    if (before === version) throw conflict("policy_active", `policy version ${version} is active already`);
    return before;
  }

  /**
   * The other admin who activated the very same change before, and still may; otherwise this one is remembered as the
   * first.
   */
  private async firstOf(change: Change, by: Principal, how: Activating): Promise<string | null> {
    const file = join(this.folder, WAITING_FILE);
    const known: Waiting | null = await readFile(file, "utf8").then(JSON.parse, () => null);
    const same = known !== null && JSON.stringify(known.change) === JSON.stringify(change);
    if (same && (known.giver === null || (known.giver !== undefined && how.stillMay(known.giver))))
      return known.by === by.name ? null : known.by;
    const waiting: Waiting = { change, by: by.name, giver: how.at_the_data ? null : keptOf(by) };
    await writeFileAtomic(file, `${JSON.stringify(waiting)}\n`, 0o644);
    return null;
  }

  private async entry(version: string, activated: readonly string[]): Promise<PolicyEntry> {
    const { meta, yaml } = await readRegistryFile(this.pathOf(version));
    const status =
      activated.at(-1) === version ? "active" : activated.includes(version) ? "retired" : "draft";
    const known = meta["digest"] === digestOf(yaml) ? metaText(meta, "hash") : null;
    const hash = known ?? (await this.reader.hash(yaml, `policy version ${version}`));
    return { version, status, hash, created_by: metaText(meta, "created_by"), note: metaText(meta, "note") };
  }

  private async versions(): Promise<string[]> {
    const names = await readdir(this.folder).catch(() => [] as string[]);
    const found = names.flatMap((name) => VERSION_FILE.exec(name)?.[1] ?? []);
    return found.sort((a, b) => Number(a) - Number(b));
  }

  private pathOf(version: string): string {
    return join(this.folder, `${version}.yaml`);
  }

  private async locked<T>(work: () => Promise<T>): Promise<T> {
    await mkdir(this.folder, { recursive: true });
    return withEditLock(join(this.folder, "registry"), this.env, work);
  }
}

/**
 * The policy registry: numbered versions in a directory, one of them active. The file `active` lists versions in order
 * of activation; the last one is active.
 */

import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import * as z from "zod";
import { withEditLock } from "../auth/edit-lock.ts";
import { writeFileAtomic } from "../config/files.ts";
import { type CallerPrincipal, type StoredPrincipal, toStoredPrincipal } from "../govern/roles.ts";
import type { RuntimeEnv } from "../kernel/env.ts";
import { conflictError, forbiddenError, invalidError, notFoundError } from "../kernel/errors.ts";
import { nullableSchema } from "../rules/nullable-schema.ts";
import type { PolicyTestResult } from "../rules/policy/tests/tests.ts";
import { ACTIVE_FILE, readActive } from "./active-rules.ts";
import { metaText, readRegistryFile, writeRegistryFile, yamlDigest } from "./registry-file.ts";

export const policyShape = z.strictObject({
  version: z.string(),
  status: z.enum(["draft", "active", "retired"]),
  hash: z.string(),
  created_by: nullableSchema(z.string()),
  note: nullableSchema(z.string()),
});

export type PolicyEntry = z.output<typeof policyShape>;

const VERSION_FILE = /^([1-9]\d{0,8})\.yaml$/;

/** Validation of policy texts. Each method rejects with an error that explains the problem. */
interface PolicyReader {
  check(yaml: string): Promise<{ hash: string; passed: number; failed: number; tests: PolicyTestResult[] }>;
  hash(yaml: string, what: string): Promise<string>;
  /** Rejects if a claim of the policy has a counterexample. */
  prove(yaml: string, what: string): Promise<void>;
  /** Whether the policy may allow something that `before` did not. Null means the active policy. */
  isLooser(before: string | null, yaml: string): Promise<boolean>;
}

/** The checks for an activation. */
interface Activating {
  four_eyes: boolean;
  /** A looser policy requires a second admin. */
  second_admin: boolean;
  /** Whether the admin works directly on the data and so has no role that could be revoked. */
  at_the_data: boolean;
  /** Whether the first admin is still allowed to activate. */
  stillMay(giver: StoredPrincipal): boolean;
}

/** A pending activation: nothing has changed yet, because a second admin must activate the same version. */
interface WaitingEntry extends PolicyEntry {
  waiting_for: "another admin";
}

/** The result of an activation. `first` is the admin who activated the same version before, if two were required. */
interface Activated {
  entry: PolicyEntry | WaitingEntry;
  first: string | null;
}

interface Change {
  version: string;
  digest: string;
  before: string | null;
}

/** The file with the pending activation and its admin. */
const WAITING_FILE = "waiting.json";
interface Waiting {
  change: Change;
  by: string;
  /** Null for an admin who worked directly on the data. An entry without this field does not count. */
  giver?: StoredPrincipal | null;
}
const MAX_NAMED_TESTS = 50;

export class PolicyRegistry {
  private readonly folder: string;
  private readonly env: RuntimeEnv;
  private readonly reader: PolicyReader;

  constructor(folder: string, env: RuntimeEnv, reader: PolicyReader) {
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

  /** Returns the text of a version as published. */
  async text(version: string): Promise<string> {
    if (!(await this.versions()).includes(version))
      throw notFoundError(`there is no policy version ${version}`, "unknown_version");
    return (await readRegistryFile(this.pathOf(version))).yaml;
  }

  async publish(yaml: string, note: string | null, by: CallerPrincipal) {
    const { hash, passed, failed, tests } = await this.reader.check(yaml);
    if (failed > 0) {
      const failing = tests.filter(({ ok }) => !ok).slice(0, MAX_NAMED_TESTS);
      const failures = failing.map(({ name, expected, got }) => `${name}: expected ${expected}, got ${got}`);
      if (failed > failures.length) failures.push(`and ${failed - failures.length} more`);
      throw invalidError(`${failed} of the policy's own tests fail: ${failures.join("; ")}`);
    }
    return this.locked(async () => {
      const version = String(Math.max(0, ...(await this.versions()).map(Number)) + 1);
      const created = { created_by: by.name, created_ms: this.env.now() };
      // The hash and the digest of its input, so that a listing need not parse every version.
      const meta = { ...created, note, hash, digest: yamlDigest(yaml) };
      await writeRegistryFile(this.pathOf(version), { meta, yaml });
      return { version, tests: { passed, failed: 0 } };
    });
  }

  /**
   * Activates a version. The proof and the comparison are slow, so they run before the lock; under the lock, their
   * inputs must be unchanged.
   */
  async activate(version: string, by: CallerPrincipal, how: Activating): Promise<Activated> {
    const before = await this.judged(version, by, how);
    const { yaml } = await readRegistryFile(this.pathOf(version));
    await this.reader.hash(yaml, `policy version ${version}`);
    await this.reader.prove(yaml, `policy version ${version}`);
    const base = before === undefined ? null : (await readRegistryFile(this.pathOf(before))).yaml;
    const looser = how.second_admin && (await this.reader.isLooser(base, yaml));
    return this.locked(async () => {
      const again = await readRegistryFile(this.pathOf(version));
      const activated = await readActive(this.folder);
      if (yamlDigest(again.yaml) !== yamlDigest(yaml) || activated.at(-1) !== before)
        throw conflictError(
          "registry_changed",
          "the registry has changed in the meantime; check it and activate again",
        );
      const change = { version, digest: yamlDigest(yaml), before: before ?? null };
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

  /** Returns the active version after all other checks of the activation have passed. */
  private async judged(
    version: string,
    by: CallerPrincipal,
    { four_eyes }: Activating,
  ): Promise<string | undefined> {
    if (!(await this.versions()).includes(version))
      throw notFoundError(`there is no policy version ${version}`, "unknown_version");
    const { meta } = await readRegistryFile(this.pathOf(version));
    if (four_eyes && metaText(meta, "created_by") === by.name)
      throw forbiddenError("you cannot decide your own request", "own_request");
    const before = (await readActive(this.folder)).at(-1);
    if (before === version)
      throw conflictError("policy_active", `policy version ${version} is active already`);
    return before;
  }

  /**
   * Returns the other admin who activated the same change before and is still allowed to. Otherwise records this admin
   * as the first.
   */
  private async firstOf(change: Change, by: CallerPrincipal, how: Activating): Promise<string | null> {
    const file = join(this.folder, WAITING_FILE);
    const known: Waiting | null = await readFile(file, "utf8").then(JSON.parse, () => null);
    const same = known !== null && JSON.stringify(known.change) === JSON.stringify(change);
    if (same && (known.giver === null || (known.giver !== undefined && how.stillMay(known.giver))))
      return known.by === by.name ? null : known.by;
    const waiting: Waiting = { change, by: by.name, giver: how.at_the_data ? null : toStoredPrincipal(by) };
    await writeFileAtomic(file, `${JSON.stringify(waiting)}\n`, 0o644);
    return null;
  }

  private async entry(version: string, activated: readonly string[]): Promise<PolicyEntry> {
    const { meta, yaml } = await readRegistryFile(this.pathOf(version));
    const status =
      activated.at(-1) === version ? "active" : activated.includes(version) ? "retired" : "draft";
    const known = meta["digest"] === yamlDigest(yaml) ? metaText(meta, "hash") : null;
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

/**
 * The policy registry: numbered versions in a folder, one of them active. The file `active` lists the
 * versions in the order of their activation; the last one is in force.
 */
import { mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { withEditLock } from "../auth/edit-lock.ts";
import { writeFileAtomic } from "../config/files.ts";
import type { Env } from "../kernel/env.ts";
import { conflict, forbidden, invalid, notFound, ProblemsError } from "../kernel/errors.ts";
import { compilePolicy, type Policy } from "../model/policy/compile.ts";
import { loadPolicy } from "../model/policy/load.ts";
import { runPolicyTests, type ToolLabels } from "../model/policy/tests.ts";
import type { Principal } from "../model/roles.ts";
import { readRegistryFile, textOf, writeRegistryFile } from "./file.ts";
import { ACTIVE_FILE, readActive } from "./rules.ts";

export interface PolicyEntry {
  version: string;
  status: "draft" | "active" | "retired";
  hash: string;
  created_by: string | null;
  note: string | null;
}

const VERSION_FILE = /^([1-9]\d{0,8})\.yaml$/;

export class PolicyRegistry {
  private readonly folder: string;
  private readonly env: Env;

  constructor(folder: string, env: Env) {
    this.folder = folder;
    this.env = env;
  }

  async list(): Promise<PolicyEntry[]> {
    const activated = await readActive(this.folder);
    return Promise.all((await this.versions()).map((version) => this.entry(version, activated)));
  }

  async publish(
    yaml: string,
    note: string | null,
    by: Principal,
    labels: (tool: string) => ToolLabels | null,
  ) {
    const results = runPolicyTests(compiled(yaml, "policy"), labels);
    const failing = results.filter((result) => !result.ok);
    if (failing.length > 0) {
      const told = failing.map(({ name, expected, got }) => `${name}: expected ${expected}, got ${got}`);
      throw invalid(`${failing.length} of the policy's own tests fail: ${told.join("; ")}`);
    }
    return this.locked(async () => {
      const version = String(Math.max(0, ...(await this.versions()).map(Number)) + 1);
      const meta = { created_by: by.name, created_ms: this.env.now(), note };
      await writeRegistryFile(this.pathOf(version), { meta, yaml });
      return { version, tests: { passed: results.length, failed: 0 } };
    });
  }

  async activate(version: string, by: Principal, four_eyes: boolean): Promise<PolicyEntry> {
    return this.locked(async () => {
      if (!(await this.versions()).includes(version)) throw notFound(`there is no policy version ${version}`);
      const { meta, yaml } = await readRegistryFile(this.pathOf(version));
      if (four_eyes && textOf(meta, "created_by") === by.name)
        throw forbidden("you cannot decide your own request");
      compiled(yaml, `policy version ${version}`);
      const activated = await readActive(this.folder);
      if (activated.at(-1) === version) throw conflict(`policy version ${version} is active already`);
      const now = [...activated, version];
      await writeFileAtomic(join(this.folder, ACTIVE_FILE), `${now.join("\n")}\n`, 0o644);
      return this.entry(version, now);
    });
  }

  private async entry(version: string, activated: readonly string[]): Promise<PolicyEntry> {
    const { meta, yaml } = await readRegistryFile(this.pathOf(version));
    const status =
      activated.at(-1) === version ? "active" : activated.includes(version) ? "retired" : "draft";
    const { hash } = compiled(yaml, `policy version ${version}`);
    return { version, status, hash, created_by: textOf(meta, "created_by"), note: textOf(meta, "note") };
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

function compiled(yaml: string, what: string): Policy {
  try {
    return compilePolicy(loadPolicy(yaml, what));
  } catch (error) {
    if (error instanceof ProblemsError) throw invalid(error.problems.join("; "));
    throw error;
  }
}

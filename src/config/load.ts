/**
 * Puts the settings together: an option of the command line, else the environment, else the config file,
 * else the default. All of them are checked, also those that a stronger one hides, and every problem is
 * told at once; a value that is a secret is never part of a problem.
 */
import type { z } from "zod";
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import type { Json } from "../kernel/json.ts";
import { type Problem, schemaProblems, showPath } from "../model/problems.ts";
import { type ConfigFile, readConfigFile } from "./config-file.ts";
import { settingsRules } from "./cross-check.ts";
import type { Variables } from "./expand.ts";
import { isSecretName } from "./mask.ts";
import { isDuration, type SettingRow } from "./row.ts";
import { type Origin, type Settings, settingRows } from "./settings.ts";

export interface LoadOptions {
  /** Options of the command line by their name, `compensator-cmd` or `compensatorCmd`; others are ignored. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env: Variables;
  readonly cwd: string;
  /** Stricter schemas for keys whose details a feature owns, such as `notifications.channels`. */
  readonly schemas?: Readonly<Record<string, z.ZodType>>;
}

type Reading = { value: unknown; problems: Problem[] };

export function loadSettings(options: LoadOptions): Settings {
  const { env, cwd } = options;
  const flags = options.flags ?? {};
  const file = readConfigFile(textOf(flags["config"]) ?? textOf(env["SVC_CONFIG"]), cwd, env);
  const loader = new Loader(options, flags, file);
  for (const { key, path, row } of settingRows()) loader.load(key, path, row);
  return loader.finish();
}

class Loader {
  private readonly options: LoadOptions;
  private readonly flags: Readonly<Record<string, unknown>>;
  private readonly file: ConfigFile | undefined;
  private readonly origins = new Map<string, Origin>();
  private readonly values: Record<string, unknown> = {};
  private readonly fileProblems: Problem[];
  private readonly problems: string[] = [];

  constructor(options: LoadOptions, flags: Readonly<Record<string, unknown>>, file: ConfigFile | undefined) {
    this.options = options;
    this.flags = flags;
    this.file = file;
    this.fileProblems = [...(file?.problems ?? [])];
  }

  load(key: string, path: readonly string[], row: SettingRow): void {
    const found = [this.fromFlag(row), this.fromEnv(row), this.fromFile(key, row)];
    const fallback = { value: row.default, origin: { from: "default" } as Origin, base: this.options.cwd };
    const chosen = found.find((one) => one !== undefined) ?? fallback;
    this.origins.set(key, chosen.origin);
    const { value } = chosen;
    const located =
      value !== null && value !== undefined && row.locate ? row.locate(value, chosen.base) : value;
    const name = isDuration(row) ? `${path.at(-1)}_ms` : path.at(-1)!;
    const group = path.length === 1 ? this.values : this.group(path[0]!);
    group[name] = located;
  }

  finish(): Settings {
    const { file } = this;
    for (const [key, { line }] of file?.values ?? []) {
      if (!this.origins.has(key)) this.origins.set(key, { from: "file", file: file!.file, line });
    }
    const all = [...this.problems, ...(file?.place(this.fileProblems) ?? [])];
    const warnings: string[] = [];
    const meta = { file: file?.file ?? null, origins: this.origins, warnings };
    const settings = { ...this.values, meta } as unknown as Settings;
    // The rules between keys are judged on what could be read; a key that failed has its default.
    settingsRules(settings, {
      refuse: (key, message) => all.push(`${this.placeOf(key)}: ${message}`),
      warn: (key, message) => warnings.push(`${this.placeOf(key)}: ${message}`),
    });
    if (all.length > 0) throw new ProblemsError(all);
    return settings;
  }

  private group(name: string): Record<string, unknown> {
    const group = (this.values[name] ?? {}) as Record<string, unknown>;
    this.values[name] = group;
    return group;
  }

  private fromFlag(row: SettingRow) {
    if (row.flag === undefined) return undefined;
    const given = this.flags[row.flag] ?? this.flags[camel(row.flag)];
    if (given === undefined || given === null) return undefined;
    const name = `--${row.flag}`;
    return this.fromOutside(
      row,
      name,
      { from: "flag", name },
      typeof given === "string" ? given : (given as Json),
    );
  }

  /** An empty variable is one that was not given, as compose files and unit files leave them. */
  private fromEnv(row: SettingRow) {
    const name = row.env;
    const text = name === undefined ? undefined : textOf(this.options.env[name]);
    if (name === undefined || text === undefined) return undefined;
    return this.fromOutside(row, name, { from: "env", name }, text);
  }

  private fromOutside(row: SettingRow, name: string, origin: Origin, given: Json) {
    const { value, problems } = readValue(row, row.schema, given, typeof given === "string");
    for (const { path, message } of problems) {
      this.problems.push(`${name}: ${path.length === 0 ? "" : `${showPath(path)}: `}${message}`);
    }
    return problems.length > 0 ? undefined : { value, origin, base: this.options.cwd };
  }

  private fromFile(key: string, row: SettingRow) {
    const { file } = this;
    const found = file?.values.get(key);
    if (file === undefined || found === undefined) return undefined;
    const schema = this.options.schemas?.[key] ?? row.schema;
    const { value, problems } = readValue(row, schema, found.value, found.expanded);
    for (const problem of problems)
      this.fileProblems.push({ ...problem, path: [...found.path, ...problem.path] });
    if (problems.length > 0) return undefined;
    return { value, origin: { from: "file", file: file.file, line: found.line } as Origin, base: file.base };
  }

  private placeOf(key: string): string {
    const origin = this.origins.get(key);
    if (origin?.from === "file") return `${origin.file}:${origin.line}: ${key}`;
    return origin?.from === "env" || origin?.from === "flag" ? origin.name : key;
  }
}

function readValue(row: SettingRow, schema: z.ZodType, given: Json, isText: boolean): Reading {
  let value: unknown = given;
  if (isText && row.fromText !== undefined) {
    try {
      value = row.fromText(given as string);
    } catch (error) {
      // The reader's message tells a position, never the text.
      return { value: undefined, problems: [{ path: [], message: messageOf(error) }] };
    }
  }
  const read = schemaProblems(schema, value as Json);
  const problems = read.problems.map((problem) => hideSecrets(problem, row));
  return { value: read.data, problems };
}

function hideSecrets(problem: Problem, row: SettingRow): Problem {
  const named = problem.path.some(
    (part) => typeof part === "string" && (isSecretName(part) || part === "url"),
  );
  if (!row.secret && !named) return problem;
  return { ...problem, message: problem.message.replace(/, not [\s\S]*$|^".*?"\.{0,3} (?=is |has )/, "") };
}

function textOf(given: unknown): string | undefined {
  return typeof given === "string" && given !== "" ? given : undefined;
}

function camel(name: string): string {
  return name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
}

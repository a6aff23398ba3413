/**
 * Loads the settings. Command-line options override the environment, which overrides the config file and the defaults.
 * All sources are validated, including overridden values, and all problems are reported at once. Problems never contain
 * secret values.
 */
import type { z } from "zod";
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import type { JsonValue } from "../kernel/json/json.ts";
import { type FieldProblem, schemaProblems, showPath } from "../rules/schema-problems.ts";
import { type ConfigFile, readConfigFile } from "./config-file.ts";
import { settingsRules } from "./cross-check.ts";
import type { EnvVariables } from "./expand-variables.ts";
import { isSecretName } from "./mask.ts";
import { isDuration, type SettingRow } from "./setting-row.ts";
import { type LoadedSettings, type SettingOrigin, settingRows } from "./settings.ts";

export interface LoadOptions {
  /** Command-line options by name, `compensator-cmd` or `compensatorCmd`. Other options are ignored. */
  readonly flags?: Readonly<Record<string, unknown>>;
  readonly env: EnvVariables;
  readonly cwd: string;
  /** Stricter schemas for keys that a feature defines, such as `notifications.channels`. */
  readonly schemas?: Readonly<Record<string, z.ZodType>>;
}

type Reading = { value: unknown; problems: FieldProblem[] };

export function loadSettings(options: LoadOptions): LoadedSettings {
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
  private readonly origins = new Map<string, SettingOrigin>();
  private readonly values: Record<string, unknown> = {};
  private readonly fileProblems: FieldProblem[];
  private readonly problems: string[] = [];

  constructor(options: LoadOptions, flags: Readonly<Record<string, unknown>>, file: ConfigFile | undefined) {
    this.options = options;
    this.flags = flags;
    this.file = file;
    this.fileProblems = [...(file?.problems ?? [])];
  }

  load(key: string, path: readonly string[], row: SettingRow): void {
    const found = [this.fromFlag(row), this.fromEnv(row), this.fromFile(key, row)];
    const fallback = {
      value: row.default,
      origin: { from: "default" } as SettingOrigin,
      base: this.options.cwd,
    };
    const chosen = found.find((one) => one !== undefined) ?? fallback;
    this.origins.set(key, chosen.origin);
    const { value } = chosen;
    const located =
      value !== null && value !== undefined && row.locate ? row.locate(value, chosen.base) : value;
    const name = isDuration(row) ? `${path.at(-1)}_ms` : path.at(-1)!;
    const group = path.length === 1 ? this.values : this.group(path[0]!);
    group[name] = located;
  }

  finish(): LoadedSettings {
    const { file } = this;
    for (const [key, { line }] of file?.values ?? []) {
      if (!this.origins.has(key)) this.origins.set(key, { from: "file", file: file!.file, line });
    }
    const all = [...this.problems, ...(file?.place(this.fileProblems) ?? [])];
    const warnings: string[] = [];
    const meta = { file: file?.file ?? null, origins: this.origins, warnings };
    // The table of settings fills every member.
    const settings = { ...this.values, meta } as unknown as LoadedSettings;
    // Rules between keys run on the readable values. A key with a problem has its default here.
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
      typeof given === "string" ? given : (given as JsonValue),
    );
  }

  /** Reads the setting's variable. An empty variable counts as not set, as compose and unit files leave them. */
  private fromEnv(row: SettingRow) {
    const name = row.env;
    const text = name === undefined ? undefined : textOf(this.options.env[name]);
    if (name === undefined || text === undefined) return undefined;
    return this.fromOutside(row, name, { from: "env", name }, text);
  }

  private fromOutside(row: SettingRow, name: string, origin: SettingOrigin, given: JsonValue) {
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
    return {
      value,
      origin: { from: "file", file: file.file, line: found.line } as SettingOrigin,
      base: file.base,
    };
  }

  private placeOf(key: string): string {
    const origin = this.origins.get(key);
    if (origin?.from === "file") return `${origin.file}:${origin.line}: ${key}`;
    return origin?.from === "env" || origin?.from === "flag" ? origin.name : key;
  }
}

function readValue(row: SettingRow, schema: z.ZodType, given: JsonValue, isText: boolean): Reading {
  let value: unknown = given;
  if (isText && row.fromText !== undefined) {
    try {
      value = row.fromText(given as string);
    } catch (error) {
      // The parser's message contains a position, never the text.
      return { value: undefined, problems: [{ path: [], message: messageOf(error) }] };
    }
  }
  const read = schemaProblems(schema, value as JsonValue);
  const problems = read.problems.map((problem) => hideSecrets(problem, row));
  return { value: read.data, problems };
}

function hideSecrets(problem: FieldProblem, row: SettingRow): FieldProblem {
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

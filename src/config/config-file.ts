/** Reads `svc.config.yaml` into raw values by key, with their lines and all problems of the file's structure. */
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import { isJsonObject, type JsonObject, type JsonValue } from "../kernel/json/json.ts";
import { didYouMean, type FieldPath, type FieldProblem } from "../rules/schema-problems.ts";
import { parseYaml, type YamlSource } from "../rules/yaml.ts";
import { type EnvVariables, expandVariables } from "./expand-variables.ts";
import { readTextFileSync } from "./files.ts";
import { isSection, type SettingSection } from "./setting-row.ts";
import { SETTING_ENTRIES } from "./settings.ts";

const CONFIG_NAME = "svc.config.yaml";

interface FileValue {
  readonly value: JsonValue;
  /** The text contained a variable, so the value may be a number or a switch. */
  readonly expanded: boolean;
  /** Location in the file. For a shorthand it differs from the key's location in the table. */
  readonly path: FieldPath;
  readonly line: number;
}

export interface ConfigFile {
  /** The file name as the user gave it. */
  readonly file: string;
  /** Directory that the file's relative paths are resolved against. */
  readonly base: string;
  /** Values by dotted key. Sections present in the file have an entry too. */
  readonly values: ReadonlyMap<string, FileValue>;
  place(problems: readonly FieldProblem[]): string[];
  readonly problems: FieldProblem[];
}

/** Reads the named file, or the one in the working directory. Returns undefined if no file is named and none exists. */
export function readConfigFile(
  named: string | undefined,
  cwd: string,
  env: EnvVariables,
): ConfigFile | undefined {
  const file = named ?? CONFIG_NAME;
  if (file.includes("\0")) throw new ProblemsError(["--config: must not hold a NUL character"]);
  const path = resolve(cwd, file);
  if (named === undefined && !existsSync(path)) return undefined;
  let text: string;
  try {
    text = readTextFileSync(path);
  } catch (error) {
    throw new ProblemsError([messageOf(error)]);
  }
  // A file with only comments is an empty config, not an invalid one.
  if (text.split("\n").every((line) => /^\s*(?:#|$)/.test(line))) text = "{}";
  return readConfigText(text, file, dirname(path), env);
}

function readConfigText(text: string, file: string, base: string, env: EnvVariables): ConfigFile {
  const source = parseYaml(text, file);
  const problems: FieldProblem[] = [];
  const values = new Map<string, FileValue>();
  const place = (list: readonly FieldProblem[]) => source.placeAll(list);
  if (!isJsonObject(source.value)) {
    problems.push({ path: [], message: "must be a mapping of settings, such as `store: sqlite`" });
    return { file, base, values, place, problems };
  }
  const report = (path: FieldPath, message: string) => problems.push({ path, message });
  const raw = expandVariables(source.value, env, report) as JsonObject;
  const reader = new KeyReader(source, raw, values, problems);
  reader.read();
  return { file, base, values, place, problems };
}

/** Names the section of a key that was written outside of it, such as `port`. */
function withinSection(path: FieldPath): string {
  if (path.length !== 1) return "";
  const key = String(path[0]);
  const sections = SETTING_ENTRIES.filter(([, entry]) => isSection(entry) && Object.hasOwn(entry.rows, key));
  return sections.length === 1 ? `; did you mean "${sections[0]![0]}.${key}"?` : "";
}

class KeyReader {
  private readonly source: YamlSource;
  private readonly raw: JsonObject;
  private readonly values: Map<string, FileValue>;
  private readonly problems: FieldProblem[];

  constructor(source: YamlSource, raw: JsonObject, values: Map<string, FileValue>, problems: FieldProblem[]) {
    this.source = source;
    this.raw = raw;
    this.values = values;
    this.problems = problems;
  }

  read(): void {
    const table = new Map(SETTING_ENTRIES);
    for (const [name, value] of Object.entries(this.raw)) {
      const entry = table.get(name);
      if (entry === undefined) this.unknown([name], [...table.keys()]);
      else if (isSection(entry)) this.section(name, entry, value);
      else this.keep(name, [name], value);
    }
  }

  private section(name: string, { rows, shorthand }: SettingSection, value: JsonValue): void {
    this.keep(name, [name], isJsonObject(value) ? value : {});
    if (value === null) return;
    if (!isJsonObject(value)) {
      if (shorthand !== undefined && !Array.isArray(value)) this.keep(`${name}.${shorthand}`, [name], value);
      else
        this.problems.push({
          path: [name],
          message: `must be a mapping with ${Object.keys(rows).join(", ")}`,
        });
      return;
    }
    for (const [key, member] of Object.entries(value)) {
      if (Object.hasOwn(rows, key)) this.keep(`${name}.${key}`, [name, key], member);
      else this.unknown([name, key], Object.keys(rows));
    }
  }

  /** Skips empty values, which count as not given, and values with a missing variable, which are reported already. */
  private keep(key: string, path: FieldPath, value: JsonValue): void {
    if (value === null || this.unexpanded(path)) return;
    const expanded = typeof value === "string" && this.written(path) !== value;
    this.values.set(key, { value, expanded, path, line: this.lineOf(path) });
  }

  private unexpanded(path: FieldPath): boolean {
    return (
      path.length > 0 &&
      this.problems.some((problem) => path.every((key, i) => problem.path[i] === key && !problem.key))
    );
  }

  private written(path: FieldPath): JsonValue | undefined {
    let here: JsonValue | undefined = this.source.value;
    for (const key of path) here = isJsonObject(here) ? here[key] : undefined;
    return here;
  }

  private unknown(path: FieldPath, known: readonly string[]): void {
    const name = path.at(-1);
    const hint =
      path.length === 1 && name === "retention"
        ? "; retention belongs in the policy file"
        : withinSection(path) ||
          didYouMean(name, known) ||
          `; known keys are ${[...known].sort().join(", ")}`;
    this.problems.push({ path, message: `unknown key${hint}`, key: true });
  }

  /** `place` begins with `<file>:<line>:`. */
  private lineOf(path: FieldPath): number {
    const placed = this.source.place({ path, message: "", key: true });
    return Number.parseInt(placed.slice(this.source.file.length + 1), 10);
  }
}

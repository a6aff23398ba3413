/** Reads `svc.config.yaml` into raw values by key, with the line of each and every problem of its shape. */
import { existsSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { messageOf, ProblemsError } from "../kernel/errors.ts";
import { isJsonObject, type Json, type JsonObject } from "../kernel/json.ts";
import { didYouMean, type FieldPath, type Problem } from "../model/problems.ts";
import { parseYaml, type YamlSource } from "../model/yaml.ts";
import { expand, type Variables } from "./expand.ts";
import { readTextFileSync } from "./files.ts";
import { isSection, type Section } from "./row.ts";
import { ENTRIES } from "./settings.ts";

const CONFIG_NAME = "svc.config.yaml";

interface FileValue {
  readonly value: Json;
  /** The value is text into which a variable was put, so it may stand for a number or a switch. */
  readonly expanded: boolean;
  /** Where it stands in the file, which for a shorthand is not where the table has it. */
  readonly path: FieldPath;
  readonly line: number;
}

export interface ConfigFile {
  /** As the person named it. */
  readonly file: string;
  /** Against which the file's relative paths are resolved. */
  readonly base: string;
  /** By dotted key; sections that are written down have an entry too. */
  readonly values: ReadonlyMap<string, FileValue>;
  place(problems: readonly Problem[]): string[];
  readonly problems: Problem[];
}

/** The file that was named, or the one in the working directory; undefined where neither is there. */
export function readConfigFile(
  named: string | undefined,
  cwd: string,
  env: Variables,
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
  // A file whose every line is a comment is an empty config, not a broken one.
  if (/^(?:\s*(?:#.*)?(?:\r?\n|$))*$/.test(text.replace(/^\uFEFF/, ""))) text = "{}";
  return readConfigText(text, file, dirname(path), env);
}

function readConfigText(text: string, file: string, base: string, env: Variables): ConfigFile {
  const source = parseYaml(text, file);
  const problems: Problem[] = [];
  const values = new Map<string, FileValue>();
  const place = (list: readonly Problem[]) => source.placeAll(list);
  if (!isJsonObject(source.value)) {
    problems.push({ path: [], message: "must be a mapping of settings, such as `store: sqlite`" });
    return { file, base, values, place, problems };
  }
  const report = (path: FieldPath, message: string) => problems.push({ path, message });
  const raw = expand(source.value, env, report) as JsonObject;
  const reader = new KeyReader(source, raw, values, problems);
  reader.read();
  return { file, base, values, place, problems };
}

class KeyReader {
  private readonly source: YamlSource;
  private readonly raw: JsonObject;
  private readonly values: Map<string, FileValue>;
  private readonly problems: Problem[];

  constructor(source: YamlSource, raw: JsonObject, values: Map<string, FileValue>, problems: Problem[]) {
    this.source = source;
    this.raw = raw;
    this.values = values;
    this.problems = problems;
  }

  read(): void {
    const table = new Map(ENTRIES);
    for (const [name, value] of Object.entries(this.raw)) {
      const entry = table.get(name);
      if (entry === undefined) this.unknown([name], [...table.keys()]);
      else if (isSection(entry)) this.section(name, entry, value);
      else this.keep(name, [name], value);
    }
  }

  private section(name: string, { rows, shorthand }: Section, value: Json): void {
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

  /** An empty value is one that was not given; one whose variable is missing has been told of already. */
  private keep(key: string, path: FieldPath, value: Json): void {
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

  private written(path: FieldPath): Json | undefined {
    let here: Json | undefined = this.source.value;
    for (const key of path) here = isJsonObject(here) ? here[key] : undefined;
    return here;
  }

  private unknown(path: FieldPath, known: readonly string[]): void {
    const name = path.at(-1);
    const hint =
      path.length === 1 && name === "retention"
        ? "; retention belongs in the policy file"
        : didYouMean(name, known) || `; known keys are ${[...known].sort().join(", ")}`;
    this.problems.push({ path, message: `unknown key${hint}`, key: true });
  }

  /** `place` begins with `<file>:<line>:`. */
  private lineOf(path: FieldPath): number {
    const placed = this.source.place({ path, message: "", key: true });
    return Number.parseInt(placed.slice(this.source.file.length + 1), 10);
  }
}

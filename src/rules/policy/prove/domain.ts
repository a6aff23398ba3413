/**
 * The calls to one class of tools as a product of variables. Each field and argument that some entry reads is a
 * variable. It has one representative value for each combination of test results, since entries cannot distinguish the
 * others.
 */
import type { JsonValue } from "../../../kernel/json/json.ts";
import { LruMap } from "../../../kernel/lru.ts";
import { parsePath, readKeys } from "../../../kernel/paths.ts";
import { globAlternatives } from "../../../kernel/text/glob.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import { BLAST_RADII, TOOL_EFFECTS } from "../../manifest/schema.ts";
import type { CompiledPolicy } from "../compile.ts";
import { MatchIndex } from "../match.ts";
import { COMPARISON_OPS } from "../ops/table.ts";
import type { MatchField } from "../schema.ts";
import { argumentCandidates } from "./automata/arguments.ts";
import { exampleTexts } from "./automata/example-texts.ts";
import {
  ANY_MANY,
  ANY_ONE,
  literalPieces,
  type PatternPiece,
  UndecidableError,
  wildMachines,
} from "./automata/machine.ts";
import { timeAtoms } from "./automata/times.ts";
import type { ConditionDoc, ProverEntry } from "./entries.ts";

type Truth = 0 | 1 | 2;
/** Present but not comparable, which counts against the call. */
const UNSURE: Truth = 2;

export interface ValueAtom {
  /** Sample values of the kind. The first is used unless a content check rejects it. */
  values: { value: unknown; alone: boolean }[];
  truths: Truth[];
}

export interface CallVariable {
  /** A field of the call, `at`, or `args` and the name of an argument. */
  name: string;
  tests: ((value: unknown) => Truth)[];
  /** Further distinctions between values, such as their risk points. */
  signs: ((value: unknown) => string)[];
  atoms: ValueAtom[];
}

/** One test of one variable. */
export interface TestLiteral {
  variable: CallVariable;
  test: number;
}

interface Question {
  match: ProverEntry["match"];
  when: readonly ConditionDoc[];
}

const FIELDS = [
  "actor",
  "acting",
  "tenant",
  "environment",
  "effect",
  "data_class",
  "source",
  "sink",
] as const;
type Field = Exclude<(typeof FIELDS)[number], never>;

/** Name of the variable for `$args` itself. Variables of single arguments append a space and the argument's name. */
export const ALL_ARGUMENTS = "args";

function argumentOf([first]: readonly (string | number)[]): string {
  return first === undefined ? ALL_ARGUMENTS : `${ALL_ARGUMENTS} ${first}`;
}

export function isOfArguments(name: string): boolean {
  return name === ALL_ARGUMENTS || name.startsWith(`${ALL_ARGUMENTS} `);
}

export class CallDomain {
  readonly variables: CallVariable[] = [];
  private readonly byName = new Map<string, CallVariable>();
  private readonly keys = new Map<string, number>();
  private readonly globs = new Map<Field, Set<string>>();
  private readonly asked = new Map<string, ConditionDoc[]>();
  private readonly amounts: { path: string; max: number }[] = [];
  private readonly timed: { policy: CompiledPolicy; entry: ProverEntry }[] = [];
  private readonly policies: readonly CompiledPolicy[];
  private readonly labels: ToolLabels | null;

  /** `labels` is null for undeclared tools, whose labels can be anything. */
  constructor(policies: readonly CompiledPolicy[], labels: ToolLabels | null) {
    this.policies = policies;
    this.labels = labels;
  }

  /** Adds an entry's tests and returns their conjunction. */
  literals({ match, when }: Question): TestLiteral[] {
    const found: TestLiteral[] = [];
    for (const field of FIELDS) {
      const glob = match[field];
      if (glob === undefined) continue;
      const known = this.globs.get(field);
      if (known === undefined) this.globs.set(field, new Set([glob]));
      else known.add(glob);
      found.push(this.test(field, `glob ${glob}`, fieldTest(field, glob)));
    }
    for (const condition of when) found.push(this.condition(condition));
    return found;
  }

  addEntry(policy: CompiledPolicy, entry: ProverEntry): TestLiteral[] {
    const literals = this.literals(entry);
    if (entry.section === "windows" || entry.section === "freezes") this.timed.push({ policy, entry });
    if (entry.amount !== null) this.addAmount(entry.amount);
    return literals;
  }

  /** Computes the atoms of every variable. No tests can be added afterwards. */
  close(now_ms: number): void {
    for (const field of FIELDS) this.variable(field);
    this.variable("blast_radius");
    if (this.byName.has(ALL_ARGUMENTS) && this.variables.filter(({ name }) => isOfArguments(name)).length > 1)
      throw new UndecidableError("conditions read $args as a whole and one of its members");
    this.addRisk();
    for (const variable of this.variables) this.fill(variable);
    this.addTimes(now_ms);
  }

  private addTimes(now_ms: number): void {
    const of = (section: ProverEntry["section"]) =>
      this.timed.filter(({ entry }) => entry.section === section);
    const windows = of("windows").map(({ policy, entry }) => policy.windows.all()[entry.index]!);
    const freezes = of("freezes").map(({ policy, entry }) => policy.freezes.all()[entry.index]!);
    const at = this.variable("at");
    at.atoms = timeAtoms(windows, freezes, now_ms).map(({ at_ms }) => ({
      values: [{ value: at_ms, alone: false }],
      truths: [],
    }));
  }

  private variable(name: string): CallVariable {
    let variable = this.byName.get(name);
    if (variable === undefined) {
      variable = { name, tests: [], signs: [], atoms: [] };
      this.byName.set(name, variable);
      this.variables.push(variable);
    }
    return variable;
  }

  private test(name: string, key: string, test: (value: unknown) => Truth): TestLiteral {
    const variable = this.variable(name);
    const full = `${name} ${key}`;
    let index = this.keys.get(full);
    if (index === undefined) {
      index = variable.tests.push(test) - 1;
      this.keys.set(full, index);
    }
    return { variable, test: index };
  }

  private condition(condition: ConditionDoc): TestLiteral {
    const { path, op, value } = condition;
    const { keys } = parsePath(path);
    const name = argumentOf(keys);
    const { whenMissing, compile } = COMPARISON_OPS[op];
    const compare = compile((value ?? null) as JsonValue);
    this.askedOf(name).push(condition);
    return this.test(name, JSON.stringify([keys, op, value ?? null]), (argument) => {
      const actual = readKeys(argument as JsonValue | undefined, keys.slice(1));
      const answer = actual === undefined ? whenMissing : compare(actual);
      return answer === undefined ? UNSURE : answer ? 1 : 0;
    });
  }

  private askedOf(name: string): ConditionDoc[] {
    let asked = this.asked.get(name);
    if (asked === undefined) {
      asked = [];
      this.asked.set(name, asked);
    }
    return asked;
  }

  private addAmount(amount: { path: string; max: number }): void {
    this.amounts.push(amount);
    const { keys } = parsePath(amount.path);
    const variable = this.variable(argumentOf(keys));
    this.askedOf(variable.name);
    variable.signs.push((argument) => {
      const value = readKeys(argument as JsonValue | undefined, keys.slice(1));
      if (typeof value !== "number") return "?";
      return value > amount.max ? ">" : value > 0 ? "+" : "0";
    });
  }

  private addRisk(): void {
    for (const { risk } of this.policies) {
      if (risk === null) continue;
      for (const factor of ["effect", "blast_radius", "data_class", "environment"] as const) {
        const weights = risk.weights[factor];
        this.variable(factor).signs.push((label) =>
          String(
            (label === null ? weights.get("unset") : (weights.get(label as string) ?? weights.get("*"))) ?? 0,
          ),
        );
      }
    }
  }

  private fill(variable: CallVariable): void {
    const atoms = new Map<string, ValueAtom>();
    for (const candidate of this.valuesOf(variable)) {
      const truths = variable.tests.map((test) => test(candidate.value));
      const key = truths.join("") + variable.signs.map((sign) => sign(candidate.value)).join("|");
      const atom = atoms.get(key);
      if (atom === undefined) atoms.set(key, { values: [{ ...candidate }], truths });
      else if (atom.values.length < 3) atom.values.push({ ...candidate });
      // More values of the kind exist than are stored, so none of them is the only one.
      else for (const kept of atom.values) kept.alone = false;
    }
    variable.atoms = [...atoms.values()];
  }

  private valuesOf({ name }: CallVariable): { value: unknown; alone: boolean }[] {
    if (isOfArguments(name)) {
      const amounts = this.amounts.filter(({ path }) => argumentOf(parsePath(path).keys) === name);
      const values = argumentCandidates(this.asked.get(name) ?? [], amounts);
      // A call can lack an argument, but never all of `$args`.
      return name === ALL_ARGUMENTS ? values.filter(({ value }) => value !== undefined) : values;
    }
    const some = (values: readonly unknown[]) => values.map((value) => ({ value, alone: false }));
    if (name === "blast_radius")
      return some(this.labels ? [this.labels.blast_radius] : [null, ...BLAST_RADII]);
    const field = name as Field;
    if (this.labels !== null && field in this.labels) return some([this.labels[field as keyof ToolLabels]]);
    if (field === "effect") return some([null, ...TOOL_EFFECTS]);
    const texts = textsFor([...(this.globs.get(field) ?? [])], this.namedLabels(field)).filter(
      (text) => text !== "",
    );
    if (field === "source" || field === "sink" || field === "acting")
      return some(labelSets([...(this.globs.get(field) ?? [])], texts));
    return some(field === "actor" ? texts : [null, ...texts]);
  }

  /** Labels that risk weights name, since each can have its own points. */
  private namedLabels(field: Field): string[] {
    if (field !== "environment" && field !== "data_class") return [];
    return this.policies.flatMap(({ risk }) =>
      risk === null
        ? []
        : [...risk.weights[field].keys()].filter((label) => label !== "unset" && label !== "*"),
    );
  }
}

/** Tests the field with the policy's own index. */
function fieldTest(field: MatchField, glob: string): (value: unknown) => Truth {
  const index = new MatchIndex([{ match: { [field]: glob }, item: true }]);
  return (value) => {
    const call = { ...NO_CALL, [field]: value } as Parameters<typeof index.matching>[0];
    return index.matching(call).length > 0 ? 1 : 0;
  };
}

export const NO_CALL = {
  tool: "",
  args: {},
  actor: "",
  acting: [],
  tenant: null,
  environment: null,
  effect: null,
  data_class: null,
  blast_radius: null,
  source: [],
  sink: [],
  assumed_flows: new Set<string>(),
  run_id: "run",
  step: 0,
};

function globPieces(glob: string): PatternPiece[][] {
  return globAlternatives(glob).map((pattern) =>
    pattern.split("").map((char) => (char === "*" ? ANY_MANY : char === "?" ? ANY_ONE : char)),
  );
}

/** A few sample texts for each combination of matching globs and names. */
export function textsFor(globs: readonly string[], names: readonly string[] = []): string[] {
  const key = JSON.stringify([globs, names]);
  const known = knownTexts.get(key);
  if (known !== undefined) return known;
  const machine = wildMachines([...globs.map(globPieces), ...names.map((name) => [literalPieces(name)])]);
  const texts = exampleTexts([machine]).flatMap((word) => word.texts);
  knownTexts.set(key, texts);
  return texts;
}

/** Cached, because many classes of tools need the same fields. */
const knownTexts = new LruMap<string, string[]>(500);

/** The empty set, and the union of labels for each combination of matching globs. */
function labelSets(globs: readonly string[], texts: readonly string[]): string[][] {
  const tests = globs.map((glob) => fieldTest("source", glob));
  const sets = new Map<bigint, string[]>([[0n, []]]);
  for (const text of texts) {
    const matched = tests.reduce((bits, test) => bits * 2n + BigInt(test([text])), 0n);
    for (const [bits, set] of [...sets]) {
      if (!sets.has(bits | matched)) sets.set(bits | matched, [...set, text]);
    }
    if (sets.size > MAX_LABEL_SETS) throw new UndecidableError("too many entries match labels of one kind");
  }
  return [...sets.values()];
}

/** Maximum distinct sets of labels; above it the result is incomplete. */
const MAX_LABEL_SETS = 4_096;

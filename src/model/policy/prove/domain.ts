/**
 * The calls to one class of tools, as a product of variables: each field and each argument that some entry looks at,
 * with one value for every way in which the entries can see it. What the entries cannot tell apart is one value here.
 */
import { globAlternatives } from "../../../kernel/glob.ts";
import type { Json } from "../../../kernel/json.ts";
import { Lru } from "../../../kernel/lru.ts";
import { parsePath, readKeys } from "../../../kernel/paths.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import { BLAST_RADII, EFFECTS } from "../../manifest/types.ts";
import type { Policy } from "../compile.ts";
import { MatchIndex } from "../match.ts";
import { OPS } from "../ops/table.ts";
import type { MatchField } from "../schema.ts";
import { argumentCandidates } from "./arguments.ts";
import type { ConditionDoc, Entry } from "./entries.ts";
import { literal, MANY, ONE, type Piece, Undecidable, wildMachines } from "./machine.ts";
import { timeAtoms } from "./times.ts";
import { words } from "./words.ts";

type Truth = 0 | 1 | 2;
/** There, but not to be compared: it counts against the call. */
const UNSURE: Truth = 2;

export interface Atom {
  /** A few values of the kind; the first is used unless something else stands against it. */
  values: { value: unknown; alone: boolean }[];
  truths: Truth[];
}

export interface Variable {
  /** A field of the call, `at`, or `args` and the name of an argument. */
  name: string;
  tests: ((value: unknown) => Truth)[];
  /** What else tells values apart, such as their points of risk. */
  signs: ((value: unknown) => string)[];
  atoms: Atom[];
}

/** One test of one variable. */
export interface Literal {
  variable: Variable;
  test: number;
}

interface Question {
  match: Entry["match"];
  when: readonly ConditionDoc[];
}

const FIELDS = ["actor", "tenant", "environment", "effect", "data_class", "source", "sink"] as const;
type Field = Exclude<(typeof FIELDS)[number], never>;

/** The variable of `$args` itself, and those of single arguments, each of which has its name behind a space. */
export const ALL_ARGUMENTS = "args";

function argumentOf([first]: readonly (string | number)[]): string {
  return first === undefined ? ALL_ARGUMENTS : `${ALL_ARGUMENTS} ${first}`;
}

export function isOfArguments(name: string): boolean {
  return name === ALL_ARGUMENTS || name.startsWith(`${ALL_ARGUMENTS} `);
}

export class Domain {
  readonly variables: Variable[] = [];
  private readonly byName = new Map<string, Variable>();
  private readonly keys = new Map<string, number>();
  private readonly globs = new Map<Field, Set<string>>();
  private readonly asked = new Map<string, ConditionDoc[]>();
  private readonly amounts: { path: string; max: number }[] = [];
  private readonly timed: { policy: Policy; entry: Entry }[] = [];
  private readonly policies: readonly Policy[];
  private readonly labels: ToolLabels | null;

  /** `labels` null: the tool is not declared, and may be anything. */
  constructor(policies: readonly Policy[], labels: ToolLabels | null) {
    this.policies = policies;
    this.labels = labels;
  }

  /** Takes an entry's tests in; the answer is their conjunction. */
  literals({ match, when }: Question): Literal[] {
    const found: Literal[] = [];
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

  addEntry(policy: Policy, entry: Entry): Literal[] {
    const literals = this.literals(entry);
    if (entry.section === "windows" || entry.section === "freezes") this.timed.push({ policy, entry });
    if (entry.amount !== null) this.addAmount(entry.amount);
    return literals;
  }

  /** Fills every variable with its atoms; nothing is added afterwards. */
  close(now_ms: number): void {
    for (const field of ["actor", "tenant", "environment", "effect", "data_class", "source", "sink"] as const)
      this.variable(field);
    this.variable("blast_radius");
    if (this.byName.has(ALL_ARGUMENTS) && this.variables.filter(({ name }) => isOfArguments(name)).length > 1)
      throw new Undecidable("conditions ask about $args as a whole and about one of them");
    this.addRisk();
    for (const variable of this.variables) this.fill(variable);
    this.addTimes(now_ms);
  }

  private addTimes(now_ms: number): void {
    const of = (section: Entry["section"]) => this.timed.filter(({ entry }) => entry.section === section);
    const windows = of("windows").map(({ policy, entry }) => policy.windows.all()[entry.index]!);
    const freezes = of("freezes").map(({ policy, entry }) => policy.freezes.all()[entry.index]!);
    const at = this.variable("at");
    at.atoms = timeAtoms(windows, freezes, now_ms).map(({ at_ms }) => ({
      values: [{ value: at_ms, alone: false }],
      truths: [],
    }));
  }

  private variable(name: string): Variable {
    let variable = this.byName.get(name);
    if (variable === undefined) {
      variable = { name, tests: [], signs: [], atoms: [] };
      this.byName.set(name, variable);
      this.variables.push(variable);
    }
    return variable;
  }

  private test(name: string, key: string, test: (value: unknown) => Truth): Literal {
    const variable = this.variable(name);
    const full = `${name} ${key}`;
    let index = this.keys.get(full);
    if (index === undefined) {
      index = variable.tests.push(test) - 1;
      this.keys.set(full, index);
    }
    return { variable, test: index };
  }

  private condition(condition: ConditionDoc): Literal {
    const { path, op, value } = condition;
    const { keys } = parsePath(path);
    const name = argumentOf(keys);
    const { whenMissing, compile } = OPS[op];
    const compare = compile((value ?? null) as Json);
    this.askedOf(name).push(condition);
    return this.test(name, JSON.stringify([keys, op, value ?? null]), (argument) => {
      const actual = readKeys(argument as Json | undefined, keys.slice(1));
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
      const value = readKeys(argument as Json | undefined, keys.slice(1));
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

  private fill(variable: Variable): void {
    const atoms = new Map<string, Atom>();
    for (const candidate of this.valuesOf(variable)) {
      const truths = variable.tests.map((test) => test(candidate.value));
      const key = truths.join("") + variable.signs.map((sign) => sign(candidate.value)).join("|");
      const atom = atoms.get(key);
      if (atom === undefined) atoms.set(key, { values: [{ ...candidate }], truths });
      else if (atom.values.length < 3) atom.values.push({ ...candidate });
      // There are more of the kind than are kept: those that are do not stand for themselves alone.
      else for (const kept of atom.values) kept.alone = false;
    }
    variable.atoms = [...atoms.values()];
  }

  private valuesOf({ name }: Variable): { value: unknown; alone: boolean }[] {
    if (isOfArguments(name)) {
      const amounts = this.amounts.filter(({ path }) => argumentOf(parsePath(path).keys) === name);
      const values = argumentCandidates(this.asked.get(name) ?? [], amounts);
      // A call may lack an argument, but has arguments.
      return name === ALL_ARGUMENTS ? values.filter(({ value }) => value !== undefined) : values;
    }
    const some = (values: readonly unknown[]) => values.map((value) => ({ value, alone: false }));
    if (name === "blast_radius")
      return some(this.labels ? [this.labels.blast_radius] : [null, ...BLAST_RADII]);
    const field = name as Field;
    if (this.labels !== null && field in this.labels) return some([this.labels[field as keyof ToolLabels]]);
    if (field === "effect") return some([null, ...EFFECTS]);
    const texts = textsFor([...(this.globs.get(field) ?? [])], this.namedLabels(field)).filter(
      (text) => text !== "",
    );
    if (field === "source" || field === "sink")
      return some(labelSets([...(this.globs.get(field) ?? [])], texts));
    return some(field === "actor" ? texts : [null, ...texts]);
  }

  /** Labels that risk weights name: each may count differently. */
  private namedLabels(field: Field): string[] {
    if (field !== "environment" && field !== "data_class") return [];
    return this.policies.flatMap(({ risk }) =>
      risk === null
        ? []
        : [...risk.weights[field].keys()].filter((label) => label !== "unset" && label !== "*"),
    );
  }
}

/** As the policy itself reads the field. */
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
  tenant: null,
  environment: null,
  effect: null,
  data_class: null,
  blast_radius: null,
  source: [],
  sink: [],
  run_id: "run",
  step: 0,
};

function globPieces(glob: string): Piece[][] {
  return globAlternatives(glob).map((pattern) =>
    pattern.split("").map((char) => (char === "*" ? MANY : char === "?" ? ONE : char)),
  );
}

/** A few texts for each way in which globs and names can see one. */
export function textsFor(globs: readonly string[], names: readonly string[] = []): string[] {
  const key = JSON.stringify([globs, names]);
  const known = knownTexts.get(key);
  if (known !== undefined) return known;
  const machine = wildMachines([...globs.map(globPieces), ...names.map((name) => [literal(name)])]);
  const texts = words([machine]).flatMap((word) => word.texts);
  knownTexts.set(key, texts);
  return texts;
}

/** Class after class of tools asks for the same fields. */
const knownTexts = new Lru<string, string[]>(500);

/** No label, and every union of what single labels match. */
function labelSets(globs: readonly string[], texts: readonly string[]): string[][] {
  const tests = globs.map((glob) => fieldTest("source", glob));
  const sets = new Map<bigint, string[]>([[0n, []]]);
  for (const text of texts) {
    const matched = tests.reduce((bits, test) => bits * 2n + BigInt(test([text])), 0n);
    for (const [bits, set] of [...sets]) {
      if (!sets.has(bits | matched)) sets.set(bits | matched, [...set, text]);
    }
    if (sets.size > MOST_SETS) throw new Undecidable("too many entries ask for labels of one kind");
  }
  return [...sets.values()];
}

/** Sets of labels that entries can tell apart; beyond it the question is too large. */
const MOST_SETS = 4_096;

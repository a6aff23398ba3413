/**
 * Finds entries that can never decide a call: conditions that no value meets, and entries that stricter ones cover
 * completely. Undecidable cases produce no warning, so that a warning is never wrong.
 */
import type { ToolLabels } from "../../manifest/labels.ts";
import { isOpen } from "../checks/hours.ts";
import type { CompiledPolicy } from "../compile.ts";
import { UndecidableError } from "./automata/machine.ts";
import { type ToolClass, toolClasses } from "./calls.ts";
import { matchesTool } from "./claims.ts";
import { CallDomain, type TestLiteral } from "./domain.ts";
import { type ConditionDoc, entriesOf, type ProverEntry } from "./entries.ts";
import {
  type ChosenAtoms,
  evaluateConjunction,
  exploreProduct,
  orderVariables,
  type SearchBudget,
} from "./search.ts";
import { unmatchedEntries } from "./unmatched-entries.ts";

interface WarningOptions {
  /** Every declared tool; empty without manifests. */
  labels: ReadonlyMap<string, ToolLabels>;
  now_ms: number;
  budget: SearchBudget;
}

/** Maximum warnings shown; the last line counts the rest. */
const MAX_WARNINGS = 50;
/** Limits on the choices per question and on the entries compared with one entry. */
const MAX_NODES = 4_000;
const MAX_COVERING = 60;

const KINDS: Record<ProverEntry["section"], string> = {
  rules: "rule",
  flows: "flow",
  limits: "limit",
  budgets: "budget",
  windows: "window",
  freezes: "freeze",
};

/** Returns one sentence per entry that can never take effect, with the cause. */
export function policyWarnings(policy: CompiledPolicy, options: WarningOptions): string[] {
  const found = [
    ...unmatchedEntries(policy.doc, options.labels),
    ...idleTimes(policy, options.now_ms),
    ...new IdleSearch(policy, options).warnings(),
  ];
  const shown = found.slice(0, MAX_WARNINGS);
  const left = found.length - shown.length;
  return left === 0 ? shown : [...shown, `and ${left} more`];
}

function idleTimes({ doc, windows, freezes }: CompiledPolicy, now_ms: number): string[] {
  const over = freezes
    .all()
    .filter(({ to_ms }) => to_ms <= now_ms)
    .map(({ id, to_ms }) => `freeze ${id}: it ended at ${new Date(to_ms).toISOString()}; remove it`);
  const minutes = Array.from({ length: 7 * 24 * 60 }, (_, i) => ({
    day: Math.floor(i / (24 * 60)),
    minute: i % (24 * 60),
  }));
  const open = (doc.windows === undefined ? [] : windows.all())
    .filter(({ days, hours }) => days.size === 7 && minutes.every((clock) => isOpen(clock, days, hours)))
    .map(({ id }) => `window ${id}: it is open at all times, so its action never applies`);
  return [...open, ...over];
}

class IdleSearch {
  private readonly policy: CompiledPolicy;
  private readonly options: WarningOptions;
  private readonly entries: readonly ProverEntry[];
  /** Entries whose conditions no value meets. */
  private readonly unmet = new Set<ProverEntry>();

  constructor(policy: CompiledPolicy, options: WarningOptions) {
    this.policy = policy;
    this.options = options;
    this.entries = entriesOf(policy);
  }

  warnings(): string[] {
    const claims = this.policy.doc.claims ?? [];
    return [
      ...this.each(this.entries, (entry) => this.unmetConditions(entry)),
      ...this.each(this.entries, (entry) => this.shadowing(entry)),
      ...this.each(claims, ({ name, match = {}, when = [], unless }) => {
        const about = `claim ${JSON.stringify(name)}`;
        const unmet = unmetPaths(when as ConditionDoc[], this.options.now_ms);
        if (unmet !== null)
          return `${about}: ${unmetWords(unmet)}, so it describes ${unmet.never ? "no call" : "only calls with a value that cannot be compared"}`;
        if (unless === undefined) return null;
        const covered = this.coveredBy({ match, when: when as ConditionDoc[] }, [
          { match: unless, when: [] },
        ]);
        return covered === null ? null : `${about}: unless excludes every call that it describes`;
      }),
    ];
  }

  /** Runs checks until time runs out; skips undecidable ones. */
  private each<T>(list: readonly T[], ask: (one: T) => string | null): string[] {
    const found: string[] = [];
    for (const one of list) {
      if (this.options.budget.late()) break;
      try {
        const text = ask(one);
        if (text !== null) found.push(text);
      } catch (error) {
        if (!(error instanceof UndecidableError)) throw error;
      }
    }
    return found;
  }

  private unmetConditions(entry: ProverEntry): string | null {
    const unmet = unmetPaths(entry.when, this.options.now_ms);
    if (unmet === null) return null;
    this.unmet.add(entry);
    const left =
      entry.action === "allow" || unmet.never
        ? "it never applies"
        : "it applies only to a value that cannot be compared";
    return `${KINDS[entry.section]} ${entry.id}: ${unmetWords(unmet)}, so ${left}`;
  }

  /** Returns a warning if stricter entries apply to every call that this entry matches. */
  private shadowing(entry: ProverEntry): string | null {
    if (entry.action === "deny" || this.unmet.has(entry)) return null;
    const covering = this.entries.filter(
      (other) =>
        other.section === "rules" &&
        other !== entry &&
        !this.unmet.has(other) &&
        (other.action === "deny" || this.outranksAllow(entry, other)),
    );
    const by = this.coveredBy(entry, covering);
    if (by === null) return null;
    const ids = by.map(({ id }) => id);
    const denied = by.every(({ action }) => action === "deny");
    const how = denied ? "denied" : "decided more strictly";
    return `${KINDS[entry.section]} ${entry.id}: it never decides, because every call that it matches is ${how} by ${
      ids.length === 1 ? "rule" : "rules"
    } ${ids.join(", ")}`;
  }

  /**
   * An allow can override only windows and the risk score. In a policy without either, a required approval makes the
   * allow useless.
   */
  private outranksAllow(entry: ProverEntry, other: ProverEntry): boolean {
    const { risk, windows } = this.policy;
    return (
      entry.action === "allow" && other.action === "require_approval" && risk === null && windows.size === 0
    );
  }

  /** Entries that together cover every call of the given one. Null if a call remains or cannot be ruled out. */
  private coveredBy<C extends Asked>(
    one: Asked & { action?: ProverEntry["action"] },
    others: readonly C[],
  ): C[] | null {
    const near = others.filter(({ match }) => mayOverlap(one.match.tool, match.tool));
    if (near.length === 0 || near.length > MAX_COVERING) return null;
    const globs = [one, ...near].flatMap(({ match }) => (match.tool === undefined ? [] : [match.tool]));
    const classes = toolClasses(globs, this.options.labels).filter(({ tool }) =>
      matchesTool(tool)(one.match),
    );
    if (classes.length === 0) return null;
    const used = new Set<C>();
    for (const tools of classes) if (this.isLeft(one, near, tools, used)) return null;
    return near.filter((other) => used.has(other));
  }

  private isLeft<C extends Asked>(
    one: Asked & { action?: ProverEntry["action"] },
    others: readonly C[],
    tools: ToolClass,
    used: Set<C>,
  ): boolean {
    const concerned = matchesTool(tools.tool);
    const domain = new CallDomain([], tools.labels);
    // Leaves out patterns, because a text too long for a pattern counts as a match.
    const mine = domain.literals({ match: one.match, when: one.when.filter((each) => !isPattern(each)) });
    const covers = others
      .filter(({ match }) => concerned(match))
      .map((entry) => ({ entry, literals: domain.literals(entry) }));
    domain.close(this.options.now_ms);
    if (domain.variables.some(({ atoms }) => atoms.length === 0)) return true;
    const isOut = one.action === "allow" ? isNotSure : isFalse;
    let nodes = 0;
    const cut = (chosen: ChosenAtoms) => {
      if (++nodes > MAX_NODES) throw new UndecidableError("there are too many kinds of calls");
      if (nodes % 1_024 === 0 && this.options.budget.late())
        throw new UndecidableError("the time limit was reached");
      if (isOut(mine, chosen)) return true;
      const cover = covers.find(({ literals }) => evaluateConjunction(literals, chosen) === true);
      if (cover !== undefined) used.add(cover.entry);
      return cover !== undefined;
    };
    const first = [...mine, ...covers.flatMap(({ literals }) => literals)];
    return exploreProduct(orderVariables(domain.variables, first), cut, () => true, this.options.budget);
  }
}

interface Asked {
  match: ProverEntry["match"];
  when: readonly ConditionDoc[];
}

const isPattern = ({ op }: ConditionDoc): boolean => op.endsWith("matches");
const isFalse = (literals: readonly TestLiteral[], chosen: ChosenAtoms): boolean =>
  evaluateConjunction(literals, chosen) === false;

/** An incomparable value never satisfies an allow. */
function isNotSure(literals: readonly TestLiteral[], chosen: ChosenAtoms): boolean {
  return literals.some(({ variable, test }) => (chosen.get(variable)?.truths[test] ?? 1) !== 1);
}

/** True if some name could match both globs, by their literal prefixes. */
function mayOverlap(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return true;
  const [x, y] = [a, b].map((glob) => /^[^*?{[\\]*/.exec(glob)![0]) as [string, string];
  return x.startsWith(y) || y.startsWith(x);
}

interface UnmetConditions {
  paths: string[];
  single: boolean;
  /** No value meets them, not even an incomparable one. */
  never: boolean;
}

/** Conditions on one argument that no value meets together. Null if every argument has a value that does. */
function unmetPaths(when: readonly ConditionDoc[], now_ms: number): UnmetConditions | null {
  if (when.length === 0) return null;
  const domain = new CallDomain([], null);
  const asked = when.map((condition) => {
    const [literal] = domain.literals({ match: {}, when: [condition] });
    return { condition, literal: literal! };
  });
  domain.close(now_ms);
  for (const variable of domain.variables) {
    const own = asked.filter(({ literal }) => literal.variable === variable);
    if (own.length === 0 || variable.atoms.length === 0) continue;
    const meets = (truth: (value: number) => boolean) =>
      variable.atoms.some(({ truths }) => own.every(({ literal }) => truth(truths[literal.test]!)));
    if (meets((truth) => truth === 1)) continue;
    const never = !meets((truth) => truth !== 0) && !own.some(({ condition }) => isPattern(condition));
    const paths = [...new Set(own.map(({ condition }) => condition.path))];
    return { paths, single: own.length === 1, never };
  }
  return null;
}

function unmetWords({ paths, single }: UnmetConditions): string {
  const on = paths.join(" and ");
  return single ? `no value meets its condition on ${on}` : `no value meets all of its conditions on ${on}`;
}

/**
 * Entries of a policy that can never decide a call: conditions that no value meets, and entries that stricter ones
 * cover completely. Where a question cannot be decided, nothing is said: a warning here is never wrong.
 */
import type { ToolLabels } from "../../manifest/labels.ts";
import type { Policy } from "../compile.ts";
import { isOpen } from "../hours.ts";
import { unmatchedEntries } from "../unmatched.ts";
import { type ToolClass, toolClasses } from "./calls.ts";
import { concerning } from "./claims.ts";
import { Domain, type Literal } from "./domain.ts";
import { type ConditionDoc, type Entry, entriesOf } from "./entries.ts";
import { Undecidable } from "./machine.ts";
import { type Chosen, explore, holds, ordered, type SearchBudget } from "./search.ts";

interface WarningOptions {
  /** Every declared tool; empty where no manifest is at hand. */
  labels: ReadonlyMap<string, ToolLabels>;
  now_ms: number;
  budget: SearchBudget;
}

/** A reader does not read further; the rest is counted. */
const MOST_WARNINGS = 50;
/** Choices that one question may look at, and entries that it may hold against one. */
const MOST_NODES = 4_000;
const MOST_COVERING = 60;

const KINDS: Record<Entry["section"], string> = {
  rules: "rule",
  flows: "flow",
  limits: "limit",
  budgets: "budget",
  windows: "window",
  freezes: "freeze",
};

/** A sentence for each entry that can never take effect, with what to look at. */
export function policyWarnings(policy: Policy, options: WarningOptions): string[] {
  const found = [
    ...unmatchedEntries(policy.doc, options.labels),
    ...idleTimes(policy, options.now_ms),
    ...new IdleSearch(policy, options).warnings(),
  ];
  const shown = found.slice(0, MOST_WARNINGS);
  const left = found.length - shown.length;
  return left === 0 ? shown : [...shown, `and ${left} more`];
}

function idleTimes({ doc, windows, freezes }: Policy, now_ms: number): string[] {
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
  private readonly policy: Policy;
  private readonly options: WarningOptions;
  private readonly entries: readonly Entry[];
  /** Entries whose conditions no value meets. */
  private readonly unmet = new Set<Entry>();

  constructor(policy: Policy, options: WarningOptions) {
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
        return covered === null ? null : `${about}: unless excepts every call that it describes`;
      }),
    ];
  }

  /** One question after the other while there is time; one that cannot be decided is passed over. */
  private each<T>(list: readonly T[], ask: (one: T) => string | null): string[] {
    const found: string[] = [];
    for (const one of list) {
      if (this.options.budget.late()) break;
      try {
        const text = ask(one);
        if (text !== null) found.push(text);
      } catch (error) {
        if (!(error instanceof Undecidable)) throw error;
      }
    }
    return found;
  }

  private unmetConditions(entry: Entry): string | null {
    const unmet = unmetPaths(entry.when, this.options.now_ms);
    if (unmet === null) return null;
    this.unmet.add(entry);
    const left =
      entry.action === "allow" || unmet.never
        ? "it never applies"
        : "it applies only to a value that cannot be compared";
    return `${KINDS[entry.section]} ${entry.id}: ${unmetWords(unmet)}, so ${left}`;
  }

  /** Whether entries that are always stricter apply to every call that this one matches. */
  private shadowing(entry: Entry): string | null {
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

  /** An allow lifts windows and the risk score; a policy with neither leaves it nothing to lift under an approval. */
  private outranksAllow(entry: Entry, other: Entry): boolean {
    const { risk, windows } = this.policy;
    return (
      entry.action === "allow" && other.action === "require_approval" && risk === null && windows.size === 0
    );
  }

  /** Those of the others that cover every call of the one; null where a call is left, or cannot be ruled out. */
  private coveredBy<C extends Asked>(
    one: Asked & { action?: Entry["action"] },
    others: readonly C[],
  ): C[] | null {
    const near = others.filter(({ match }) => mayOverlap(one.match.tool, match.tool));
    if (near.length === 0 || near.length > MOST_COVERING) return null;
    const globs = [one, ...near].flatMap(({ match }) => (match.tool === undefined ? [] : [match.tool]));
    const classes = toolClasses(globs, this.options.labels).filter(({ tool }) => concerning(tool)(one.match));
    if (classes.length === 0) return null;
    const used = new Set<C>();
    for (const tools of classes) if (this.isLeft(one, near, tools, used)) return null;
    return near.filter((other) => used.has(other));
  }

  private isLeft<C extends Asked>(
    one: Asked & { action?: Entry["action"] },
    others: readonly C[],
    tools: ToolClass,
    used: Set<C>,
  ): boolean {
    const concerned = concerning(tools.tool);
    const domain = new Domain([], tools.labels);
    // A text that is too long for a pattern counts as a match of it: the question is asked without patterns.
    const mine = domain.literals({ match: one.match, when: one.when.filter((each) => !isPattern(each)) });
    const covers = others
      .filter(({ match }) => concerned(match))
      .map((entry) => ({ entry, literals: domain.literals(entry) }));
    domain.close(this.options.now_ms);
    if (domain.variables.some(({ atoms }) => atoms.length === 0)) return true;
    const isOut = one.action === "allow" ? isNotSure : isFalse;
    let nodes = 0;
    const cut = (chosen: Chosen) => {
      if (++nodes > MOST_NODES) throw new Undecidable("there are too many kinds of calls");
      if (nodes % 1_024 === 0 && this.options.budget.late()) throw new Undecidable("the time was used up");
      if (isOut(mine, chosen)) return true;
      const cover = covers.find(({ literals }) => holds(literals, chosen) === true);
      if (cover !== undefined) used.add(cover.entry);
      return cover !== undefined;
    };
    const first = [...mine, ...covers.flatMap(({ literals }) => literals)];
    return explore(ordered(domain.variables, first), cut, () => true, this.options.budget);
  }
}

interface Asked {
  match: Entry["match"];
  when: readonly ConditionDoc[];
}

const isPattern = ({ op }: ConditionDoc): boolean => op.endsWith("matches");
const isFalse = (literals: readonly Literal[], chosen: Chosen): boolean => holds(literals, chosen) === false;

/** An allow is not earned by what cannot be compared. */
function isNotSure(literals: readonly Literal[], chosen: Chosen): boolean {
  return literals.some(({ variable, test }) => (chosen.get(variable)?.truths[test] ?? 1) !== 1);
}

/** Whether some name could match both globs, by the letters before the first place that may vary. */
function mayOverlap(a: string | undefined, b: string | undefined): boolean {
  if (a === undefined || b === undefined) return true;
  const [x, y] = [a, b].map((glob) => glob.replace(/[*?{[\\].*$/s, "")) as [string, string];
  return x.startsWith(y) || y.startsWith(x);
}

interface UnmetConditions {
  paths: string[];
  single: boolean;
  /** Nothing at all meets them, not even a value that cannot be compared. */
  never: boolean;
}

/** The conditions on one argument that no value meets together; null where each argument has a value that does. */
function unmetPaths(when: readonly ConditionDoc[], now_ms: number): UnmetConditions | null {
  if (when.length === 0) return null;
  const domain = new Domain([], null);
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

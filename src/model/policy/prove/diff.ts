/**
 * Two policies compared over all calls: every class of call that the second decides differently, each with a call that
 * was run through the decision function under both. Where the question is too large the answer says what is missing.
 */
import { canonical } from "../../../kernel/canonical.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import type { PolicyCall } from "../call.ts";
import { isTimed, type Policy } from "../compile.ts";
import { type Evaluation, evaluatePolicy } from "../evaluate.ts";
import type { RuleAction } from "../finding.ts";
import { differencesBeside } from "./beside.ts";
import {
  type Concrete,
  concrete,
  type ExampleInput,
  exampleOf,
  type ToolClass,
  toolClasses,
} from "./calls.ts";
import { concerning } from "./claims.ts";
import { Domain, type Literal } from "./domain.ts";
import { type Entry, entriesOf, settingsOf } from "./entries.ts";
import { countersFor, type Level, levelsOf } from "./levels.ts";
import { Undecidable } from "./machine.ts";
import { type Chosen, explore, holds, ordered, type SearchBudget } from "./search.ts";
import { compareTerms, toldTerms } from "./terms.ts";

type Direction = "looser" | "stricter" | "other";

export interface Side {
  decision: RuleAction;
  rules: string[];
  reasons: string[];
  /** Whose approval it asks for, in words, where that is all that differs. */
  approval?: string;
}

export interface DiffClass {
  /** The first of the declared tools of the class, by name. */
  tools: string[];
  /** How many declared tools it holds. */
  declared: number;
  /** A name that a tool without a manifest could have, where the class holds such tools. */
  undeclared?: string;
  from: RuleAction;
  to: RuleAction;
  example: ExampleInput;
  /** What had been counted before the call, where the answer depends on it. */
  counted?: string[];
  a: Side;
  b: Side;
  /** How many kinds of calls the class holds. */
  kinds: number;
}

export interface PolicyDiff {
  looser: DiffClass[];
  stricter: DiffClass[];
  other: DiffClass[];
  complete: boolean;
  covered: { tools: number; of: number; kinds: number; reasons: string[] };
}

const MOST_CLASSES = 500;
const SHOWN_TOOLS = 10;
const MOST_REASONS = 20;
const RANK: Record<RuleAction, number> = { allow: 0, require_approval: 1, deny: 2 };

export interface Comparing {
  labels: ReadonlyMap<string, ToolLabels>;
  now_ms: number;
  budget: SearchBudget;
  /** How many kinds of calls one class of tools may take of the budget. */
  share: number;
}

export function diffPolicies(a: Policy, b: Policy, how: Comparing): PolicyDiff {
  return new Comparison(a, b, how).run();
}

interface Part {
  policy: Policy;
  entry: Entry;
  literals: Literal[];
}

type Found = DiffClass & { direction: Direction; seen: Set<ToolClass> };

class Comparison {
  private readonly classes = new Map<string, Found>();
  private readonly entries: readonly (readonly Entry[])[];
  private readonly settled: boolean;
  private readonly checksContent: boolean;
  private readonly reasons = new Set<string>();
  private kinds = 0;
  private readonly a: Policy;
  private readonly b: Policy;
  private readonly how: Comparing;

  constructor(a: Policy, b: Policy, how: Comparing) {
    this.a = a;
    this.b = b;
    this.how = how;
    this.entries = [entriesOf(a), entriesOf(b)];
    this.checksContent = a.doc.content !== undefined || b.doc.content !== undefined;
    this.settled = settingsOf(a.doc) === settingsOf(b.doc);
    for (const reason of differencesBeside(a.doc, b.doc)) this.reasons.add(reason);
  }

  run(): PolicyDiff {
    let done = 0;
    let all: ToolClass[] = [];
    try {
      const globs = this.entries
        .flat()
        .flatMap(({ match }) => (match.tool === undefined ? [] : [match.tool]));
      all = toolClasses(globs, this.how.labels);
    } catch (error) {
      this.giveUp(error);
    }
    for (const tools of all) {
      try {
        this.compareTools(tools);
        done++;
      } catch (error) {
        this.giveUp(error);
      }
    }
    const found = [...this.classes.values()];
    const of = (direction: Direction) =>
      found.filter((one) => one.direction === direction).map(({ direction: _, seen: __, ...one }) => one);
    return {
      looser: of("looser"),
      stricter: of("stricter"),
      other: of("other"),
      complete: this.reasons.size === 0,
      covered: { tools: done, of: all.length, kinds: this.kinds, reasons: [...this.reasons] },
    };
  }

  private giveUp(error: unknown): void {
    if (!(error instanceof Undecidable)) throw error;
    if (this.reasons.size < MOST_REASONS) this.reasons.add(error.message);
  }

  private compareTools(tools: ToolClass): void {
    const concerned = concerning(tools.tool);
    const domain = new Domain([this.a, this.b], tools.labels);
    const [mine, other] = this.entries.map((list) => list.filter(({ match }) => concerned(match)));
    const texts = [new Set(mine!.map(({ text }) => text)), new Set(other!.map(({ text }) => text))];
    const changed = [
      ...mine!.filter(({ text }) => !texts[1]!.has(text)).map((entry) => ({ policy: this.a, entry })),
      ...other!.filter(({ text }) => !texts[0]!.has(text)).map((entry) => ({ policy: this.b, entry })),
    ];
    if (this.settled && changed.length === 0) return;
    const changes = changed.map(
      (one): Part => ({ ...one, literals: domain.addEntry(one.policy, one.entry) }),
    );
    const kept = mine!
      .filter(({ text }) => texts[1]!.has(text))
      .map((entry): Part => ({ policy: this.a, entry, literals: domain.addEntry(this.a, entry) }));
    domain.close(this.how.now_ms);
    const denying = kept.filter(({ entry }) => entry.section === "rules" && entry.action === "deny");
    const cut = (chosen: Chosen) =>
      (this.settled && changes.every(({ literals }) => holds(literals, chosen) === false)) ||
      denying.some(({ literals }) => holds(literals, chosen) === true);
    const { budget, share } = this.how;
    const own: SearchBudget = { cells: Math.min(share, budget.cells), late: budget.late };
    const before = own.cells;
    try {
      explore(
        ordered(
          domain.variables,
          changes.flatMap(({ literals }) => literals),
        ),
        cut,
        (chosen) => {
          const speaking = changes.filter(({ literals }) => holds(literals, chosen) === true);
          this.compareCall(tools, chosen, speaking);
          return false;
        },
        own,
      );
    } finally {
      this.kinds += before - Math.max(0, own.cells);
      budget.cells -= before - own.cells;
    }
  }

  private compareCall(tools: ToolClass, chosen: Chosen, speaking: readonly Part[]): void {
    for (const pick of [0, 1, 2]) {
      const one = concrete(tools, chosen, pick);
      const variants =
        this.settled || !this.checksContent ? [one] : [one, ...withContent(one, [this.a, this.b])];
      if (!this.settled && this.checksContent) this.noteSize(one, variants);
      const levels = levelsOf(this.a, this.b, speaking, one.call);
      for (const variant of variants) for (const level of levels) this.compareAt(tools, variant, level);
      // Another value of the kind is tried only where a content check spoke on this one alone.
      if (one.alone || !this.checksContent || !this.contentSpoke(one)) return;
    }
    this.reasons.add("a content check speaks on every value that was tried");
  }

  /** Where the bounds differ, a call of the kind that only one of them takes is among the variants, or it is said that none is. */
  private noteSize(one: Concrete, variants: readonly Concrete[]): void {
    const [least, most] = [this.a, this.b]
      .map(({ content }) => content.max_bytes ?? Number.POSITIVE_INFINITY)
      .sort((x, y) => x - y) as [number, number];
    const sizes = variants.map(({ call }) => sizeOf(call));
    if (sizeOf(one.call) <= least && sizes.slice(1, 1 + SAMPLES.length).some((size) => size > least))
      this.reasons.add("content.max_bytes leaves no room to try what content checks look for");
    if (least === most || sizeOf(one.call) > most || sizes.some((size) => size > least && size <= most))
      return;
    this.reasons.add(`content.max_bytes differs, and no call of ${least + 1} bytes was made of every kind`);
  }

  private contentSpoke(one: Concrete): boolean {
    return [this.a, this.b].some((policy) =>
      evaluatePolicy(policy, one.call, one.at_ms).findings.some(
        ({ stage, action }) => stage === "content" && action !== "warn",
      ),
    );
  }

  private compareAt(tools: ToolClass, one: Concrete, level: Level): void {
    const was = evaluatePolicy(this.a, one.call, one.at_ms, countersFor(level, "a", one.at_ms));
    const is = evaluatePolicy(this.b, one.call, one.at_ms, countersFor(level, "b", one.at_ms));
    const direction = directionOf(this.a, this.b, was, is);
    if (direction === null) return;
    const key = JSON.stringify([direction, was.action, is.action, was.rules, is.rules]);
    const known = this.classes.get(key);
    if (known !== undefined) {
      known.kinds++;
      name(known, tools);
      return;
    }
    if (this.classes.size >= MOST_CLASSES)
      throw new Undecidable("there are too many classes to tell one by one");
    const found: Found = {
      direction,
      seen: new Set(),
      tools: [],
      declared: 0,
      from: was.action,
      to: is.action,
      example: exampleOf(one, isTimed(this.a) || isTimed(this.b)),
      ...(level.told.length === 0 ? {} : { counted: level.told }),
      a: sideOf(this.a, was, is),
      b: sideOf(this.b, is, was),
      kinds: 1,
    };
    name(found, tools);
    this.classes.set(key, found);
  }
}

function name(found: Found, tools: ToolClass): void {
  if (found.seen.has(tools)) return;
  found.seen.add(tools);
  found.declared += tools.declared.length;
  found.tools.push(...tools.declared.slice(0, SHOWN_TOOLS - found.tools.length));
  if (tools.declared.length === 0) found.undeclared ??= tools.tool;
}

/** The tools of a class in words: those that there are, and those that there could be. */
export function toldTools({ tools, declared, undeclared }: ToldTools): string[] {
  const more = declared - tools.length;
  return [
    ...tools,
    ...(more > 0 ? [`${more} more`] : []),
    ...(undeclared === undefined
      ? []
      : [`${declared === 0 ? "only " : ""}tools without a manifest, such as ${undeclared}`]),
  ];
}

type ToldTools = { readonly tools: readonly string[]; declared: number; undeclared?: string | undefined };

function sideOf(policy: Policy, { action, rules, reasons, approval }: Evaluation, other: Evaluation): Side {
  const told = approval === null || other.approval === null ? {} : { approval: toldTerms(policy, approval) };
  return { decision: action, rules, reasons: reasons.slice(0, MOST_REASONS), ...told };
}

function directionOf(a: Policy, b: Policy, was: Evaluation, is: Evaluation): Direction | null {
  const by = RANK[is.action] - RANK[was.action];
  if (by !== 0) return by < 0 ? "looser" : "stricter";
  if (was.approval === null || is.approval === null) return null;
  return compareTerms(a, was.approval, b, is.approval);
}

function sizeOf({ args }: PolicyCall): number {
  return Buffer.byteLength(canonical(args));
}

/** No call is made to be larger than this; a larger bound that changes is said not to be tried. */
const MOST_FILL = 1_000_000;

/** A secret, personal data and an injection. */
const SAMPLES = ["AKIAIOSFODNN7EXAMPLF", "jane.doe@example.com", "ignore all previous instructions"];

/** The same call with what content checks look for, in an argument that nothing else reads. */
function withContent(one: Concrete, policies: readonly Policy[]): Concrete[] {
  const { args } = one.call;
  if (args === null || typeof args !== "object" || Array.isArray(args)) return [];
  const with_ = (text: string): Concrete => ({
    ...one,
    call: { ...one.call, args: { ...args, text_of_the_call: text } },
  });
  const most = policies.flatMap(({ content }) =>
    content.max_bytes === undefined ? [] : [content.max_bytes],
  );
  // One byte more than a policy takes: where another takes more, this is what it takes.
  const room = 1 - sizeOf(with_("").call);
  const fills = most.map((bytes) => bytes + room).filter((chars) => chars >= 0 && chars <= MOST_FILL);
  return [
    ...SAMPLES.map(with_),
    ...fills.map((chars) => with_("x ".repeat(Math.ceil(chars / 2)).slice(0, chars))),
  ];
}

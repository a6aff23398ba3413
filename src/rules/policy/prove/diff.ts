/**
 * Compares two policies over all calls. Reports every class of calls that the second policy decides differently, each
 * with an example that ran through the decision function under both. If the comparison is too large, the result names
 * the missing parts.
 */
import type * as z from "zod";
import { toCanonicalJson } from "../../../kernel/json/canonical.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import type { PolicyCall } from "../call.ts";
import { type CompiledPolicy, isTimed } from "../compile.ts";
import { evaluatePolicy, type PolicyEvaluation } from "../evaluate.ts";
import type { RuleAction } from "../finding.ts";
import { UndecidableError } from "./automata/machine.ts";
import { type ConcreteCall, type ToolClass, toConcreteCall, toExampleInput, toolClasses } from "./calls.ts";
import { matchesTool } from "./claims.ts";
import { compareTerms, describeTerms } from "./compare-terms.ts";
import { assumedFlows, type CountLevel, countersFor, levelsOf } from "./count-levels.ts";
import type { policyDiffSchema } from "./diff-schema.ts";
import { CallDomain, type TestLiteral } from "./domain.ts";
import { entriesOf, type ProverEntry, settingsOf } from "./entries.ts";
import { nonArgumentDifferences } from "./non-argument-diff.ts";
import {
  type ChosenAtoms,
  evaluateConjunction,
  exploreProduct,
  orderVariables,
  type SearchBudget,
} from "./search.ts";

type Direction = "looser" | "stricter" | "other";

export type PolicyDiff = z.output<typeof policyDiffSchema>;
export type DiffClass = PolicyDiff["looser"][number];
export type DiffSide = DiffClass["a"];

const MAX_CLASSES = 500;
const SHOWN_TOOLS = 10;
const MAX_DIFF_REASONS = 20;
const RANK: Record<RuleAction, number> = { allow: 0, require_approval: 1, deny: 2 };

export interface DiffOptions {
  labels: ReadonlyMap<string, ToolLabels>;
  now_ms: number;
  budget: SearchBudget;
  /** Maximum kinds of calls that one class of tools can take from the budget. */
  share: number;
}

export function diffPolicies(a: CompiledPolicy, b: CompiledPolicy, how: DiffOptions): PolicyDiff {
  return new Comparison(a, b, how).run();
}

interface Part {
  policy: CompiledPolicy;
  entry: ProverEntry;
  literals: TestLiteral[];
}

type Found = DiffClass & { direction: Direction; seen: Set<ToolClass> };

class Comparison {
  private readonly classes = new Map<string, Found>();
  private readonly entries: readonly (readonly ProverEntry[])[];
  private readonly settled: boolean;
  private readonly checksContent: boolean;
  private readonly reasons = new Set<string>();
  private kinds = 0;
  private readonly a: CompiledPolicy;
  private readonly b: CompiledPolicy;
  private readonly how: DiffOptions;

  constructor(a: CompiledPolicy, b: CompiledPolicy, how: DiffOptions) {
    this.a = a;
    this.b = b;
    this.how = how;
    this.entries = [entriesOf(a), entriesOf(b)];
    this.checksContent = a.doc.content !== undefined || b.doc.content !== undefined;
    this.settled = settingsOf(a.doc) === settingsOf(b.doc);
    for (const reason of nonArgumentDifferences(a.doc, b.doc)) this.reasons.add(reason);
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
    if (!(error instanceof UndecidableError)) throw error;
    if (this.reasons.size < MAX_DIFF_REASONS) this.reasons.add(error.message);
  }

  private compareTools(tools: ToolClass): void {
    const concerned = matchesTool(tools.tool);
    const domain = new CallDomain([this.a, this.b], tools.labels);
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
    const cut = (chosen: ChosenAtoms) =>
      (this.settled && changes.every(({ literals }) => evaluateConjunction(literals, chosen) === false)) ||
      denying.some(({ literals }) => evaluateConjunction(literals, chosen) === true);
    const { budget, share } = this.how;
    const own: SearchBudget = { cells: Math.min(share, budget.cells), late: budget.late };
    const before = own.cells;
    try {
      exploreProduct(
        orderVariables(
          domain.variables,
          changes.flatMap(({ literals }) => literals),
        ),
        cut,
        (chosen) => {
          const speaking = changes.filter(({ literals }) => evaluateConjunction(literals, chosen) === true);
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

  private compareCall(tools: ToolClass, chosen: ChosenAtoms, speaking: readonly Part[]): void {
    for (const pick of [0, 1, 2]) {
      const one = toConcreteCall(tools, chosen, pick);
      const variants =
        this.settled || !this.checksContent ? [one] : [one, ...withContent(one, [this.a, this.b])];
      if (!this.settled && this.checksContent) this.noteSize(one, variants);
      const levels = levelsOf(this.a, this.b, speaking, one.call);
      for (const variant of variants) for (const level of levels) this.compareAt(tools, variant, level);
      // Tries another value of the kind only if a content check decided because of this value.
      if (one.alone || !this.checksContent || !this.contentSpoke(one)) return;
    }
    this.reasons.add("a content check matches every value that was tried");
  }

  /**
   * If the policies differ in `max_bytes`, a variant must be accepted by only one of them. Otherwise records that no
   * such call was tried.
   */
  private noteSize(one: ConcreteCall, variants: readonly ConcreteCall[]): void {
    const [least, most] = [this.a, this.b]
      .map(({ content }) => content.max_bytes ?? Number.POSITIVE_INFINITY)
      .sort((x, y) => x - y) as [number, number];
    const sizes = variants.map(({ call }) => sizeOf(call));
    if (sizeOf(one.call) <= least && sizes.slice(1, 1 + SAMPLES.length).some((size) => size > least))
      this.reasons.add("content.max_bytes is too small to test the content checks");
    if (least === most || sizeOf(one.call) > most || sizes.some((size) => size > least && size <= most))
      return;
    this.reasons.add(
      `content.max_bytes differs, and no call of ${least + 1} bytes could be built for every kind`,
    );
  }

  private contentSpoke(one: ConcreteCall): boolean {
    return [this.a, this.b].some((policy) =>
      evaluatePolicy(policy, one.call, one.at_ms).findings.some(
        ({ stage, action }) => stage === "content" && action !== "warn",
      ),
    );
  }

  private compareAt(tools: ToolClass, one: ConcreteCall, level: CountLevel): void {
    const decide = (policy: CompiledPolicy, side: "a" | "b") => {
      const call = { ...one.call, assumed_flows: assumedFlows(level, side) };
      return evaluatePolicy(policy, call, one.at_ms, countersFor(level, side, one.at_ms));
    };
    const [was, is] = [decide(this.a, "a"), decide(this.b, "b")];
    const direction = directionOf(this.a, this.b, was, is);
    if (direction === null) return;
    const key = JSON.stringify([direction, was.action, is.action, was.rules, is.rules]);
    const known = this.classes.get(key);
    if (known !== undefined) {
      known.kinds++;
      name(known, tools);
      return;
    }
    if (this.classes.size >= MAX_CLASSES) throw new UndecidableError("there are too many classes to list");
    const found: Found = {
      direction,
      seen: new Set(),
      tools: [],
      declared: 0,
      from: was.action,
      to: is.action,
      example: toExampleInput(one, isTimed(this.a) || isTimed(this.b)),
      ...(level.texts.length === 0 ? {} : { counted: level.texts }),
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

/** Lists the tools of a class: declared ones, and a possible undeclared one. */
export function describeTools({ tools, declared, undeclared }: ToldTools): string[] {
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

function sideOf(
  policy: CompiledPolicy,
  { action, rules, reasons, approval }: PolicyEvaluation,
  other: PolicyEvaluation,
): DiffSide {
  const required =
    approval === null || other.approval === null ? {} : { approval: describeTerms(policy, approval) };
  return { decision: action, rules, reasons: reasons.slice(0, MAX_DIFF_REASONS), ...required };
}

function directionOf(
  a: CompiledPolicy,
  b: CompiledPolicy,
  was: PolicyEvaluation,
  is: PolicyEvaluation,
): Direction | null {
  const by = RANK[is.action] - RANK[was.action];
  if (by !== 0) return by < 0 ? "looser" : "stricter";
  if (was.approval === null || is.approval === null) return null;
  return compareTerms(a, was.approval, b, is.approval);
}

function sizeOf({ args }: PolicyCall): number {
  return Buffer.byteLength(toCanonicalJson(args));
}

/** Maximum size of a generated call. The result mentions changes of larger bounds as untested. */
const MAX_FILL_CHARS = 1_000_000;

/** A secret, personal data and an injection. */
const SAMPLES = ["AKIAIOSFODNN7EXAMPLF", "jane.doe@example.com", "ignore all previous instructions"];

/** Variants of the call with content that checks look for, in an argument that no condition reads. */
function withContent(one: ConcreteCall, policies: readonly CompiledPolicy[]): ConcreteCall[] {
  const { args } = one.call;
  if (args === null || typeof args !== "object" || Array.isArray(args)) return [];
  const with_ = (text: string): ConcreteCall => ({
    ...one,
    call: { ...one.call, args: { ...args, text_of_the_call: text } },
  });
  const most = policies.flatMap(({ content }) =>
    content.max_bytes === undefined ? [] : [content.max_bytes],
  );
  // One byte more than a policy accepts, in case the other policy accepts more.
  const room = 1 - sizeOf(with_("").call);
  const fills = most.map((bytes) => bytes + room).filter((chars) => chars >= 0 && chars <= MAX_FILL_CHARS);
  return [
    ...SAMPLES.map(with_),
    ...fills.map((chars) => with_("x ".repeat(Math.ceil(chars / 2)).slice(0, chars))),
  ];
}

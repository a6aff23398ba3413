/** Finds policy entries that match no declared tool, usually because of a typo in a name or label. */
import { compileGlob, globAlternatives } from "../../../kernel/text/glob.ts";
import type { ToolLabels } from "../../manifest/labels.ts";
import { didYouMean } from "../../schema-problems.ts";
import { MatchIndex } from "../match.ts";
import type { MatchDoc, PolicyDoc } from "../schema.ts";
import { NO_CALL } from "./domain.ts";

type DeclaredTools = ReadonlyMap<string, ToolLabels>;

const MATCHING_SECTIONS = {
  rules: "rule",
  limits: "limit",
  budgets: "budget",
  windows: "window",
  freezes: "freeze",
} as const;
const LABEL_FIELDS = ["effect", "data_class", "source", "sink"] as const;

/** One sentence for each part of the policy that matches no declared tool; empty if no tool is declared. */
export function unmatchedEntries(doc: PolicyDoc, tools: DeclaredTools): string[] {
  if (tools.size === 0) return [];
  const named = namedTools(tools);
  const sections = Object.entries(MATCHING_SECTIONS) as [keyof typeof MATCHING_SECTIONS, string][];
  const entries = sections.flatMap(([section, kind]) =>
    (doc[section] ?? []).flatMap(({ id, match = {} }) => {
      const problem = named.problem(match.tool);
      const words = problem === null ? labelProblem(match, tools) : toolWords(problem);
      return words === null ? [] : [`${kind} ${id}: match.${words}`];
    }),
  );
  const flows = (doc.flows ?? []).flatMap(({ id, after, then }) =>
    Object.entries({ after, then }).flatMap(([side, match]) => {
      const problem = named.problem(match.tool);
      if (problem?.some) return [`flow ${id}: ${side}.${toolWords(problem)}`];
      if (problem === null && labelProblem(match, tools) === null) return [];
      const hint = problem?.hint ?? "";
      return [`flow ${id}: ${side} matches no declared tool, so the flow never takes effect${hint}`];
    }),
  );
  const claims = (doc.claims ?? []).flatMap(({ name, match, unless }) =>
    Object.entries({ match, unless }).flatMap(([side, one]) => {
      const problem = named.problem(one?.tool);
      return problem === null ? [] : [`claim ${JSON.stringify(name)}: ${side}.${toolWords(problem)}`];
    }),
  );
  return [...entries, ...flows, ...claims];
}

interface ToolProblem {
  /** The glob, or its alternative, that matches no declared tool. */
  glob: string;
  /** Suggestion of the nearest declared name, or empty. */
  hint: string;
  /** True if other alternatives of the glob match. */
  some: boolean;
}

function toolWords({ glob, hint, some }: ToolProblem): string {
  const what = JSON.stringify(glob);
  return some
    ? `tool names ${what}, which matches no declared tool${hint}`
    : `tool ${what} matches no declared tool${hint}`;
}

/** Matches tool globs with the declared names, once per distinct glob. */
function namedTools(tools: DeclaredTools): { problem(glob: string | undefined): ToolProblem | null } {
  const names = [...tools.keys()];
  const groups = [...new Set(names.map((name) => `${name.slice(0, name.lastIndexOf(".") + 1)}*`))];
  const fits = (source: string) => {
    if (tools.has(source)) return true;
    const glob = compileGlob(source);
    return names.some((name) => glob.test(name));
  };
  const hint = (glob: string) => didYouMean(glob, glob.includes("*") ? groups : names);
  const known = new Map<string, ToolProblem | null>();
  const look = (glob: string): ToolProblem | null => {
    if (!fits(glob)) return { glob, hint: hint(glob), some: false };
    // Reports an alternative only if it is close to a declared name; others can be meant for future tools.
    const slip = globAlternatives(glob).find((one) => one !== glob && !fits(one) && hint(one) !== "");
    return slip === undefined ? null : { glob: slip, hint: hint(slip), some: true };
  };
  return {
    problem(glob) {
      if (glob === undefined) return null;
      const found = known.get(glob);
      if (found !== undefined) return found;
      const problem = look(glob);
      known.set(glob, problem);
      return problem;
    },
  };
}

/** Reports labels in the entry that no declared tool has. */
function labelProblem(match: MatchDoc, tools: DeclaredTools): string | null {
  const asked = LABEL_FIELDS.filter((field) => match[field] !== undefined);
  if (asked.length === 0) return null;
  const { tool, effect, data_class, source, sink } = match;
  const index = new MatchIndex([{ match: { tool, effect, data_class, source, sink }, item: true }]);
  for (const [name, labels] of tools)
    if (index.matching({ ...NO_CALL, ...labels, tool: name }).length > 0) return null;
  const whose = tool === undefined ? "no declared tool" : "no declared tool that match.tool names";
  return `${asked.join(" and ")}: ${whose} has ${asked.length === 1 ? "this label" : "these labels"}`;
}

/** Entries of a policy whose match fits none of the declared tools: a slip in a name or a label, most of the time. */
import { compileGlob, globAlternatives } from "../../kernel/glob.ts";
import type { ToolLabels } from "../manifest/labels.ts";
import { didYouMean } from "../problems.ts";
import { MatchIndex } from "./match.ts";
import { NO_CALL } from "./prove/domain.ts";
import type { MatchDoc, PolicyDoc } from "./schema.ts";

type DeclaredTools = ReadonlyMap<string, ToolLabels>;

const MATCHING_SECTIONS = {
  rules: "rule",
  limits: "limit",
  budgets: "budget",
  windows: "window",
  freezes: "freeze",
} as const;
const LABEL_FIELDS = ["effect", "data_class", "source", "sink"] as const;

/** A sentence for each part of the policy that matches no declared tool; none where no tool is declared. */
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
  /** The glob, or the one of its alternatives, that matches no declared tool. */
  glob: string;
  /** The nearest declared name as a question, or nothing. */
  hint: string;
  /** Other alternatives of the glob match. */
  some: boolean;
}

function toolWords({ glob, hint, some }: ToolProblem): string {
  const what = JSON.stringify(glob);
  return some
    ? `tool names ${what}, which matches no declared tool${hint}`
    : `tool ${what} matches no declared tool${hint}`;
}

/** Looks tool globs up among the declared names; a glob that many entries share is looked up once. */
function namedTools(tools: DeclaredTools): { problem(glob: string | undefined): ToolProblem | null } {
  const names = [...tools.keys()];
  const groups = [...new Set(names.map((name) => name.replace(/[^.]*$/, "*")))];
  const fits = (source: string) => {
    if (tools.has(source)) return true;
    const glob = compileGlob(source);
    return names.some((name) => glob.test(name));
  };
  const hint = (glob: string) => didYouMean(glob, glob.includes("*") ? groups : names);
  const known = new Map<string, ToolProblem | null>();
  const look = (glob: string): ToolProblem | null => {
    if (!fits(glob)) return { glob, hint: hint(glob), some: false };
    // One of several names may be misspelt; one that is near to no declared tool may be meant for a later one.
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

/** Labels that none of the tools has that the entry names. */
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

/** Mistakes in proving: each would call something proved, or the same, that a call contradicts. */
import type { Bug } from "../bug.ts";

const FOLDER = "src/rules/policy/prove";
const TESTS = [`${FOLDER}/prove.test.ts`];

export const PROVER: readonly Bug[] = [
  {
    name: "the prover takes what is open for settled",
    file: `${FOLDER}/search.ts`,
    find: "return open ? null : true;",
    replace: "return true;",
    tests: TESTS,
  },
  {
    name: "the prover takes an approval for a denial",
    file: `${FOLDER}/claims.ts`,
    find: 'entry.section === "rules" && !entry.passes_sandboxed && RANK[entry.action] >= RANK[claim.at_least]',
    replace: 'entry.section === "rules" && !entry.passes_sandboxed && entry.action !== "allow"',
    tests: TESTS,
  },
  {
    name: "the prover leaves out whatever an exception might cover",
    file: `${FOLDER}/claims.ts`,
    find: "(unless !== null && holds(unless, chosen) === true)",
    replace: "(unless !== null && holds(unless, chosen) !== false)",
    tests: TESTS,
  },
  {
    name: "the prover tries no number between two that are named",
    file: `${FOLDER}/automata/candidate-values.ts`,
    find: "if (gap !== undefined) found.push({ value: gap, alone: false });",
    replace: "",
    tests: TESTS,
  },
  {
    name: "the prover forgets that an argument may be missing",
    file: `${FOLDER}/automata/candidate-values.ts`,
    find: "    { value: undefined, alone: true },\n",
    replace: "",
    tests: TESTS,
  },
  {
    name: "the prover's texts stop at a star",
    file: `${FOLDER}/automata/machine.ts`,
    find: "if (piece === MANY) add(next, alternative, place);\n      else if",
    replace: "if",
    tests: TESTS,
  },
  {
    name: "the prover's comparison takes a part that says nothing for all",
    file: `${FOLDER}/diff.ts`,
    find: "changes.every(({ literals }) => holds(literals, chosen) === false)",
    replace: "changes.some(({ literals }) => holds(literals, chosen) === false)",
    tests: TESTS,
  },
  {
    name: "the prover knows one list that no condition may name",
    file: `${FOLDER}/automata/candidate-values.ts`,
    find: "freshList([0, 0], named)",
    replace: "[0, 0, 0]",
    tests: TESTS,
  },
  {
    name: "the prover folds a letter to its two cases alone",
    file: `${FOLDER}/automata/regex.ts`,
    find: ", ...foldedLike(text)]",
    replace: "]",
    tests: TESTS,
  },
  {
    name: "the prover takes an entry for the same whoever approves what it asks for",
    file: `${FOLDER}/entries.ts`,
    find: 'doc.action === "require_approval" ? asked : null',
    replace: "null",
    tests: ["test/policy/prove.test.ts"],
  },
  {
    name: "the prover takes three of many values for all of them",
    file: `${FOLDER}/automata/example-texts.ts`,
    find: "  else word.more = true;\n",
    replace: "",
    tests: TESTS,
  },
  {
    name: "the prover's fresh object has the member that is looked at",
    file: `${FOLDER}/automata/candidate-values.ts`,
    find: "if (!members.includes(name) && ",
    replace: "if (",
    tests: TESTS,
  },
  {
    name: "the prover looks at one week, in which an hour may be missing",
    file: `${FOLDER}/automata/times.ts`,
    find: "const WEEKS_DAYS = 15;",
    replace: "const WEEKS_DAYS = 8;",
    tests: TESTS,
  },
  {
    name: "other approvers in place of some are not looser",
    file: `${FOLDER}/compare-terms.ts`,
    find: "    !asksFor(is.needs, was.needs) ||\n",
    replace: "    (!asksFor(is.needs, was.needs) && asksFor(was.needs, is.needs)) ||\n",
    tests: ["test/policy/prove.test.ts"],
  },
];

/** The questions of `svc policy new`, and the policy that the answers describe, with tests for each rule. */
import { stringify } from "yaml";
import { tryPath } from "../../../kernel/paths.ts";
import { compileGlob } from "../../../kernel/text/glob.ts";
import type { PolicyDoc } from "../../../rules/policy/schema.ts";

type AskQuestion = (question: string) => Promise<string>;

export interface PolicyAnswers {
  /** Calls that cannot be undone wait for a person. */
  irreversible: boolean;
  /** Credentials in arguments are refused. */
  secrets: boolean;
  amount: { tool: string; path: string; above: number } | null;
  /** Calls of one agent in an hour; 0 for no limit. */
  calls_per_hour: number;
}

const DEFAULT_ABOVE = 500;
const DEFAULT_CALLS = 500;

/** Asks until each answer can be used. An empty answer takes the default in brackets. */
export async function askForPolicy(ask: AskQuestion, say: (line: string) => void): Promise<PolicyAnswers> {
  const until = async <T>(question: string, read: (text: string) => T | string): Promise<T> => {
    for (;;) {
      const answer = read((await ask(`${question} `)).trim());
      if (typeof answer !== "string") return answer;
      say(answer);
    }
  };
  const irreversible = await until("Require approval for calls that cannot be undone? [Y/n]", readYes);
  const secrets = await until("Refuse calls with credentials in their arguments? [Y/n]", readYes);
  const { tool } = await until(
    "Which tool handles amounts, such as payments.refund? [Enter for none]",
    readTool,
  );
  const amount =
    tool === ""
      ? null
      : {
          tool,
          ...(await until("Which argument is the amount? [amount]", readArgument)),
          above: await until(`Require approval above which amount? [${DEFAULT_ABOVE}]`, (text) =>
            readNumber(text, DEFAULT_ABOVE),
          ),
        };
  const calls_per_hour = await until(
    `How many calls can one agent make per hour? 0 for no limit. [${DEFAULT_CALLS}]`,
    (text) => readNumber(text, DEFAULT_CALLS, Number.isInteger),
  );
  return { irreversible, secrets, amount, calls_per_hour };
}

function readYes(text: string): boolean | string {
  if (/^(y|yes|)$/i.test(text)) return true;
  return /^(n|no)$/i.test(text) ? false : "Answer y or n.";
}

function readTool(tool: string): { tool: string } | string {
  try {
    if (tool !== "") compileGlob(tool);
    return { tool };
  } catch {
    return "Write a tool name or a glob, such as payments.*";
  }
}

function readArgument(text: string): { path: string } | string {
  const name = text === "" ? "amount" : text;
  const path = name.startsWith("$args") ? name : name.startsWith("[") ? `$args${name}` : `$args.${name}`;
  return tryPath(path)?.root === "args"
    ? { path }
    : "Write the argument's name, such as amount or order.total.";
}

function readNumber(text: string, otherwise: number, fits = Number.isFinite): number | string {
  const value = text === "" ? otherwise : Number(text);
  return value >= 0 && fits(value) ? value : "Write a number that is not negative.";
}

/** The text of the policy, without the line for editors. */
export function policyFromAnswers(answers: PolicyAnswers): string {
  const parts = [irreversibleRule(answers), amountRule(answers)].filter((part) => part !== null);
  const limits = limitsOf(answers);
  const tests: PolicyDoc["tests"] = [
    {
      name: "an ordinary call passes",
      input: { tool: "any.tool", args: { text: "hello" } },
      expect: "allow",
    },
    ...parts.flatMap((part) => part.tests),
  ];
  const doc: PolicyDoc = {
    version: 1,
    ...(answers.secrets ? { content: { secrets: "deny" as const } } : {}),
    ...(parts.length === 0 ? {} : { rules: parts.map(({ rule }) => rule) }),
    ...(limits.length === 0 ? {} : { limits }),
    tests,
  };
  return `# Written by svc policy new. Check it with: svc policy test <this file>\n${stringify(doc, { lineWidth: 110 })}`;
}

interface RuleWithTests {
  rule: NonNullable<PolicyDoc["rules"]>[number];
  tests: NonNullable<PolicyDoc["tests"]>;
}

function irreversibleRule({ irreversible }: PolicyAnswers): RuleWithTests | null {
  if (!irreversible) return null;
  const id = "irreversible";
  return {
    rule: {
      id,
      match: { effect: "irreversible" },
      action: "require_approval",
      reason: "a person approves calls that cannot be undone",
    },
    tests: [
      {
        name: "an irreversible call waits for a person",
        input: { tool: "any.tool", effect: "irreversible" },
        expect: "require_approval",
        rule: id,
      },
    ],
  };
}

function amountRule({ amount }: PolicyAnswers): RuleWithTests | null {
  if (amount === null) return null;
  const { tool, path, above } = amount;
  const id = "large-amounts";
  return {
    rule: {
      id,
      match: { tool },
      when: [{ path, op: "gt", value: above }],
      action: "require_approval",
      reason: `a person approves amounts over ${above}`,
    },
    tests: amountTests(amount, id),
  };
}

/** A glob or a nested path has no obvious example call, so such a rule starts without tests. */
function amountTests(
  { tool, path, above }: NonNullable<PolicyAnswers["amount"]>,
  rule: string,
): RuleWithTests["tests"] {
  const name = /^\$args\.([\w-]+)$/.exec(path)?.[1];
  if (name === undefined || /[*?{}]/.test(tool)) return [];
  const call = (value: unknown) => ({ tool, args: { [name]: value }, effect: "compensable" as const });
  return [
    { name: `${above} passes`, input: call(above), expect: "allow" },
    {
      name: `more than ${above} waits for a person`,
      input: call(above + 1),
      expect: "require_approval",
      rule,
    },
    { name: "an amount that is text waits", input: call(`${above}`), expect: "require_approval", rule },
  ];
}

function limitsOf({ calls_per_hour: max }: PolicyAnswers): NonNullable<PolicyDoc["limits"]> {
  if (max === 0) return [];
  return [
    {
      id: "calls-per-hour",
      max,
      per: "actor",
      window: "1h",
      action: "deny",
      reason: "too many calls in an hour",
    },
  ];
}

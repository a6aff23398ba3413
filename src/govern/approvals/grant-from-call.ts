/**
 * Drafts a grant from a call: quantities up to the call's, all other arguments equal, no further arguments. Pure
 * functions; the approver can widen each argument.
 */
import { invalidError } from "../../kernel/errors.ts";
import { isJsonObject, type JsonValue } from "../../kernel/json/json.ts";
import { isLargeValue } from "../../kernel/json/large-value-cache.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import type { PausableWork } from "../../kernel/pausable-work.ts";
import { visibleLine } from "../../kernel/text/escape-invisible.ts";
import { formatCountOf } from "../../kernel/text/phrases.ts";
import { scanningJson } from "../../rules/detect/json.ts";
import { findMasks } from "../../rules/redact/mask.ts";
import { formatCardValue } from "../cards/text/format.ts";
import { quotedName } from "../cards/text/names.ts";
import type { GrantCondition, GrantMatch, GrantTerms } from "../grants/grant.ts";

/** Conditions on an argument: equal to the call's, a number up to a limit, or merely present. */
export const ARGUMENT_HOLDS = ["exact", "most", "any"] as const;
export type ArgumentHolds = (typeof ARGUMENT_HOLDS)[number];

export interface LikeArgument {
  /** Empty if the arguments are not an object; then this stands for all of them. */
  name: string;
  path: string;
  /** Undefined if masked or not stored; a grant cannot name such a value. */
  value: JsonValue | undefined;
  /** Money or another quantity: a smaller value is covered too. */
  quantity: boolean;
  /** Initial choice in the form; null if the approver must choose. */
  preset: ArgumentHolds | null;
}

const QUANTITY_WORDS = new Set(
  (
    "amount total subtotal sum price cost fee value quantity qty count units credits points percent discount " +
    "hours minutes days weight volume cents balance refund payment budget limit size"
  ).split(" "),
);

/** True if the last word of a name is a quantity, as in `refund_amount` or `amountTotal`. */
function isQuantityName(name: string): boolean {
  const words = name
    .replace(/([a-z0-9])([A-Z])/g, "$1_$2")
    .toLowerCase()
    .split(/[^a-z0-9]+/);
  return QUANTITY_WORDS.has(words.findLast((word) => word !== "") ?? "");
}

function argumentPath(name: string): string {
  return /^[^.[\]"$\s]+$/.test(name) ? `$args.${name}` : `$args[${JSON.stringify(name)}]`;
}

/**
 * Lists a call's arguments. `money` holds the paths that the card formats as money; `args` is undefined if the values
 * are not stored.
 */
export function* readingLikeArguments(
  args: JsonValue | undefined,
  arg_names: readonly string[],
  money: ReadonlySet<string>,
): PausableWork<LikeArgument[]> {
  const isKept = args !== undefined;
  if (isKept && !isJsonObject(args)) return [yield* likeArgument("", "$args", args, false)];
  const kept = isKept ? Object.keys(args) : arg_names;
  const isMasked = arg_names.some((name) => findMasks(name).length > 0);
  if (isMasked || kept.length !== arg_names.length || kept.some((name) => !arg_names.includes(name)))
    throw invalidError("the name of an argument is masked; approve only this request");
  const found: LikeArgument[] = [];
  for (const name of arg_names) {
    const path = argumentPath(name);
    const counts = money.has(path) || isQuantityName(name);
    found.push(yield* likeArgument(name, path, isKept ? args[name] : undefined, counts));
  }
  return found;
}

function* likeArgument(
  name: string,
  path: string,
  kept: JsonValue | undefined,
  counts: boolean,
): PausableWork<LikeArgument> {
  const isMasked = kept !== undefined && (yield* scanningJson(kept, findMasks)).length > 0;
  const value = isMasked ? undefined : kept;
  const quantity = counts && typeof value === "number" && value >= 0;
  return { name, path, value, quantity, preset: value === undefined ? null : quantity ? "most" : "exact" };
}

/** The approver's choice for an argument; `most` is its upper limit. */
export interface ArgumentChoice {
  holds: ArgumentHolds | null;
  most: number | null;
}

export const presetChoice = ({ preset, value }: LikeArgument): ArgumentChoice => ({
  holds: preset,
  most: typeof value === "number" ? value : null,
});

/** Argument for the grant's budget: money if there is any, else the first quantity. */
export function budgetArgument(
  found: readonly LikeArgument[],
  money: ReadonlySet<string>,
): LikeArgument | undefined {
  const quantities = found.filter(({ quantity }) => quantity);
  return quantities.find(({ path }) => money.has(path)) ?? quantities[0];
}

/** Conditions for the choices. Throws if a masked argument has no choice, or if a choice is invalid. */
export function likeConditions(
  found: readonly LikeArgument[],
  choices: readonly ArgumentChoice[],
): Pick<GrantTerms, "when" | "args_only"> {
  const when = found.flatMap((one, i) => conditionsFor(one, choices[i] ?? presetChoice(one)));
  if (when.length > SERVICE_LIMITS.grant_conditions)
    throw invalidError(
      `this call has more arguments than the ${SERVICE_LIMITS.grant_conditions} conditions of a grant; approve only this request`,
    );
  const isObject = found.every(({ name }) => name !== "");
  return isObject ? { when, args_only: found.map(({ name }) => name) } : { when };
}

function conditionsFor({ name, path, value }: LikeArgument, choice: ArgumentChoice): GrantCondition[] {
  const label = argumentLabel(name);
  if (choice.holds === "any") return [{ path, op: "exists" }];
  if (value === undefined)
    throw invalidError(
      `${label}: its value is masked or not stored, so a grant cannot name it; choose any value, or approve only this request`,
    );
  if (choice.holds === "exact") return [{ path, op: "eq", value }];
  if (choice.holds !== "most") throw invalidError(`${label}: choose what must hold for it`);
  if (typeof value !== "number")
    throw invalidError(`${label}: is not a number; choose exactly this or any value`);
  if (choice.most === null || !Number.isFinite(choice.most) || choice.most < 0)
    throw invalidError(`${label}: write the maximum, a number that is not negative`);
  return [
    { path, op: "gte", value: 0 },
    { path, op: "lte", value: choice.most },
  ];
}

const PLAIN = /^[\w.@:+/-]+$/;
const MAX_VALUE_CHARS = 80;

/** Label of an argument. The agent chose its name, so it is quoted unless it is plain. */
export function argumentLabel(name: string): string {
  if (name === "") return "arguments";
  return PLAIN.test(name) ? name : visibleLine(quotedName(name), MAX_VALUE_CHARS * 5);
}

const quoted = (text: string): string =>
  PLAIN.test(text) ? text : visibleLine(JSON.stringify(text), MAX_VALUE_CHARS * 3);

/** Value for the sentence, shortened; the card shows it in full. */
export function likeValue(value: JsonValue): string {
  if (typeof value !== "string" && isLargeValue(value)) return "as on the card";
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length > MAX_VALUE_CHARS) return `as on the card (${formatCountOf(text.length, "character")})`;
  return typeof value === "string" ? quoted(text) : visibleLine(text, MAX_VALUE_CHARS * 3);
}

const quantityText = (value: number): string => formatCardValue(value, "money");

interface SaidGrant extends Pick<GrantTerms, "max_uses" | "budget" | "args_only"> {
  match: GrantMatch;
  hours: number;
}

/** Describes in one sentence what the grant would allow. */
export function likeSentence(
  found: readonly LikeArgument[],
  choices: readonly ArgumentChoice[],
  { match, max_uses, budget, args_only, hours }: SaidGrant,
): string {
  const where = (["tenant", "environment"] as const).flatMap((field) =>
    match[field] === null ? [] : [match[field] === "" ? `no ${field}` : `${field} ${quoted(match[field])}`],
  );
  const parts = found.map((one, i) => {
    const { holds, most } = choices[i] ?? presetChoice(one);
    const label = argumentLabel(one.name);
    if (holds === "most" && most !== null) return `${label} at most ${quantityText(most)}`;
    return holds === "exact" && one.value !== undefined ? `${label} ${likeValue(one.value)}` : `any ${label}`;
  });
  const calls = [`${quoted(match.tool)} by ${quoted(match.actor)}`, ...where, ...parts];
  if (args_only !== undefined) calls.push("no other arguments");
  const bounds = `${formatCountOf(max_uses, "use")} within ${hours === 1 ? "1 hour" : `${hours} hours`}`;
  return `${calls.join(", ")}; ${bounds}${budget === null ? "" : `, ${quantityText(budget.max)} in total`}`;
}

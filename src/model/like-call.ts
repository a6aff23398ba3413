/**
 * The grant that a call at hand suggests: a quantity at most what the call has, every other argument as it is, and no
 * further argument. Pure functions; a person widens it argument by argument.
 */
import { invalid } from "../kernel/errors.ts";
import { isJsonObject, type Json } from "../kernel/json.ts";
import { LIMITS } from "../kernel/limits.ts";
import { visibleLine } from "../kernel/visible.ts";
import { plural } from "../kernel/words.ts";
import { formatted } from "./card/format.ts";
import { scanJson } from "./detect/json.ts";
import type { GrantCondition, GrantMatch, GrantTerms } from "./grant.ts";
import { findMasks } from "./mask.ts";

/** What must hold for an argument: it is equal, a number is at most so much, or it is only there. */
export const ARGUMENT_HOLDS = ["exact", "most", "any"] as const;
export type ArgumentHolds = (typeof ARGUMENT_HOLDS)[number];

export interface LikeArgument {
  /** Empty for the whole of arguments that are no object. */
  name: string;
  path: string;
  /** Undefined where it is masked or not kept: a grant cannot name it. */
  value: Json | undefined;
  /** Money or a quantity, of which less is covered, too. */
  quantity: boolean;
  /** What the form starts from; null where a person has to say it. */
  preset: ArgumentHolds | null;
}

const QUANTITY_WORDS = new Set(
  (
    "amount total subtotal sum price cost fee value quantity qty count units credits points percent discount " +
    "hours minutes days weight volume cents balance refund payment budget limit size"
  ).split(" "),
);

/** `refund_amount`, `amountTotal`: the last word of a name says what it counts. */
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

/** `money` holds the paths that the card shows as money; `args` is undefined where the values are not kept. */
export function likeArguments(
  args: Json | undefined,
  arg_names: readonly string[],
  money: ReadonlySet<string>,
): LikeArgument[] {
  const isKept = args !== undefined;
  if (isKept && !isJsonObject(args)) return [likeArgument("", "$args", args, false)];
  const kept = isKept ? Object.keys(args) : arg_names;
  const isMasked = arg_names.some((name) => findMasks(name).length > 0);
  if (isMasked || kept.length !== arg_names.length || kept.some((name) => !arg_names.includes(name)))
    throw invalid("the name of an argument is masked: approve this request by itself");
  return arg_names.map((name) => {
    const path = argumentPath(name);
    return likeArgument(name, path, isKept ? args[name] : undefined, money.has(path) || isQuantityName(name));
  });
}

function likeArgument(name: string, path: string, kept: Json | undefined, counts: boolean): LikeArgument {
  const value = kept === undefined || scanJson(kept, findMasks).length > 0 ? undefined : kept;
  const quantity = counts && typeof value === "number" && value >= 0;
  return { name, path, value, quantity, preset: value === undefined ? null : quantity ? "most" : "exact" };
}

/** What a person chose for an argument; `most` is what it may be at most. */
export interface ArgumentChoice {
  holds: ArgumentHolds | null;
  most: number | null;
}

export const presetChoice = ({ preset, value }: LikeArgument): ArgumentChoice => ({
  holds: preset,
  most: typeof value === "number" ? value : null,
});

/** The money first, then any other quantity. */
export function budgetArgument(
  found: readonly LikeArgument[],
  money: ReadonlySet<string>,
): LikeArgument | undefined {
  const quantities = found.filter(({ quantity }) => quantity);
  return quantities.find(({ path }) => money.has(path)) ?? quantities[0];
}

/** Throws where a person has not said what holds for a masked argument, or said what cannot hold. */
export function likeConditions(
  found: readonly LikeArgument[],
  choices: readonly ArgumentChoice[],
): Pick<GrantTerms, "when" | "args_only"> {
  const when = found.flatMap((one, i) => conditionsFor(one, choices[i] ?? presetChoice(one)));
  if (when.length > LIMITS.grant_conditions)
    throw invalid(
      `this call has more arguments than the ${LIMITS.grant_conditions} conditions of a grant: approve it by itself`,
    );
  const isObject = found.every(({ name }) => name !== "");
  return isObject ? { when, args_only: found.map(({ name }) => name) } : { when };
}

function conditionsFor({ name, path, value }: LikeArgument, choice: ArgumentChoice): GrantCondition[] {
  const label = argumentLabel(name);
  if (choice.holds === "any") return [{ path, op: "exists" }];
  if (value === undefined)
    throw invalid(
      `${label}: its value is masked or not kept, so a grant cannot name it; choose any value, or approve this request by itself`,
    );
  if (choice.holds === "exact") return [{ path, op: "eq", value }];
  if (choice.holds !== "most") throw invalid(`${label}: choose what must hold for it`);
  if (typeof value !== "number") throw invalid(`${label}: is not a number; choose exactly this or any value`);
  if (choice.most === null || !Number.isFinite(choice.most) || choice.most < 0)
    throw invalid(`${label}: at most how much? Write a number that is not negative`);
  return [
    { path, op: "gte", value: 0 },
    { path, op: "lte", value: choice.most },
  ];
}

const PLAIN = /^[\w.@:+/-]+$/;
const MOST_CHARS = 80;

/** Names and words come from the agent: in quotes unless they are plain. */
export const argumentLabel = (name: string): string => (name === "" ? "arguments" : quoted(name));
const quoted = (text: string): string =>
  PLAIN.test(text) ? text : visibleLine(JSON.stringify(text), MOST_CHARS * 3);

/** The value as the sentence says it; a long one is on the card. */
export function likeValue(value: Json): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  if (text.length > MOST_CHARS) return `as on the card (${plural(text.length, "character")})`;
  return typeof value === "string" ? quoted(text) : visibleLine(text, MOST_CHARS * 3);
}

const quantityText = (value: number): string => formatted(value, "money");

interface SaidGrant extends Pick<GrantTerms, "max_uses" | "budget" | "args_only"> {
  match: GrantMatch;
  hours: number;
}

/** What would be allowed, in one sentence. */
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
  const bounds = `${plural(max_uses, "use")} within ${hours === 1 ? "1 hour" : `${hours} hours`}`;
  return `${calls.join(", ")}; ${bounds}${budget === null ? "" : `, ${quantityText(budget.max)} in total`}`;
}

/**
 * One row of the settings table: everything there is to say about one key, once. Loading, `svc config
 * show`, the reference page and the JSON Schema are all made from the rows.
 */
import { isAbsolute, resolve } from "node:path";
import * as z from "zod";
import { tryDuration } from "../kernel/duration.ts";
import { parseJson } from "../kernel/json.ts";

export interface SettingRow<T = unknown> {
  /** Reads the value as written, after `${NAME}` was replaced; may turn it into what the program uses. */
  readonly schema: z.ZodType<T>;
  readonly default: T;
  /** A few words for the reference: `path`, `duration`, `on or off`. */
  readonly type: string;
  readonly about: string;
  readonly env?: string;
  /** The command-line option without its dashes. */
  readonly flag?: string;
  /** A command or the library sets it; no command takes it as an option. */
  readonly flag_inside?: boolean;
  /** How the default reads in the reference, where its value alone says too little. */
  readonly shown_default?: string;
  /** Never echoed: not in a problem, not by `svc config show`. */
  readonly secret?: boolean;
  /** Turns a text (environment, option, `${NAME}`) into what the schema reads; may throw a SvcError. */
  fromText?(text: string): unknown;
  /** Makes relative paths inside the value absolute. */
  locate?(value: T, base: string): T;
  /** The value as `svc config show` may print it. */
  mask?(value: T): unknown;
}

/** A row whose value is a duration: written `30m`, kept in milliseconds under `<key>_ms`. */
export interface DurationRow extends SettingRow<number> {
  readonly unit: "ms";
}

type Spec<T> = Omit<SettingRow<T>, "schema" | "type" | "default"> & Partial<Pick<SettingRow<T>, "type">>;

export function row<T>(spec: SettingRow<T>): SettingRow<T> {
  return spec;
}

/** A group of rows under one key of the file. `shorthand` is the row that a plain value stands for. */
export interface Section<R extends Record<string, SettingRow> = Record<string, SettingRow>> {
  readonly about: string;
  readonly rows: R;
  readonly shorthand?: string;
}

export function section<R extends Record<string, SettingRow>>(
  about: string,
  rows: R,
  options: { shorthand?: keyof R & string } = {},
): Section<R> {
  return { about, rows, ...options };
}

export function isSection(entry: SettingRow | Section): entry is Section {
  return "rows" in entry;
}

const NUL_FREE = z
  .string()
  .min(1)
  .refine((text) => !text.includes("\0"), "must not hold a NUL character");

export const textSchema = NUL_FREE;

export const pathSchema = NUL_FREE.max(4_096);

export function isRemote(path: string): boolean {
  return /^https?:\/\//i.test(path);
}

export function locatePath(path: string, base: string): string {
  return isAbsolute(path) || isRemote(path) ? path : resolve(base, path);
}

/** A path, absolute once loaded; null where it was not given. */
export function pathRow(spec: Spec<string | null>): SettingRow<string | null> {
  return {
    type: "path",
    ...spec,
    schema: pathSchema,
    default: null,
    locate: (path, base) => (path === null ? null : locatePath(path, base)),
  };
}

export function textRow(spec: Spec<string | null>): SettingRow<string | null> {
  return { type: "text", ...spec, schema: textSchema, default: null };
}

export function switchRow(spec: Spec<boolean>, fallback = false): SettingRow<boolean> {
  return { type: "true or false", fromText: readSwitch, ...spec, schema: z.boolean(), default: fallback };
}

export function choiceRow<const T extends string>(
  values: readonly T[],
  fallback: T,
  spec: Spec<T>,
): SettingRow<T> {
  return {
    type: values.join(", "),
    ...spec,
    schema: z.enum(values) as unknown as z.ZodType<T>,
    default: fallback,
  };
}

export function numberRow(
  schema: z.ZodType<number>,
  fallback: number,
  spec: Spec<number>,
): SettingRow<number> {
  return { type: "whole number", fromText: readNumber, ...spec, schema, default: fallback };
}

export function durationSchema(min_ms: number): z.ZodType<number, string> {
  const hint = "write a whole number and ms, s, m, h, d or w, such as 30m";
  return z
    .string()
    .transform((text, context) => {
      const ms = tryDuration(text);
      if (ms !== undefined && ms >= min_ms) return ms;
      const message = ms === undefined ? `is not a duration; ${hint}` : `is too short; at least ${min_ms}ms`;
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    })
    .meta({ pattern: "^\\d+(ms|s|m|h|d|w)$" });
}

export function durationRow(fallback_ms: number, min_ms: number, spec: Spec<number>): DurationRow {
  return { type: "duration", ...spec, schema: durationSchema(min_ms), default: fallback_ms, unit: "ms" };
}

export function isDuration(entry: SettingRow): entry is DurationRow {
  return (entry as Partial<DurationRow>).unit === "ms";
}

/** An http(s) address; its user name and password would end up in logs, so they are refused. */
export const urlSchema = NUL_FREE.superRefine((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const refuse = (message: string) => context.addIssue({ code: "custom", message });
  if (url === undefined || !/^https?:$/.test(url.protocol))
    refuse("is not an address that begins with http:// or https://");
  else if (url.username !== "" || url.password !== "") refuse("must not hold a user name or password");
}).meta({ format: "uri" });

function readSwitch(text: string): unknown {
  if (/^(?:1|true|yes|on)$/i.test(text)) return true;
  if (/^(?:0|false|no|off)$/i.test(text)) return false;
  return text;
}

function readNumber(text: string): unknown {
  return /^-?\d{1,15}(?:\.\d{1,9})?$/.test(text.trim()) ? Number(text) : text;
}

export function readJsonText(text: string): unknown {
  return parseJson(text);
}

export function readList(text: string): unknown {
  return text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== "");
}

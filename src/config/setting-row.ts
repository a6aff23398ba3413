/**
 * A row of the settings table, the single definition of a key. Loading, `svc config show`, the reference page and the
 * JSON Schema all use the rows.
 */
import { isAbsolute, resolve } from "node:path";
import * as z from "zod";
import { tryDuration } from "../kernel/duration.ts";
import { parseJson } from "../kernel/json/json.ts";

export interface SettingRow<T = unknown> {
  /** Parses the value after `${NAME}` was replaced. May transform it. */
  readonly schema: z.ZodType<T>;
  readonly default: T;
  /** Short type name for the reference: `path`, `duration`, `on or off`. */
  readonly type: string;
  readonly about: string;
  readonly env?: string;
  /** Command-line option without its dashes. */
  readonly flag?: string;
  /** Set by a command or the library. Not a command-line option. */
  readonly flag_inside?: boolean;
  /** Text for the default in the reference, if its value alone is unclear. */
  readonly shown_default?: string;
  /** Never printed, neither in problems nor by `svc config show`. */
  readonly secret?: boolean;
  /** Converts text (environment, option, `${NAME}`) to the schema's input. May throw a SvcError. */
  fromText?(text: string): unknown;
  /** Makes relative paths inside the value absolute. */
  locate?(value: T, base: string): T;
  /** Returns the value as `svc config show` can print it. */
  mask?(value: T): unknown;
}

/** Row for a duration: written `30m`, stored in milliseconds under `<key>_ms`. */
export interface DurationRow extends SettingRow<number> {
  readonly unit: "ms";
}

type Spec<T> = Omit<SettingRow<T>, "schema" | "type" | "default"> & Partial<Pick<SettingRow<T>, "type">>;

export function settingRow<T>(spec: SettingRow<T>): SettingRow<T> {
  return spec;
}

/** Rows under one key of the file. `shorthand` names the row that a plain value sets. */
export interface SettingSection<R extends Record<string, SettingRow> = Record<string, SettingRow>> {
  readonly about: string;
  readonly rows: R;
  readonly shorthand?: string;
}

export function settingSection<R extends Record<string, SettingRow>>(
  about: string,
  rows: R,
  options: { shorthand?: keyof R & string } = {},
): SettingSection<R> {
  return { about, rows, ...options };
}

export function isSection(entry: SettingRow | SettingSection): entry is SettingSection {
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

/** Creates a row for a path. The loaded value is absolute, or null if not given. */
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
    schema: z.enum(values) as z.ZodType<T>,
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

/** An http(s) URL. User names and passwords are rejected, since they would end up in logs. */
export const urlSchema = NUL_FREE.superRefine((text, context) => {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  const refuse = (message: string) => context.addIssue({ code: "custom", message });
  if (url === undefined || !/^https?:$/.test(url.protocol))
    refuse("is not a URL that begins with http:// or https://");
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

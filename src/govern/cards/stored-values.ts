/**
 * Values of a call as the store keeps them. A large value is stored as its JSON text, so that a process that reads or
 * writes the document handles one string, and only the thread that draws the card parses it.
 */
import type { JsonValue } from "../../kernel/json/json.ts";
import { jsonTextInSteps } from "../../kernel/json/json-text.ts";
import { type JsonOrText, JsonTextValue } from "../../kernel/json/json-text-value.ts";
import { cachedResult, isLargeValue } from "../../kernel/json/large-value-cache.ts";
import type { ApprovalValues } from "./types.ts";

const VALUE_FIELDS = ["args", "before", "restored", "offer"] as const;
type ValueField = (typeof VALUE_FIELDS)[number];
type Facts = Omit<ApprovalValues, ValueField>;

/** Document of the store: each value is in its own field, or in `texts` if it is large. */
export interface StoredValues extends Facts, Partial<Pick<ApprovalValues, ValueField>> {
  texts?: Partial<Record<ValueField, string>>;
}

/** Values of a new request. */
export type ShownValues = Omit<Facts, "run_id"> & { args: JsonOrText } & {
  [F in Exclude<ValueField, "args">]?: JsonOrText;
};

/** The text of a large value, from the cache if a thread has computed it, or the value itself if it is small. */
function textIfLarge(value: JsonOrText): JsonOrText {
  if (value instanceof JsonTextValue || !isLargeValue(value)) return value;
  return new JsonTextValue(cachedResult<string>(value, jsonTextInSteps) ?? JSON.stringify(value));
}

export function toStoredValues(run_id: string, shown: ShownValues): StoredValues {
  const { args, before, restored, offer, ...facts } = shown;
  const stored: StoredValues = { run_id, ...facts };
  for (const [field, value] of Object.entries({ args, before, restored, offer })) {
    if (value === undefined) continue;
    const kept = textIfLarge(value);
    if (kept instanceof JsonTextValue) stored.texts = { ...stored.texts, [field]: kept.text };
    else Object.assign(stored, { [field]: kept });
  }
  return stored;
}

/** Parses the texts. The event loop calls this only for documents without large values. */
export function readStoredValues({ texts, ...stored }: StoredValues): ApprovalValues {
  const parsed = Object.entries(texts ?? {}).map(([field, text]) => [field, JSON.parse(text) as JsonValue]);
  return { args: null, ...stored, ...Object.fromEntries(parsed) };
}

/** One of the stored values, not parsed if it is large. */
export function storedValue({ texts, ...stored }: StoredValues, field: ValueField): JsonOrText | undefined {
  const text = texts?.[field];
  return text === undefined ? stored[field] : new JsonTextValue(text);
}

export const hasLargeValues = (stored: StoredValues | undefined): boolean => stored?.texts !== undefined;

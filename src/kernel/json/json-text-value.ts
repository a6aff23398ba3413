/**
 * A large JSON value as its text. The event loop passes such a value on without parsing it: hundreds of thousands of
 * small objects would keep its garbage collector busy.
 */
import type { JsonValue } from "./json.ts";

export class JsonTextValue {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }

  read(): JsonValue {
    return JSON.parse(this.text) as JsonValue;
  }

  /** `JSON.stringify` writes the value, not its text. */
  toJSON(): JsonValue {
    return this.read();
  }
}

/** A value for readers, parsed or as its text. */
export type JsonOrText = JsonValue | JsonTextValue;

export const readJsonOrText = (value: JsonOrText): JsonValue =>
  value instanceof JsonTextValue ? value.read() : value;

/** Free text is hostile: it may carry credentials, echo an argument, or drive a terminal. */
import type { Json } from "../kernel/json.ts";

const SHORTEST_ECHO = 4;
const MASK = "[argument]";

/** Takes every value of the call that the text repeats out of it. */
export function withoutValues(text: string, ...values: (Json | undefined)[]): string {
  const found = new Set<string>();
  for (const value of values) if (value !== undefined) collect(value, found);
  // Longest first, so that a value inside another does not leave the rest of the longer one behind.
  const echoes = [...found].sort((a, b) => b.length - a.length);
  let out = text;
  for (const echo of echoes) if (out.includes(echo)) out = out.split(echo).join(MASK);
  return out;
}

function collect(value: Json, into: Set<string>): void {
  if (typeof value === "string" || typeof value === "number") {
    const text = String(value);
    if (text.length < SHORTEST_ECHO) return;
    into.add(text);
    // The same value inside a JSON or URL message.
    const quoted = JSON.stringify(text).slice(1, -1);
    if (quoted !== text) into.add(quoted);
    if (typeof value === "string" && /[^\w.~-]/.test(value)) into.add(encodeURIComponent(value));
    return;
  }
  if (value === null || typeof value === "boolean") return;
  for (const member of Array.isArray(value) ? value : Object.values(value)) collect(member, into);
}

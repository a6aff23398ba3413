/**
 * Makes any value safe for a log line: plain, bounded and without cycles. Removes credentials from every string, and
 * the whole value of every field with a secret-like name. Never throws.
 */
export type RedactText = (text: string) => string;

export type LogValue = null | boolean | number | string | LogValue[] | { [key: string]: LogValue };

const SECRET_NAME =
  /password|passwd|passphrase|secret|token|authorization|apikey|cookie|credential|privatekey|signature|routingkey/;
const HIDDEN = "[REDACTED]";
const DEPTH = 6;
const ENTRIES = 100;
const CHARS = 8_000;

/** Treats `apiKey`, `api-key` and `X_API_KEY` as the same name. */
function looksSecret(name: string): boolean {
  return SECRET_NAME.test(name.replace(/[^A-Za-z]/g, "").toLowerCase());
}

export function scrubText(text: string, redact: RedactText): string {
  try {
    const clean = redact(text);
    return clean.length > CHARS ? `${clean.slice(0, CHARS)}…` : clean;
  } catch {
    // An unchecked text can hold anything.
    return HIDDEN;
  }
}

function scrubValue(value: unknown, redact: RedactText, depth = 0): LogValue {
  switch (typeof value) {
    case "string":
      return scrubText(value, redact);
    case "number":
      return Number.isFinite(value) ? value : String(value);
    case "boolean":
      return value;
    case "bigint":
      return value.toString();
    case "object":
      return value === null ? null : scrubObject(value, redact, depth);
    default:
      return value === undefined ? null : `[${typeof value}]`;
  }
}

function scrubObject(value: object, redact: RedactText, depth: number): LogValue {
  // The depth limit also ends cycles.
  if (depth >= DEPTH) return "[deep]";
  try {
    if (value instanceof Error) return scrubError(value, redact);
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "invalid date" : value.toISOString();
    if (value instanceof URL) return scrubText(value.origin, redact);
    if (ArrayBuffer.isView(value)) return `[${value.byteLength} bytes]`;
    if (Array.isArray(value))
      return value.slice(0, ENTRIES).map((item) => scrubValue(item, redact, depth + 1));
    if (value instanceof Map || value instanceof Set) return scrubValue([...value], redact, depth);
    return scrubFields(value as Record<string, unknown>, redact, depth);
  } catch {
    return "[unreadable]";
  }
}

/** Keeps the message and the code. A stack trace does not help a log reader and can quote arguments. */
function scrubError(error: Error, redact: RedactText): LogValue {
  const code = (error as { code?: unknown }).code;
  const message = scrubText(error.message, redact);
  return typeof code === "string" && !message.includes(code) ? `${code}: ${message}` : message;
}

export function scrubFields(
  fields: Readonly<Record<string, unknown>>,
  redact: RedactText,
  depth = 0,
): { [key: string]: LogValue } {
  const out: { [key: string]: LogValue } = {};
  for (const key of Object.keys(fields).slice(0, ENTRIES)) {
    const name = scrubText(key, redact);
    let clean: LogValue;
    try {
      const value = fields[key];
      if (value === undefined) continue;
      clean = looksSecret(key) && value !== null ? HIDDEN : scrubValue(value, redact, depth + 1);
    } catch {
      clean = "[unreadable]";
    }
    Object.defineProperty(out, name, { value: clean, enumerable: true, writable: true, configurable: true });
  }
  return out;
}

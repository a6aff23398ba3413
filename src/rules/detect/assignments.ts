/**
 * Finds secrets that only their name reveals: `password=...`, `"api_key": "..."`, `DB_PASSWORD: ...`. The name must be
 * a secret's name, and the value must look like a secret rather than a placeholder.
 */
import { type DetectorHit, MAX_HITS, shannonEntropy } from "./hits.ts";
import { isPlaceholder, type SecretName, secretName } from "./names.ts";

const VALUE =
  /[ \t]{0,4}(?:\\?"([^"\\\n]{1,512})|\\?'([^'\\\n]{1,512})|`([^`\n]{1,512})|([^\s"'`,;&<>()[\]{}|\\=]{1,512}={0,2}))/y;
const MAX_NAME = 64;
/** Characters allowed between a name and its separator: closing quotes and brackets, and spaces. */
const CLOSING = new Set([" ", "\t", '"', "'", "`", "]", "\\"]);
const ACCOUNT = /:\d{12}:$/;

/** Jumps from separator to separator and checks the name before each, which costs less than searching for names. */
export function findAssignments(text: string, hits: DetectorHit[]): void {
  const names = new Names();
  let count = 0;
  for (let at = 0; at < text.length; at++) {
    const length = separatorAt(text, at);
    if (length === 0) continue;
    const hit = assignedAt(text, at, at + length, names);
    at = Math.max(at + length, hit?.end ?? 0) - 1;
    if (hit === undefined) continue;
    hits.push(hit);
    if (++count < MAX_HITS) continue;
    hits.push({ kind: hit.kind, start: 0, end: text.length });
    return;
  }
}

/** Caches the meaning of each name in a text, because generated text repeats a few names thousands of times. */
class Names {
  private known: Map<string, SecretName | undefined> | undefined;

  meaning(source: string): SecretName | undefined {
    this.known ??= new Map();
    if (!this.known.has(source)) this.known.set(source, secretName(source));
    return this.known.get(source);
  }
}

/** Length of the separator at this position: `=`, `:`, `:=`, `=>`, ` is `, ` is: `; 0 if there is none. */
function separatorAt(text: string, at: number): number {
  const c = text.charCodeAt(at);
  if (c === 0x3d || c === 0x3a) {
    let end = at + 1;
    while (end < text.length && end - at < MAX_NAME && "=:>".includes(text[end]!)) end++;
    return end - at;
  }
  if (c !== 0x20 || text.charCodeAt(at + 1) !== 0x69 || text.charCodeAt(at + 2) !== 0x73) return 0;
  const next = text.charCodeAt(at + 3);
  return next === 0x20 ? 4 : next === 0x3a && text.charCodeAt(at + 4) === 0x20 ? 5 : 0;
}

function assignedAt(text: string, separator: number, after: number, names: Names): DetectorHit | undefined {
  const [from, to] = nameBefore(text, separator);
  if (to - from < 3) return undefined;
  const source = text.slice(from, to);
  const name = names.meaning(source);
  // `arn:aws:secretsmanager:<region>:<account>:secret:<name>` is the location of a secret, not the secret.
  if (name === undefined || ACCOUNT.test(text.slice(Math.max(0, from - 14), from))) return undefined;
  VALUE.lastIndex = after;
  const found = VALUE.exec(text);
  if (found === null) return undefined;
  const quoted = found[4] === undefined;
  const value = found[1] ?? found[2] ?? found[3] ?? found[4]!;
  const trimmed = quoted ? value : value.replace(/(?<![.:!?])[.:!?]+$/, "");
  if (!looksAssigned(name, trimmed, quoted)) return undefined;
  const start = VALUE.lastIndex - value.length;
  return { kind: kindOf(name, trimmed, source), start, end: start + trimmed.length };
}

/** The name that ends before the separator, searched over a bounded distance. */
function nameBefore(text: string, separator: number): [number, number] {
  let to = separator;
  for (let n = 0; n < 4 && to > 0 && CLOSING.has(text[to - 1]!); n++) to--;
  let from = to;
  while (from > 0 && to - from < MAX_NAME && isNameChar(text.charCodeAt(from - 1))) from--;
  return [from, to];
}

function isNameChar(c: number): boolean {
  return (c >= 97 && c <= 122) || (c >= 65 && c <= 90) || (c >= 48 && c <= 57) || c === 95 || c === 45;
}

/** Reports the entire value of a field with a secret's name. */
export function findByFieldName(value: string, key: string): DetectorHit[] {
  if (value.length > 8_192) return [];
  const name = secretName(key);
  if (name !== undefined && looksKeyed(name, value)) {
    return [{ kind: kindOf(name, value, key), start: 0, end: value.length }];
  }
  if (/cookie$/i.test(key) && /=[^;\s]{16,}/.test(value.slice(0, 4_096)) && !isPlaceholder(value)) {
    return [{ kind: "cookie", start: 0, end: value.length }];
  }
  return [];
}

const AWS_SECRET = /^[A-Za-z0-9/+]{40}$/;

function kindOf(name: SecretName, value: string, source: string): string {
  return AWS_SECRET.test(value) && /aws|secret_?access_?key/i.test(source)
    ? "aws_secret_access_key"
    : name.kind;
}

/** Stricter than for fields: in running text, prose can follow a name ("password: required"). */
function looksAssigned(name: SecretName, value: string, quoted: boolean): boolean {
  if (value.length < 6) return false;
  if (AWS_SECRET.test(value) && classes(value) >= 3) return true;
  if (!name.strong) return looksRandom(value) && !/\s/.test(value) && !isPlaceholder(value);
  const odd = /\d/.test(value) || /[^A-Za-z0-9]/.test(value.slice(1, -1).replace(/[-_.]/g, ""));
  // Letters only: probably a weak password if quoted, otherwise a word.
  const likely = odd
    ? classes(value) >= 2 || value.length >= 8
    : quoted && value.length >= 8 && /[A-Z]/.test(value.slice(1)) && shannonEntropy(value) > 2.5;
  return likely && !/\s/.test(value) && !isPlaceholder(value);
}

/** Less strict than in running text, because no prose surrounds the value of a field. */
function looksKeyed(name: SecretName, value: string): boolean {
  if (AWS_SECRET.test(value) && classes(value) >= 3) return true;
  if (isPlaceholder(value)) return false;
  if (!name.strong) return !/\s/.test(value) && looksRandom(value);
  if (value.length < 6 || value.length > 512) return false;
  if (name.kind !== "password") return !/\s/.test(value) && (value.length >= 16 || /\d|[^\w.-]/.test(value));
  // Labels and help texts have spaces and capitals; a passphrase consists of a few lowercase words.
  if (/\s/.test(value))
    return (
      /^[a-z0-9]+(?: [a-z0-9]+){3,9}$/.test(value) && !/\b(?:the|your|is|a|to|must|and|or)\b/.test(value)
    );
  return !/^[A-Z]?[a-z]*pass[a-z]*$/.test(value);
}

/** Long, with digits, and less repetitive than names and words. */
function looksRandom(value: string): boolean {
  if (value.length < 16 || !/\d/.test(value) || !/[A-Za-z]/.test(value)) return false;
  if (/^[a-z]+(?:[-_.][a-z]+)*[-_.]?v?\d{1,4}$/i.test(value)) return false;
  return shannonEntropy(value) >= 3;
}

function classes(value: string): number {
  return [/[a-z]/, /[A-Z]/, /\d/, /[^A-Za-z0-9]/].filter((kind) => kind.test(value)).length;
}

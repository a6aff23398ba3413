/**
 * Secrets that only their name gives away: `password=...`, `"api_key": "..."`, `DB_PASSWORD: ...`. The
 * name must be one that names a secret, and the value must look like one rather than stand in for it.
 */
import { entropy, type Hit } from "./hit.ts";
import { isPlaceholder, type SecretName, secretName } from "./names.ts";

const KEYWORD =
  /passw(?:or[dt]|d)|passphrase|passcode|pwd|secret|token|api[_-]?key|access[_-]?key|auth|signing[_-]?key|master[_-]?key|encryption[_-]?key|private[_-]?key|credential|bearer/gi;
const NAME_CHAR = /[A-Za-z0-9_-]/;
const MAX_NAME = 64;
const ACCOUNT = /:\d{12}:$/;
/** From the end of a name to the end of its value; each piece is bounded and starts with its own mark. */
const TAIL =
  /["'`]?\]?[ \t]{0,4}(?::=|=>|=|:| is:?[ \t])[ \t]{0,4}(?:\\?"([^"\\\n]{1,512})|\\?'([^'\\\n]{1,512})|`([^`\n]{1,512})|([^\s"'`,;&<>()[\]{}|\\]{1,512}))/y;

export function findAssignments(text: string): Hit[] {
  const hits: Hit[] = [];
  KEYWORD.lastIndex = 0;
  for (let match = KEYWORD.exec(text); match !== null; match = KEYWORD.exec(text)) {
    let from = match.index;
    while (from > 0 && match.index - from < MAX_NAME && NAME_CHAR.test(text[from - 1]!)) from--;
    let to = match.index + match[0].length;
    while (to < text.length && to - match.index < MAX_NAME && NAME_CHAR.test(text[to]!)) to++;
    KEYWORD.lastIndex = to;
    const name = secretName(text.slice(from, to));
    // `arn:aws:secretsmanager:<region>:<account>:secret:<name>` says where a secret is kept.
    if (name === undefined || ACCOUNT.test(text.slice(Math.max(0, from - 14), from))) continue;
    TAIL.lastIndex = to;
    const tail = TAIL.exec(text);
    if (tail === null) continue;
    const quoted = tail[4] === undefined;
    const value = tail[1] ?? tail[2] ?? tail[3] ?? tail[4]!;
    const start = TAIL.lastIndex - value.length;
    const trimmed = quoted ? value : value.replace(/[.:!?]+$/, "");
    if (!looksAssigned(name, trimmed, quoted)) continue;
    hits.push({ kind: kindOf(name, trimmed, text.slice(from, to)), start, end: start + trimmed.length });
    KEYWORD.lastIndex = Math.max(to, start + trimmed.length);
  }
  return hits;
}

/** The whole value of a field whose name says that it is a secret. */
export function findKeyed(value: string, key: string): Hit[] {
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

/** In running text a name may be followed by prose ("password: required"), so the value must show more. */
function looksAssigned(name: SecretName, value: string, quoted: boolean): boolean {
  if (AWS_SECRET.test(value) && classes(value) >= 3) return true;
  if (value.length < 6 || isPlaceholder(value) || /\s/.test(value)) return false;
  if (!name.strong) return looksRandom(value);
  const odd = /\d/.test(value) || /[^A-Za-z0-9]/.test(value.slice(1, -1).replace(/[-_.]/g, ""));
  if (odd) return classes(value) >= 2 || value.length >= 8;
  // Letters only: in quotes it may be a weak password, without them it is more likely a word.
  return quoted && value.length >= 8 && /[A-Z]/.test(value.slice(1)) && entropy(value) > 2.5;
}

/** As the value of a field there is no prose around it: less is asked. */
function looksKeyed(name: SecretName, value: string): boolean {
  if (AWS_SECRET.test(value) && classes(value) >= 3) return true;
  if (isPlaceholder(value)) return false;
  if (!name.strong) return !/\s/.test(value) && looksRandom(value);
  if (value.length < 6 || value.length > 512) return false;
  if (name.kind !== "password") return !/\s/.test(value) && (value.length >= 16 || /\d|[^\w.-]/.test(value));
  // A label or a help text has spaces and capitals; a passphrase is a few plain words.
  if (/\s/.test(value))
    return (
      /^[a-z0-9]+(?: [a-z0-9]+){3,9}$/.test(value) && !/\b(?:the|your|is|a|to|must|and|or)\b/.test(value)
    );
  return !/^[A-Z]?[a-z]*pass[a-z]*$/.test(value);
}

/** Long enough, with digits, and without the repetition that names and words have. */
function looksRandom(value: string): boolean {
  if (value.length < 16 || !/\d/.test(value) || !/[A-Za-z]/.test(value)) return false;
  if (/^[a-z]+(?:[-_.][a-z]+)*[-_.]?v?\d{1,4}$/i.test(value)) return false;
  return entropy(value) >= 3;
}

function classes(value: string): number {
  return [/[a-z]/, /[A-Z]/, /\d/, /[^A-Za-z0-9]/].filter((kind) => kind.test(value)).length;
}

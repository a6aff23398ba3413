/**
 * Finds credentials in text. Content checks, capture redaction and the logger share this code, so logs never show a
 * secret that a policy would block.
 */
import { findAssignments, findByFieldName } from "./assignments.ts";
import { COMMAND_HINTS, findOnCommandLine } from "./command-line.ts";
import { CREDENTIAL_PATTERNS } from "./credentials.ts";
import { HintTable } from "./hint-table.ts";
import {
  collectHits,
  type DetectorHit,
  mergeHits,
  replaceHits,
  shannonEntropy,
  trailingHit,
} from "./hits.ts";
import { isPlaceholder } from "./names.ts";

/** Every credential with a distinctive prefix is at least this long. */
const SHORTEST = 12;

export function findSecrets(text: string, key?: string): DetectorHit[] {
  const hits: DetectorHit[] = [];
  if (text.length >= SHORTEST) {
    const present = HINTS.present(text);
    if (present !== undefined) {
      for (const [hints, find] of FINDERS) if (hints.some((hint) => present.has(hint))) find(text, hits);
      if (hits.some((hit) => hit.kind === "aws_access_key_id")) findAwsSecrets(text, hits);
    }
    findAssignments(text, hits);
  }
  if (key !== undefined && !hits.some((hit) => hit.start === 0 && hit.end === text.length)) {
    hits.push(...findByFieldName(text, key));
  }
  return mergeHits(hits);
}

/** Maximum passes: removing one secret can expose another that was adjacent. */
const PASSES = 4;

const plainMask = (kind: string): string => `[REDACTED:${kind}]`;

export function redactSecrets(
  text: string,
  key?: string,
  mask: (kind: string, hidden: string) => string = plainMask,
): string {
  let safe = text;
  for (let pass = 0; pass < PASSES; pass++) {
    const hits = findSecrets(safe, key);
    if (hits.length === 0) break;
    safe = replaceHits(safe, hits, mask);
  }
  return safe;
}

const AWS_SECRET = /(?<![A-Za-z0-9/+=])[A-Za-z0-9/+]{40}(?![A-Za-z0-9/+=])/g;

/** Finds AWS secret keys. They have no prefix, so 40 random characters count only in a text with an access key id. */
function findAwsSecrets(text: string, hits: DetectorHit[]): void {
  collectHits(text, AWS_SECRET, hits, (match) => {
    const random = /[A-Z]/.test(match[0]) && /[a-z]/.test(match[0]) && shannonEntropy(match[0]) >= 3.5;
    return random ? trailingHit("aws_secret_access_key", match) : undefined;
  });
}

const KEY_BEGIN = /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----/g;

/** Finds private keys from BEGIN to END. A truncated block extends to the end of its base64. */
function findPrivateKeys(text: string, hits: DetectorHit[]): void {
  const putty = text.search(/PuTTY-User-Key-File-\d: /);
  if (putty >= 0) hits.push({ kind: "private_key", start: putty, end: text.length });
  KEY_BEGIN.lastIndex = 0;
  for (let match = KEY_BEGIN.exec(text); match !== null; match = KEY_BEGIN.exec(text)) {
    const body = match.index + match[0].length;
    const end = text.indexOf("-----END ", body);
    const cut = end < 0 ? text.length : Math.min(text.length, end + 64);
    const close = end < 0 ? -1 : text.indexOf("-----", end + 9);
    const stop = close >= 0 && close + 5 <= cut ? close + 5 : cut;
    // A BEGIN line alone, as in documentation, reveals nothing.
    if (/[A-Za-z0-9+/]{16}/.test(text.slice(body, Math.min(end < 0 ? text.length : end, body + 2_000)))) {
      hits.push({ kind: "private_key", start: match.index, end: stop });
    }
    // Resumes after the scanned text, so that many BEGIN lines without an END stay linear.
    KEY_BEGIN.lastIndex = end < 0 ? text.length : stop;
  }
}

const URL_PASSWORD = /:\/\/([^\s:@/?#"'<>\\]{0,100}):([^\s@/"'<>\\]{1,200})@([^\s/:?#"'<>\\,]{0,100})/g;
const TOY_PASSWORD =
  /^(?:password|passwd|pass|pwd|pw|secret|changeme|mypassword|user|username|guest|postgres|root|test)$/i;
const TOY_HOST =
  /^(?:localhost|127\.0\.0\.1|\[?::1\]?|host|hostname|server|db|(?:.*\.)?example(?:\.[a-z]+)?|)$/i;

function findUrlPasswords(text: string, hits: DetectorHit[]): void {
  collectHits(text, URL_PASSWORD, hits, (match) => {
    const [, user = "", password = "", host = ""] = match;
    const toy = TOY_PASSWORD.test(password);
    if (toy ? TOY_HOST.test(host) : isPlaceholder(password)) return undefined;
    const web = /(?:https?|wss?|ftp|git)$/i.test(text.slice(Math.max(0, match.index - 5), match.index));
    const start = match.index + 3 + user.length + 1;
    return { kind: web ? "basic_auth_url" : "connection_string", start, end: start + password.length };
  });
}

const BEARER = /(?<![A-Za-z0-9])(?:[Bb]earer|BEARER|[Tt]oken)[ \t]{1,4}([A-Za-z0-9._~+/=-]{16,4000})/g;
const BASIC = /(?<![A-Za-z0-9])(?:[Bb]asic|BASIC)[ \t]{1,4}([A-Za-z0-9+/]{8,500}={0,2})(?![A-Za-z0-9+/=])/g;

function findBearers(text: string, hits: DetectorHit[]): void {
  collectHits(text, BEARER, hits, (match) => {
    const value = match[1]!.replace(/(?<![.=-])[.=-]+$/, "");
    if (value.length < 16 || !/\d/.test(value) || !/[A-Za-z]/.test(value)) return undefined;
    if (isPlaceholder(value) || shannonEntropy(value.slice(0, 200)) < 3) return undefined;
    return trailingHit("bearer_token", match);
  });
}

function findBasics(text: string, hits: DetectorHit[]): void {
  collectHits(text, BASIC, hits, (match) => {
    const decoded = Buffer.from(match[1]!, "base64").toString("latin1");
    return /^[\x20-\x7e]{1,100}:[\x20-\x7e]+$/.test(decoded)
      ? trailingHit("basic_auth_header", match)
      : undefined;
  });
}

type Find = (text: string, hits: DetectorHit[]) => void;

/** Each finder with its hints: it can match only if one of them occurs. Most certain first. */
const FINDERS: readonly (readonly [hints: readonly string[], find: Find])[] = [
  ...CREDENTIAL_PATTERNS.map(({ kind, hints, pattern, accept }) => {
    const find: Find = (text, hits) =>
      collectHits(text, pattern, hits, (match) =>
        accept(match[1] ?? match[0]) ? trailingHit(kind, match) : undefined,
      );
    return [hints, find] as const;
  }),
  [["PRIVATE KEY", "PuTTY-User-Key-File-"], findPrivateKeys],
  [["://"], findUrlPasswords],
  [["earer ", "EARER ", "oken ", "earer\t", "oken\t"], findBearers],
  [["asic ", "ASIC ", "asic\t"], findBasics],
  [COMMAND_HINTS, findOnCommandLine],
];

const HINTS = new HintTable(FINDERS.flatMap(([hints]) => hints));

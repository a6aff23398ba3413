/** One captured string: credentials and personal data taken out, and what is left cut to the length that is kept. */
import { LIMITS } from "../kernel/limits.ts";
import type { Hit } from "../model/detect/hit.ts";
import { findPii, redactPii } from "../model/detect/pii.ts";
import { findSecrets, redactSecrets } from "../model/detect/secrets.ts";

const KEPT = LIMITS.capture_string_chars;
/** Longer than any credential: one that begins before the cut is seen whole. */
const LONGEST_SECRET = 16_384;

/** `key` is the name of the field that holds the text, where there is one. */
export function safeText(text: string, key: string | undefined, pii: boolean): string {
  if (text.length <= KEPT) return cut(clean(text, key, pii));
  const window = text.slice(0, KEPT + LONGEST_SECRET);
  const across = acrossTheCut(window, key, pii);
  if (across === undefined) return cut(clean(cut(text), key, pii));
  // Half a credential would no longer be found, and is still half a credential.
  return cut(clean(text.slice(0, across.start), key, pii) + across.label);
}

function clean(text: string, key: string | undefined, pii: boolean): string {
  const safe = redactSecrets(text, key);
  return pii ? redactPii(safe, key) : safe;
}

function acrossTheCut(
  window: string,
  key: string | undefined,
  pii: boolean,
): { start: number; label: string } | undefined {
  const isAcross = ({ start, end }: Hit) => start < KEPT && end > KEPT;
  const secret = findSecrets(window, key).find(isAcross);
  const personal = pii ? findPii(window, key).find(isAcross) : undefined;
  const found = [
    ...(secret === undefined ? [] : [{ start: secret.start, label: `[REDACTED:${secret.kind}]` }]),
    ...(personal === undefined ? [] : [{ start: personal.start, label: `[PII:${personal.kind}]` }]),
  ];
  return found.sort((a, b) => a.start - b.start)[0];
}

/** Never between the halves of a surrogate pair, which would make the text unfit for JSON. */
function cut(text: string): string {
  if (text.length <= KEPT) return text;
  const last = text.charCodeAt(KEPT - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? KEPT - 1 : KEPT);
}

/** Redacts one captured string: removes credentials and personal data, and cuts the rest to the length limit. */
import { SERVICE_LIMITS } from "../kernel/limits.ts";
import type { DetectorHit } from "../rules/detect/hits.ts";
import { findPii, redactPii } from "../rules/detect/pii.ts";
import { findSecrets, redactSecrets } from "../rules/detect/secrets.ts";

const KEPT = SERVICE_LIMITS.capture_string_chars;
/** Longer than any credential, so a credential that begins before the cut is seen completely. */
const LONGEST_SECRET = 16_384;

/** `key` is the name of the field that contains the text, if any. */
export function safeText(text: string, key: string | undefined, pii: boolean): string {
  if (text.length <= KEPT) return cut(clean(text, key, pii));
  const window = text.slice(0, KEPT + LONGEST_SECRET);
  const across = acrossTheCut(window, key, pii);
  if (across === undefined) return cut(clean(cut(text), key, pii));
  // Replace a credential that crosses the cut: half of it would escape detection and still be secret.
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
  const isAcross = ({ start, end }: DetectorHit) => start < KEPT && end > KEPT;
  const secret = findSecrets(window, key).find(isAcross);
  const personal = pii ? findPii(window, key).find(isAcross) : undefined;
  const found = [
    ...(secret === undefined ? [] : [{ start: secret.start, label: `[REDACTED:${secret.kind}]` }]),
    ...(personal === undefined ? [] : [{ start: personal.start, label: `[PII:${personal.kind}]` }]),
  ];
  return found.sort((a, b) => a.start - b.start)[0];
}

/** Never cuts a surrogate pair in half, which would make the text invalid in JSON. */
function cut(text: string): string {
  if (text.length <= KEPT) return text;
  const last = text.charCodeAt(KEPT - 1);
  return text.slice(0, last >= 0xd800 && last <= 0xdbff ? KEPT - 1 : KEPT);
}

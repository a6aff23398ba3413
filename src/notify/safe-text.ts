/**
 * Makes external text harmless in messages. Tool names, reasons and error texts come from agents, and must not become a
 * mention, a link or a second line that looks like our own.
 */
import { clipText } from "../kernel/text/phrases.ts";

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const CONTROL = /[\s\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;
/** Invisible characters, which can hide text or reverse its direction. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|[\ufff9-\ufffb]/gu;

/** One line of visible characters, cut to a length. */
export function plainLine(text: string, max = 300): string {
  const line = text.replace(LONE_SURROGATE, "\ufffd").replace(INVISIBLE, "").replace(CONTROL, " ").trim();
  return clipText(line, max);
}

/**
 * A plain line that no chat, mail or incident service treats as a mention or a link. The characters stay readable, in
 * the usual form of a defused address.
 */
export function defuseText(text: string, max = 300): string {
  const broken = plainLine(text, max)
    .replaceAll("@", "＠")
    .replaceAll("://", "[:]//")
    .replace(/\bwww\./gi, (www) => `${www.slice(0, -1)}[.]`);
  return clipText(broken, max);
}

/** For services that may interpret tags or HTML: angle brackets become look-alikes. */
export function defuseTags(text: string, max = 300): string {
  return defuseText(text, max).replaceAll("<", "‹").replaceAll(">", "›");
}

/** Formats `a, b, c and 4 more`, so that a long list does not displace the rest of a message. */
export function joinList(items: readonly string[], max = 20): string {
  if (items.length === 0) return "none";
  const shown = items.slice(0, max).map((item) => plainLine(item, 60));
  const rest = items.length - shown.length;
  return rest > 0 ? `${shown.join(", ")} and ${rest} more` : shown.join(", ");
}

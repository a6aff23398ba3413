/**
 * Text from outside, made harmless. Tool names, reasons and error texts come from agents;
 * in a message they must stay words: no mention, no link, no second line that looks like our own.
 */
import { clip } from "../kernel/words.ts";

const LONE_SURROGATE = /[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;
const CONTROL = /[\s\u0000-\u001f\u007f-\u009f\u2028\u2029]+/g;
/** Characters without a shape: they hide text from the reader or turn its order around. */
const INVISIBLE = /\p{Default_Ignorable_Code_Point}|[\ufff9-\ufffb]/gu;

/** One line of visible characters, cut to a length. */
export function plainLine(text: string, max = 300): string {
  const line = text.replace(LONE_SURROGATE, "\ufffd").replace(INVISIBLE, "").replace(CONTROL, " ").trim();
  return clip(line, max);
}

/**
 * A plain line that no chat, mail or incident service takes for a mention or a link. The marks stay
 * readable, as people are used to see a defused address written.
 */
export function defused(text: string, max = 300): string {
  const broken = plainLine(text, max)
    .replaceAll("@", "＠")
    .replaceAll("://", "[:]//")
    .replace(/\bwww\./gi, (www) => `${www.slice(0, -1)}[.]`);
  return clip(broken, max);
}

/** For services that may read tags or HTML in a text: angle brackets become look-alikes. */
export function tagless(text: string, max = 300): string {
  return defused(text, max).replaceAll("<", "‹").replaceAll(">", "›");
}

/** `a, b, c and 4 more`, so that a list cannot push the rest of a message away. */
export function listed(items: readonly string[], max = 20): string {
  if (items.length === 0) return "none";
  const shown = items.slice(0, max).map((item) => plainLine(item, 60));
  const rest = items.length - shown.length;
  return rest > 0 ? `${shown.join(", ")} and ${rest} more` : shown.join(", ");
}

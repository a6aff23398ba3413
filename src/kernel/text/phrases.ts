/** Helpers for the wording of messages. */

/** Returns `1 call`, `1,200 calls`. */
export function formatCountOf(n: number, one: string, many = `${one}s`): string {
  return `${n.toLocaleString("en")} ${n === 1 ? one : many}`;
}

/** Capitalizes a message. Messages start in lower case because they also follow a colon. */
export function capitalizeFirst(message: string): string {
  return message.charAt(0).toUpperCase() + message.slice(1);
}

export function clipText(text: string, max: number): string {
  if (text.length <= max) return text;
  const cut = text.slice(0, max - 1);
  // Do not cut a surrogate pair in half.
  return `${/[\ud800-\udbff]$/.test(cut) ? cut.slice(0, -1) : cut}…`;
}

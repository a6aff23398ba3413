/** Bounds what it costs to refuse a long list: every wrong item would add its problems to the message. */
import * as z from "zod";

/** A list up to this length costs little even if every item is wrong. */
const SHORT_LIST = 1_000;

/** The input with each long list cut after its first wrong item. It is refused either way. */
export function cutLongLists(schema: z.ZodType, input: unknown): unknown {
  if (!(schema instanceof z.ZodObject) || typeof input !== "object" || input === null) return input;
  let cut: Record<string, unknown> | undefined;
  for (const [name, value] of Object.entries(input)) {
    if (!Array.isArray(value) || value.length <= SHORT_LIST) continue;
    const list: unknown = Object.hasOwn(schema.shape, name) ? schema.shape[name] : undefined;
    // A list over its own maximum is refused before its items are looked at.
    if (!(list instanceof z.ZodArray) || isOverMaximum(list, value)) continue;
    const item = list.element as z.ZodType;
    const wrong = value.findIndex((one) => !item.safeParse(one).success);
    if (wrong >= 0) cut = { ...(cut ?? input), [name]: value.slice(0, wrong + 1) };
  }
  return cut ?? input;
}

const isOverMaximum = (list: z.ZodArray, { length }: readonly unknown[]): boolean =>
  list.def.checks?.some((check) => {
    const { maximum } = check._zod.def as { maximum?: number };
    return maximum !== undefined && length > maximum;
  }) ?? false;

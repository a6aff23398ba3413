/** Undos that stop working, soonest first. */
import type { Core } from "../engine/core.ts";
import type { ClosingDoc } from "../store/docs.ts";
import type { App } from "./app.ts";
import type { Position } from "./cursor.ts";

export interface Closing extends Position {
  doc: ClosingDoc;
}

const COUNTED = 10_000;

/** How many close within the time that alerts look ahead; more than ten thousand are told as that. */
export async function closingSoon({ core, settings }: App): Promise<number> {
  const to = core.env.now() + settings.alerts.undo_closing_ms;
  return (await closings(core, { to, limit: COUNTED })).length;
}

/** Those that are open at `now` and close until `to`; all of them where it is left out. */
export function closings(
  { store, env }: Core,
  { to, limit, after }: { to?: number | undefined; limit: number; after?: Position | undefined },
): Promise<Closing[]> {
  return store.list("closings", { from: env.now() + 1, to, after, order: "asc", limit });
}

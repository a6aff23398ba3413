/** Reads and updates the pin of a tool, one at a time per tool across all processes. */
import type { EngineCore } from "../../govern/core.ts";
import type { PinDoc } from "../../govern/port/docs.ts";

type PinStore = Pick<EngineCore, "store" | "env">;

export function findPin({ store }: PinStore, tool: string): Promise<PinDoc | undefined> {
  return store.get("pins", tool);
}

/** `next` returns the same pin if nothing changes, and undefined if the tool stays without one. */
export function updatePin(
  { store, env }: PinStore,
  tool: string,
  next: (known: PinDoc | undefined, now: number) => PinDoc | undefined,
): Promise<PinDoc | undefined> {
  return store.transact({
    needs: [["pins", tool]],
    run(tx) {
      const known = tx.get("pins", tool);
      const pin = next(known, env.now());
      if (pin !== undefined && pin !== known) tx.put("pins", tool, pin);
      return pin;
    },
  });
}

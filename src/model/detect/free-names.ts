/** Names for entries whose own names become the same one when they are masked: every entry is kept, with a number. */
import type { JsonObject } from "../../kernel/json.ts";

export class FreeNames {
  /** Of each name that several have, the number that its last holder got. */
  private taken: Map<string, number> | undefined;
  /** How often a name was looked up. */
  looks = 0;

  /** The name, or the first number behind it that is free. It continues where the last one ended: many cost no more than few. */
  nameIn(out: JsonObject, name: string): string {
    if (!this.isTaken(out, name) && name !== "__proto__") return name;
    this.taken ??= new Map();
    for (let n = (this.taken.get(name) ?? 1) + 1; ; n++) {
      const free = `${name}#${n}`;
      if (this.isTaken(out, free)) continue;
      this.taken.set(name, n);
      return free;
    }
  }

  private isTaken(out: JsonObject, name: string): boolean {
    this.looks++;
    return Object.hasOwn(out, name);
  }
}

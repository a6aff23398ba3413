/** Numbers entries whose names become equal when masked, so that no entry is lost. */
import type { JsonObject } from "../../kernel/json/json.ts";

export class UniqueNames {
  /** Last number given out for each repeated name. */
  private taken: Map<string, number> | undefined;
  /** Number of lookups so far. */
  looks = 0;

  /**
   * Returns the name, or the name with the next free number. The search resumes after the last number, so its cost per
   * name is constant.
   */
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

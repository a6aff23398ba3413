/** Who wants to hear of which resource, so that an update reaches those who asked and nobody else. */
import type { JsonObject } from "../kernel/json.ts";

export interface Listener {
  tell(method: string, params?: JsonObject): void;
}

export class Subscriptions {
  private readonly byUri = new Map<string, Set<Listener>>();

  note(method: string, uri: string, listener: Listener): void {
    if (method === "resources/subscribe") {
      const listeners = this.byUri.get(uri) ?? new Set();
      this.byUri.set(uri, listeners.add(listener));
    } else if (method === "resources/unsubscribe") this.remove(uri, listener);
  }

  updated(params: JsonObject): void {
    const { uri } = params;
    if (typeof uri !== "string") return;
    for (const listener of this.byUri.get(uri) ?? [])
      listener.tell("notifications/resources/updated", params);
  }

  drop(listener: Listener): void {
    for (const uri of [...this.byUri.keys()]) this.remove(uri, listener);
  }

  private remove(uri: string, listener: Listener): void {
    const listeners = this.byUri.get(uri);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.byUri.delete(uri);
  }
}

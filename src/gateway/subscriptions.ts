/** Who wants to hear of which resource, so that an update reaches those who asked and no others. */
import type { JsonObject } from "../kernel/json.ts";

export interface Subscriber {
  tell(method: string, params?: JsonObject): void;
  /** Whether what came over the connection of that holder is for it. */
  hears(holder: string | null): boolean;
}

export class Subscriptions {
  private readonly byUri = new Map<string, Set<Subscriber>>();

  /** Carries out a request that may change who wants to hear of `uri`. */
  async around<T>(method: string, uri: unknown, listener: Subscriber, request: () => Promise<T>): Promise<T> {
    if (typeof uri !== "string") return request();
    // Before the request: an update may arrive together with the answer.
    const added = method === "resources/subscribe" && this.add(uri, listener);
    try {
      const answer = await request();
      if (method === "resources/unsubscribe") this.remove(uri, listener);
      return answer;
    } catch (error) {
      if (added) this.remove(uri, listener);
      throw error;
    }
  }

  private add(uri: string, listener: Subscriber): boolean {
    const listeners = this.byUri.get(uri) ?? new Set();
    const known = listeners.has(listener);
    this.byUri.set(uri, listeners.add(listener));
    return !known;
  }

  updated(params: JsonObject, holder: string | null): void {
    const { uri } = params;
    if (typeof uri !== "string") return;
    for (const listener of this.byUri.get(uri) ?? [])
      if (listener.hears(holder)) listener.tell("notifications/resources/updated", params);
  }

  drop(listener: Subscriber): void {
    for (const uri of [...this.byUri.keys()]) this.remove(uri, listener);
  }

  private remove(uri: string, listener: Subscriber): void {
    const listeners = this.byUri.get(uri);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.byUri.delete(uri);
  }
}

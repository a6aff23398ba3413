/** Tracks subscriptions to resources, so that an update reaches its subscribers and no other client. */
import type { JsonObject } from "../../kernel/json/json.ts";

export interface ResourceSubscriber {
  tell(method: string, params?: JsonObject): void;
  /** Whether messages on that owner's connection are for this subscriber. */
  hears(holder: string | null): boolean;
}

export class ResourceSubscriptions {
  private readonly byUri = new Map<string, Set<ResourceSubscriber>>();

  /** Runs a request that may subscribe to `uri` or unsubscribe from it. */
  async around<T>(
    method: string,
    uri: unknown,
    listener: ResourceSubscriber,
    request: () => Promise<T>,
  ): Promise<T> {
    if (typeof uri !== "string") return request();
    // Subscribe before the request, because an update may arrive together with the answer.
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

  private add(uri: string, listener: ResourceSubscriber): boolean {
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

  drop(listener: ResourceSubscriber): void {
    for (const uri of [...this.byUri.keys()]) this.remove(uri, listener);
  }

  private remove(uri: string, listener: ResourceSubscriber): void {
    const listeners = this.byUri.get(uri);
    listeners?.delete(listener);
    if (listeners?.size === 0) this.byUri.delete(uri);
  }
}

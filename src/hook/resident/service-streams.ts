/** The connections of the resident process to the service: one for each server and key, open between calls. */
import { createEgress, type EgressClient } from "../../egress/egress.ts";
import { StreamClient } from "../../http/api/stream-client.ts";
import type { ServiceStream } from "../service.ts";

/** Older ones belong to settings that changed. */
const MAX_STREAMS = 8;

class ServiceStreams {
  private readonly streams = new Map<string, StreamClient>();
  // A person chose this server, so only the egress rules that always apply are checked.
  private readonly egress: EgressClient = createEgress({ block_private: false }, {});

  to({ server, key }: { server: string; key: string }): ServiceStream {
    const name = `${key} ${server}`;
    const stream = this.streams.get(name) ?? new StreamClient({ url: server, key, egress: this.egress });
    this.streams.delete(name);
    this.streams.set(name, stream);
    for (const [other, old] of this.streams) {
      if (this.streams.size <= MAX_STREAMS) break;
      this.streams.delete(other);
      old.close();
    }
    return {
      ask: ({ body, ...message }, options) =>
        stream.ask(
          { ...message, ...(body === undefined ? {} : { body: body as Record<string, unknown> }) },
          options,
        ),
    };
  }

  async close(): Promise<void> {
    for (const stream of this.streams.values()) stream.close();
    await this.egress.close();
  }
}

/** For the process's list of parts, which makes one of each. */
export const createServiceStreams = (): ServiceStreams => new ServiceStreams();

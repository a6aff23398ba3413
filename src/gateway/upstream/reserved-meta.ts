/**
 * Removes `_meta` keys under `svc/` from all messages of an upstream, at any depth. The gateway publishes its decisions
 * under these keys, so no upstream may set them.
 */
const OWN_PREFIX = /^svc\//i;

/** Modifies the message in place: the transport has just parsed it, and no caller has it yet. */
export function removeOwnMeta<Message extends object>(message: Message): Message {
  const left: object[] = [message];
  for (let one = left.pop(); one !== undefined; one = left.pop()) {
    for (const [name, value] of Object.entries(one)) {
      if (typeof value !== "object" || value === null) continue;
      if (name === "_meta") removeOwnKeys(value as Record<string, unknown>);
      left.push(value as object);
    }
  }
  return message;
}

function removeOwnKeys(meta: Record<string, unknown>): void {
  for (const key of Object.keys(meta)) if (OWN_PREFIX.test(key)) delete meta[key];
}

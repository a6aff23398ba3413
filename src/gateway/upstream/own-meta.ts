/**
 * The gateway says in `_meta`, under `svc/`, what it decided. Only the gateway may: these keys are removed from everything
 * that an upstream sends, wherever in a message a `_meta` is.
 */
const OWN_PREFIX = /^svc\//i;

/** Changes the message itself, which the transport has just read and handed to no caller yet. */
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

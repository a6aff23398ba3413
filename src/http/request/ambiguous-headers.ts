/** Rejects headers that two readers could interpret differently, instead of choosing one value. */
import type { IncomingMessage } from "node:http";
import { invalidError, SvcError } from "../../kernel/errors.ts";

export function findAmbiguousHeader({ rawHeaders, headers }: IncomingMessage): SvcError | undefined {
  let authorization = 0;
  let run = 0;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i]!;
    if (name.length === 13 && name.toLowerCase() === "authorization") authorization++;
    else if (name.length === 10 && name.toLowerCase() === "svc-run-id") run++;
  }
  if (authorization > 1) return invalidError("more than one Authorization header");
  if (run > 1) return invalidError("more than one Svc-Run-Id header");
  const encoding = headers["content-encoding"];
  if (encoding !== undefined && encoding !== "identity") {
    return new SvcError("unsupported_media", "compressed bodies are not accepted; send plain JSON");
  }
  return undefined;
}

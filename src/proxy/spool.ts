/** The body of a request, read to its end before the decision: short bodies in memory, long ones in a deleted file. */
import { createHash, randomUUID } from "node:crypto";
import { type FileHandle, open, unlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { boundedBody, type ExchangeBounds } from "../egress/bounded-body.ts";
import { SvcError } from "../kernel/errors.ts";
import { SERVICE_LIMITS } from "../kernel/limits.ts";

/** The longest body that a tool with an opaque body takes. */
const MAX_OPAQUE_BYTES = 4_294_967_296;

export interface SpooledBody {
  readonly bytes: number;
  readonly sha256: string;
  /** Its beginning, at most 1 MB. */
  readonly head: Buffer;
  /** Undefined for a body that lies in a file. */
  readonly content: Buffer | undefined;
  /** The body from its begin, for one request. */
  open(): Readable | Buffer;
  close(): Promise<void>;
}

/** Throws `too_large` past 1 MB, unless the body is opaque, and a refusal with status 408 for a body that stalls. */
export async function spoolBody(
  source: Readable,
  opaque: boolean,
  bounds: ExchangeBounds,
): Promise<SpooledBody> {
  const limit = opaque ? MAX_OPAQUE_BYTES : SERVICE_LIMITS.body_bytes;
  const hash = createHash("sha256");
  let chunks: Buffer[] = [];
  let bytes = 0;
  let head: Buffer | undefined;
  let file: FileHandle | undefined;
  const until = performance.now() + bounds.total_ms;
  const body = boundedBody(source, "the client", { ...bounds, until, refuse_with: 408 });
  try {
    for await (const chunk of body as AsyncIterable<Buffer>) {
      bytes += chunk.length;
      if (bytes > limit) throw new SvcError("too_large", tooLong(opaque));
      hash.update(chunk);
      if (file === undefined && bytes > SERVICE_LIMITS.body_bytes) {
        file = await openDeletedFile();
        for (const earlier of chunks) await file.write(earlier);
        head = Buffer.concat(chunks);
        chunks = [];
      }
      if (file === undefined) chunks.push(chunk);
      else await file.write(chunk);
    }
  } catch (error) {
    await file?.close();
    throw error;
  }
  const content = file === undefined ? Buffer.concat(chunks) : undefined;
  return {
    bytes,
    head: content ?? head!,
    sha256: hash.digest("hex"),
    content,
    // By its handle: a stream over the bare number closes it behind the handle, and later another file's.
    open: () => content ?? file!.createReadStream({ start: 0 }),
    close: async () => file?.close(),
  };
}

const tooLong = (opaque: boolean): string =>
  opaque
    ? `the body is longer than ${MAX_OPAQUE_BYTES} bytes`
    : "the body is longer than 1 MB; a tool that takes longer ones has http.body: opaque in its manifest";

/** A file without a name, so that nothing of it remains after this process. */
async function openDeletedFile(): Promise<FileHandle> {
  const path = join(tmpdir(), `svc-body-${randomUUID()}`);
  const file = await open(path, "wx+", 0o600);
  await unlink(path);
  return file;
}

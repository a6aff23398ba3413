/**
 * Writes files as a tar archive (POSIX ustar), which every system can unpack. Implemented here because a file needs
 * only a 512-byte header. Sizes too large for the octal field use the encoding of GNU tar, bsdtar and busybox.
 */
const BLOCK = 512;
/** The largest size that eleven octal digits can hold. */
const MAX_OCTAL = 8 ** 11 - 1;

export interface TarEntry {
  /** At most 100 bytes of ASCII. */
  name: string;
  size: number;
  /** Exactly `size` bytes. */
  bytes: AsyncIterable<Uint8Array>;
}

interface TarOptions {
  mtime_ms: number;
  /** The owner of the files when root unpacks them. */
  uid: number;
  gid: number;
}

export async function* writeTar(
  entries: Iterable<TarEntry>,
  options: TarOptions,
): AsyncGenerator<Uint8Array> {
  for (const { name, size, bytes } of entries) {
    yield header(name, size, options);
    let written = 0;
    for await (const part of bytes) {
      written += part.length;
      yield part;
    }
    if (written !== size) throw new Error(`${name}: ${written} bytes arrived, ${size} were announced`);
    yield Buffer.alloc((BLOCK - (size % BLOCK)) % BLOCK);
  }
  yield Buffer.alloc(2 * BLOCK);
}

function header(name: string, size: number, { mtime_ms, uid, gid }: TarOptions): Buffer {
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, at: number, length: number): void => {
    block.write(value.toString(8).padStart(length - 1, "0"), at, "latin1");
  };
  block.write(name, 0, 100, "latin1");
  octal(0o600, 100, 8);
  octal(uid, 108, 8);
  octal(gid, 116, 8);
  if (size > MAX_OCTAL) {
    block.writeUInt8(0x80, 124);
    block.writeBigUInt64BE(BigInt(size), 128);
  } else octal(size, 124, 12);
  octal(Math.floor(mtime_ms / 1_000), 136, 12);
  block.fill(" ", 148, 156);
  block.write("0", 156, "latin1");
  block.write("ustar\u000000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148, "latin1");
  return block;
}

/** A moving picture out of still ones: PNGs of one size become one animated PNG, without decoding them. */
import { crc32 } from "node:zlib";

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);

interface Chunk {
  type: string;
  data: Buffer;
}

function chunksOf(png: Buffer): Chunk[] {
  const chunks: Chunk[] = [];
  for (let at = SIGNATURE.length; at < png.length; ) {
    const length = png.readUInt32BE(at);
    chunks.push({
      type: png.toString("latin1", at + 4, at + 8),
      data: png.subarray(at + 8, at + 8 + length),
    });
    at += 12 + length;
  }
  return chunks;
}

function chunk(type: string, ...parts: Buffer[]): Buffer {
  const body = Buffer.concat([Buffer.from(type, "latin1"), ...parts]);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(body.length - 4);
  const sum = Buffer.alloc(4);
  sum.writeUInt32BE(crc32(body));
  return Buffer.concat([length, body, sum]);
}

const number = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** Each picture with its duration; the pictures repeat. */
export function animated(frames: readonly { png: Buffer; ms: number }[]): Buffer {
  const [first] = frames.map(({ png }) => chunksOf(png));
  const header = first!.find(({ type }) => type === "IHDR")!.data;
  const out = [SIGNATURE, chunk("IHDR", header), chunk("acTL", number(frames.length), number(0))];
  let sequence = 0;
  for (const [i, { png, ms }] of frames.entries()) {
    const chunks = chunksOf(png);
    const size = chunks.find(({ type }) => type === "IHDR")!.data;
    if (!size.equals(header)) throw new Error("the pictures are not of one size and kind");
    const stands = Buffer.alloc(6);
    stands.writeUInt16BE(ms, 0);
    stands.writeUInt16BE(1_000, 2);
    out.push(chunk("fcTL", number(sequence++), size.subarray(0, 8), number(0), number(0), stands));
    const data = Buffer.concat(chunks.filter(({ type }) => type === "IDAT").map((one) => one.data));
    out.push(i === 0 ? chunk("IDAT", data) : chunk("fdAT", number(sequence++), data));
  }
  return Buffer.concat([...out, chunk("IEND")]);
}

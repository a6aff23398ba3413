/** Splits a byte stream into lines. Buffers one line of limited length at most. */
export class LineSplitter {
  private parts: Buffer[] = [];
  private size = 0;
  private readonly max: number;

  constructor(max_bytes: number) {
    this.max = max_bytes;
  }

  /** Passes on every completed line. Returns false after a line over the limit, and must not be called again then. */
  push(chunk: Buffer, onLine: (line: string) => void): boolean {
    let start = 0;
    for (;;) {
      const end = chunk.indexOf(0x0a, start);
      if (end < 0) break;
      if (this.size + end - start > this.max) return this.tooLong();
      onLine(this.take(chunk.subarray(start, end)));
      start = end + 1;
    }
    const rest = chunk.subarray(start);
    if (this.size + rest.length > this.max) return this.tooLong();
    if (rest.length > 0) {
      this.parts.push(rest);
      this.size += rest.length;
    }
    return true;
  }

  private take(last: Buffer): string {
    const text =
      this.parts.length === 0
        ? last.toString("utf8")
        : Buffer.concat([...this.parts, last], this.size + last.length).toString("utf8");
    this.parts = [];
    this.size = 0;
    return text.endsWith("\r") ? text.slice(0, -1) : text;
  }

  private tooLong(): false {
    this.parts = [];
    this.size = 0;
    return false;
  }
}

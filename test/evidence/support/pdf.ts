/** The text of a PDF as its pages show it, piece by piece; enough of a reader for what pdfkit writes. */
import { inflateSync } from "node:zlib";

export function pdfText(pdf: Uint8Array): string {
  const bytes = Buffer.from(pdf);
  const pieces: string[] = [];
  for (let at = bytes.indexOf("stream\n"); at >= 0; at = bytes.indexOf("stream\n", at + 1)) {
    if (bytes.subarray(at - 3, at).toString() === "end") continue;
    const end = bytes.indexOf("\nendstream", at);
    let content: string;
    try {
      content = inflateSync(bytes.subarray(at + 7, end)).toString("latin1");
    } catch {
      continue;
    }
    for (const [, shown] of content.matchAll(/\[([^\]]*)\] TJ/g)) {
      const hex = [...shown!.matchAll(/<([0-9a-f]+)>/g)].map(([, digits]) => digits).join("");
      pieces.push(Buffer.from(hex, "hex").toString("latin1"));
    }
  }
  return pieces.join("\n");
}

/** Text becomes HTML in one way only, and never becomes markup. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, it } from "vitest";
import { verifies } from "../../test/support/verifies.ts";
import { escapeInvisible, joinHtml, safeHtml, VerbatimText } from "./html.ts";

describe("html", () => {
  it("escapes plain values, in text and in attributes", () => {
    const evil = `"><img src=x onerror='1'>&`;
    expect(String(safeHtml`<p title="${evil}">${evil}</p>`)).toBe(
      `<p title="&quot;&gt;&lt;img src=x onerror=&#39;1&#39;&gt;&amp;">&quot;&gt;&lt;img src=x onerror=&#39;1&#39;&gt;&amp;</p>`,
    );
    expect(String(safeHtml`<i>${safeHtml`<b>${evil}</b>`}</i>`)).toBe(
      "<i><b>&quot;&gt;&lt;img src=x onerror=&#39;1&#39;&gt;&amp;</b></i>",
    );
  });

  it("leaves out nothing, and lists as they are", () => {
    expect(String(safeHtml`${null}${undefined}${false}${0}${["a", safeHtml`<b>b</b>`, ["<"]]}`)).toBe(
      "0a<b>b</b>&lt;",
    );
    expect(String(safeHtml`${joinHtml(["a", "b", "c"], safeHtml`<br>`)}`)).toBe("a<br>b<br>c");
  });

  it("escapes a long text like a short one, in few pieces", () => {
    verifies("beyond.heavy.html-flat");
    const evil = `<a b="c" d='e'>&amp;\u202e\n`;
    const short = String(safeHtml`<p>${evil}</p>`);
    const long = evil.repeat(10_000);
    const drawn = [safeHtml`<p>${long}</p>`, safeHtml`<p>${new VerbatimText(long)}</p>`].map(String);
    const inner = short.slice(3, -4);
    expect(drawn[0] === `<p>${inner.repeat(10_000)}</p>`).toBe(true);
    expect(drawn[1] === `<p>${inner.replace("\\u202e", "\u202e").repeat(10_000)}</p>`).toBe(true);
    // One flat text of 2.4 MB. The places to escape alone would be 10 MB, and pieces 25 MB.
    const marks = '"'.repeat(400_000);
    const { heapUsed } = process.memoryUsage();
    const drawn_marks = safeHtml`<p>${marks}</p>`;
    expect(process.memoryUsage().heapUsed - heapUsed).toBeLessThan(6_000_000);
    expect(String(drawn_marks)).toHaveLength(7 + 6 * marks.length);
  });

  it("shows characters that would move or hide other text", () => {
    expect(escapeInvisible("a\u202eb\u2066c\u0007d\ne\tf")).toBe("a\\u202eb\\u2066c\\u0007d\ne\tf");
    expect(String(safeHtml`${"\u202e<"}`)).toBe("\\u202e&lt;");
    expect(String(safeHtml`<textarea>${new VerbatimText("\u202e<")}</textarea>`)).toBe(
      "<textarea>\u202e&lt;</textarea>",
    );
  });

  it("is the only way: nothing in the console makes HTML out of a string", () => {
    const folder = fileURLToPath(new URL(".", import.meta.url));
    const files = readdirSync(folder, { recursive: true, encoding: "utf8" }).filter(
      (name) => name.endsWith(".ts") && !name.endsWith(".test.ts"),
    );
    expect(files.length).toBeGreaterThan(40);
    for (const name of files) {
      const text = readFileSync(`${folder}/${name}`, "utf8");
      if (name !== "html.ts") expect(text, name).not.toMatch(/hono\/html/);
      // In the template's own file, a long text is escaped once, and a thread's HTML has a marker in its place.
      const others = text.replace("(raw(escapeBytes(", "").replace("return raw(`<!--$", "");
      expect(name === "html.ts" ? others : text, name).not.toMatch(
        /\braw\(|isEscaped|insertAdjacentHTML|outerHTML|innerHTML\s*=[^=]|document\.write/,
      );
    }
  });
});

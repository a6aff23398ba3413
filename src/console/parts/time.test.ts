import { expect, it } from "vitest";
import { safeHtml } from "../html.ts";
import { formatTimesIn } from "./time.ts";

it("formats the times in a text like the page's times, and leaves the rest", () => {
  const shown =
    safeHtml`${formatTimesIn("closes 2026-11-18T21:49:07.778Z, not 2026-99-18T21:49:07Z <b>")}`.toString();
  expect(shown).toBe(
    'closes <time datetime="2026-11-18T21:49:07.778Z" title="2026-11-18 21:49:07.778 UTC" data-at="clock">2026-11-18 21:49 UTC</time>, not 2026-99-18T21:49:07Z &lt;b&gt;',
  );
});

import { expect, it } from "vitest";
import { safeHtml } from "../html.ts";
import { formatTimesIn } from "./time.ts";

it("writes the moments in a text as the page writes moments, and leaves what is none", () => {
  const shown =
    safeHtml`${formatTimesIn("closes 2026-11-18T21:49:07.778Z, not 2026-99-18T21:49:07Z <b>")}`.toString();
  expect(shown).toBe(
    'closes <time datetime="2026-11-18T21:49:07.778Z" title="2026-11-18 21:49:07.778 UTC" data-at="clock">2026-11-18 21:49 UTC</time>, not 2026-99-18T21:49:07Z &lt;b&gt;',
  );
});

import { readFileSync } from "node:fs";
import { expect, it } from "vitest";
import { assetTexts, TEXTS_FILE } from "../../../scripts/console-assets.mjs";

it("serves the style sheets and scripts as they are: run node scripts/console-assets.mjs", () => {
  expect(readFileSync(TEXTS_FILE, "utf8")).toBe(assetTexts());
});

/** A second opinion: the detector must find everything in the corpus that secretlint calls a secret. */
import { readFileSync } from "node:fs";
import { lintSource } from "@secretlint/core";
import { creator as presetCreator } from "@secretlint/secretlint-rule-preset-recommend";
import { describe, expect, it } from "vitest";
import { parse } from "yaml";
import { findSecrets } from "./secrets.ts";

interface Sample {
  kind: string;
  parts: string[];
  before?: string;
  after?: string;
  key?: string;
}

const file = new URL("../../../test/cases/detect/secrets.yaml", import.meta.url);
const config = {
  rules: [{ id: "@secretlint/secretlint-rule-preset-recommend", rule: presetCreator, options: {} }],
};

async function secretlintFinds(text: string): Promise<boolean> {
  const source = { filePath: "/sample.txt", content: text, ext: ".txt", contentType: "text" as const };
  const { messages } = await lintSource({ source, options: { config, noPhysicFilePath: true } });
  return messages.length > 0;
}

describe("secretlint as an oracle", () => {
  it("finds nothing in the corpus that the detector misses", async () => {
    const samples = parse(readFileSync(file, "utf8")) as Sample[];
    const missed: string[] = [];
    let agreed = 0;
    for (const { kind, parts, before = "", after = "", key } of samples) {
      const text = before + parts.join("") + after;
      if (!(await secretlintFinds(text))) continue;
      if (findSecrets(text, key).length > 0) agreed++;
      else missed.push(kind);
    }
    console.log(
      `secretlint: finds ${agreed + missed.length} of ${samples.length}; the detector finds ${agreed} of those`,
    );
    expect(missed).toEqual([]);
    expect(agreed).toBeGreaterThan(20);
  });
});

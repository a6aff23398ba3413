/** Risk in words: the band of the score, and the labels that carry it. */
import { expect, it } from "vitest";
import { verifies } from "../../../test/support/verifies.ts";
import { type RiskLabel, riskWords } from "./risk.ts";

const labels = (effect: string | null, blast: string | null, data: string | null): RiskLabel[] => [
  { factor: "effect", label: effect, points: 25 },
  { factor: "blast_radius", label: blast, points: 25 },
  { factor: "data_class", label: data, points: 20 },
  { factor: "environment", label: "demo", points: 5 },
];

it("names the band and the labels that carry it, the heaviest first", () => {
  verifies("beyond.polish.risk");
  expect(riskWords(75, labels("compensable", "external", "financial"))).toBe("High: external, financial");
  expect(riskWords(50, labels("irreversible", "external", null))).toBe(
    "Medium: irreversible, external, data class not declared",
  );
  expect(riskWords(0, [{ factor: "effect", label: "read", points: 0 }])).toBe("Low");
});

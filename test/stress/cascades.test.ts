/** Random cascades against their model. `npm run prove -- cascades` plays 10,000 of them. */
import { expect, it } from "vitest";
import { playCascade } from "../../stress/prove/cascades.ts";
import { verifies } from "../support/verifies.ts";

it("equal the history without the chosen steps, or the report names the difference", async () => {
  verifies("beyond.cascade.model");
  const problems: string[] = [];
  for (let seed = 1; seed <= 40; seed++) problems.push(...(await playCascade(seed)));
  expect(problems).toEqual([]);
});

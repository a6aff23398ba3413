import { describe, expect, it } from "vitest";
import { freshDatabase } from "../support/postgres.ts";
import { runExample, shownInReadme, steady } from "./support/example.ts";

describe("examples/two-servers", () => {
  it("does what its README shows, on a separate database", async () => {
    const database = await freshDatabase();
    try {
      const { code, out, err, left } = await runExample("two-servers", { DATABASE_URL: database.url });
      expect({ code, err, left }).toEqual({ code: 0, err: "", left: [] });
      expect(steady(out)).toBe(steady(shownInReadme("two-servers")));
    } finally {
      await database.drop();
    }
  });
});

import { describe, expect, it } from "vitest";
import { SvcError } from "../kernel/errors.ts";
import { indeterminateCommit } from "../store/indeterminate-commit.ts";
import { failureWords, pageFailureOf } from "./errors.ts";

const hintOf = (error: unknown): string => failureWords(pageFailureOf(error)).hint;

describe("errors for people", () => {
  it("says that nothing was recorded only where that is known", () => {
    expect(hintOf(new SvcError("unavailable", "no"))).toContain("Nothing was recorded");
    expect(hintOf(indeterminateCommit("it took too long"))).toContain("may have been recorded");
  });
});

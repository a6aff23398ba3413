import { describe, expect, it } from "vitest";
import { SvcError } from "../kernel/errors.ts";
import { mayBeFound } from "../store/may-be-found.ts";
import { failureWords, pageFailureOf } from "./errors.ts";

const hintOf = (error: unknown): string => failureWords(pageFailureOf(error)).hint;

describe("what a person is told", () => {
  it("says that nothing was recorded only where that is known", () => {
    expect(hintOf(new SvcError("unavailable", "no"))).toContain("Nothing was recorded");
    expect(hintOf(mayBeFound("it took too long"))).toContain("may have been recorded all the same");
  });
});

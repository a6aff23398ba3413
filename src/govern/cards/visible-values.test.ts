import { describe, expect, it } from "vitest";
import { withoutCredentials } from "./visible-values.ts";

describe("what a card shows of values", () => {
  it("is never a value named password, however short, plain or deep it is", () => {
    const masked = (n: number) => `[REDACTED:password, ${n} characters]`;
    expect(
      withoutCredentials({
        password: 12345678,
        db: { password: { value: "abc" } },
        passwords: "two words",
        pin: 1234,
        passcode: ["0000000", "12"],
      }),
    ).toEqual({
      password: masked(8),
      db: { password: { value: masked(3) } },
      passwords: "two words",
      pin: "[REDACTED:credential, 4 characters]",
      passcode: ["0000000", masked(2)],
    });
  });

  it("has every value to decide about", () => {
    const judged = {
      secret: { name: "prod-database", version: 12345 },
      password: "$FROM_VAULT",
      page: { token: "abc" },
      max_tokens: 40_000,
      token: 12345,
      command: "docker run -u 1000:1000 image",
      pinned: 1234,
      reset_password: true,
    };
    expect(withoutCredentials(judged)).toEqual(judged);
  });
});

import { describe, expect, it } from "vitest";
import { findPii, redactPii } from "./pii.ts";

describe("redactPii", () => {
  it("names the kind instead of the value", () => {
    expect(redactPii("mail alice@example.com or call +1 202 555 0143 now")).toBe(
      "mail [PII:email] or call [PII:phone] now",
    );
    expect(redactPii("card 4111 1111 1111 1111, SSN 078-05-1120")).toBe("card [PII:card], SSN [PII:ssn]");
    expect(redactPii("IBAN DE89 3704 0044 0532 0130 00 AND MORE")).toBe("IBAN [PII:iban] AND MORE");
  });

  it("cuts a figure off that only follows a phone number", () => {
    expect(redactPii("+1 202 555 0143 2026")).toBe("[PII:phone] 2026");
  });

  it("asks for the checksums", () => {
    expect(findPii("4111 1111 1111 1112")).toEqual([]);
    expect(findPii("DE89 3704 0044 0532 0130 01")).toEqual([]);
  });

  it("does not touch redacted values", () => {
    const text = "[REDACTED:github_token] [PII:email] [PII:phone]";
    expect(redactPii(text)).toBe(text);
  });
});

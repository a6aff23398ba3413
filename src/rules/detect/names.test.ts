import { describe, expect, it } from "vitest";
import { isLoggedSecretName, isPlaceholder, secretName } from "./names.ts";

describe("secretName", () => {
  it.each([
    "password",
    "dbPassword",
    "DB_PASSWORD",
    "user-password",
    "PASSWORD_PROD",
    "password2",
    "client_secret",
    "secretKey",
  ])("%s is a secret whatever it holds", (name) => expect(secretName(name)?.strong).toBe(true));
  it.each([
    "token",
    "accessToken",
    "api_key",
    "x-api-key",
    "APIKEY",
    "aws_access_key",
    "signing_key",
    "authorization",
  ])("%s is a secret when it looks like one", (name) => expect(secretName(name)?.strong).toBe(false));
  it.each([
    "max_tokens",
    "tokens",
    "next_page_token",
    "token_count",
    "password_hash",
    "secret_name",
    "api_key_id",
    "key",
    "author",
    "",
  ])("%s is not", (name) => expect(secretName(name)).toBeUndefined());
});

describe("isPlaceholder", () => {
  it.each([
    "***",
    "xxxxxx",
    "$X",
    "{{ x }}",
    "<password>",
    "process.env.X",
    "YOUR_KEY",
    "changeme",
    "DB_PASSWORD",
    "[REDACTED:x]",
    "op://a/b",
  ])("%s stands in for a secret", (value) => expect(isPlaceholder(value)).toBe(true));
  it.each(["hunter2", "Qw3rty!2024", "9f8e7d6c5b4a"])("%s does not", (value) =>
    expect(isPlaceholder(value)).toBe(false),
  );
});

describe("isLoggedSecretName", () => {
  it("covers the names that a log line must not show", () => {
    for (const name of [
      "password",
      "secret",
      "token",
      "authorization",
      "api_key",
      "cookie",
      "credential",
      "private_key",
      "signature",
    ]) {
      expect(isLoggedSecretName(`x_${name}`)).toBe(true);
    }
    expect(isLoggedSecretName("path")).toBe(false);
  });
});

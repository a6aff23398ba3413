import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { findSecrets, redactSecrets } from "./secrets.ts";

// Put together at run time, so that no scanner takes this file for a leak.
const GITHUB = ["ghp", "_aB3dE6gH9jK2mN5pQ8sT1vW4yZ7cF0hJ3lMx"].join("");
const AWS_ID = ["AKIA", "IOSFODNN7EXAMPLE"].join("");
const AWS_SECRET = ["wJalrXUtnFEMI", "/K7MDENG/bPxRfiCYEXAMPLEKEY"].join("");
const PEM = [
  "-----BEGIN",
  " PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49AgEGCCqGSM49\n-----END PRIVATE KEY-----",
].join("");

describe("redactSecrets", () => {
  it("names the kind instead of the secret and keeps the rest", () => {
    expect(redactSecrets(`use ${GITHUB} for it`)).toBe("use [REDACTED:github_token] for it");
    expect(redactSecrets(`a ${GITHUB}, b ${GITHUB}`)).toBe(
      "a [REDACTED:github_token], b [REDACTED:github_token]",
    );
    expect(redactSecrets("nothing here")).toBe("nothing here");
  });

  it("keeps the name of an assignment and the address of a connection string", () => {
    expect(redactSecrets("DB_PASSWORD=Qw3rty!2024 next")).toBe("DB_PASSWORD=[REDACTED:password] next");
    expect(redactSecrets("postgres://app:K7f9sQ2m@db.internal/app")).toBe(
      "postgres://app:[REDACTED:connection_string]@db.internal/app",
    );
    expect(redactSecrets(`Authorization: Bearer ${GITHUB}`)).toBe(
      "Authorization: Bearer [REDACTED:github_token]",
    );
  });

  it("takes a private key out from its first line to its last", () => {
    expect(redactSecrets(`before\n${PEM}\nafter`)).toBe("before\n[REDACTED:private_key]\nafter");
  });

  it("finds both halves of an AWS pair", () => {
    const kinds = findSecrets(`${AWS_ID} ${AWS_SECRET}`).map((hit) => hit.kind);
    expect(kinds).toEqual(["aws_access_key_id", "aws_secret_access_key"]);
    expect(redactSecrets(`aws_secret_access_key = ${AWS_SECRET}`)).toBe(
      "aws_secret_access_key = [REDACTED:aws_secret_access_key]",
    );
  });

  it("takes the whole value of a field whose name says that it is a secret", () => {
    expect(redactSecrets("letmein", "password")).toBe("[REDACTED:password]");
    expect(redactSecrets("letmein", "greeting")).toBe("letmein");
    expect(redactSecrets("$DB_PASSWORD", "password")).toBe("$DB_PASSWORD");
  });

  it("finds what a command line gives away, where the command is one that takes it there", () => {
    for (const [line, safe] of [
      ["curl -s -u deploy:hunter2x https://host/x", "curl -s -u deploy:[REDACTED:password] https://host/x"],
      ["curl --user 'a:b-c d' x", "curl --user 'a:[REDACTED:password] d' x"],
      ["sshpass -p s3cretive ssh host", "sshpass -p [REDACTED:password] ssh host"],
      ["mysql -u root -phunter2 shop", "mysql -u root -p[REDACTED:password] shop"],
      ["app --password hunter2 --verbose", "app --password [REDACTED:password] --verbose"],
      ["app --api-key 8f14e45fceea167a", "app --api-key [REDACTED:api_key]"],
    ] as const)
      expect(redactSecrets(line)).toBe(safe);
    for (const line of [
      "docker run -u 1000:1000 image",
      "chown -u app:app .",
      "curl -u $USER:$PASSWORD https://host",
      "mkdir -p some/deep/folder",
      "app --password --verbose",
      "app --token counting words",
      "git log --author ann -p src",
    ])
      expect(redactSecrets(line)).toBe(line);
  });

  it("leaves nothing more to find", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        GITHUB,
        AWS_ID,
        AWS_SECRET,
        PEM,
        "password=",
        "token: ",
        "Bearer ",
        "://u:",
        "@h/",
        '"',
        "'",
        " ",
        "=",
        ":",
      ),
      fc.string({ maxLength: 12 }),
    );
    fc.assert(
      fc.property(
        fc.array(piece, { maxLength: 12 }),
        fc.constantFrom(undefined, "password", "note"),
        (pieces, key) => {
          const once = redactSecrets(pieces.join(""), key);
          expect(redactSecrets(once, key)).toBe(once);
          expect(once).not.toContain(GITHUB);
        },
      ),
      { numRuns: 2_000 },
    );
  });

  it("reports hits in order, without overlap, and within the text", () => {
    fc.assert(
      fc.property(
        fc.array(fc.oneof(fc.constantFrom(GITHUB, AWS_ID, "api_key=", " "), fc.string())),
        (pieces) => {
          const text = pieces.join("");
          let at = 0;
          for (const hit of findSecrets(text)) {
            expect(hit.start).toBeGreaterThanOrEqual(at);
            expect(hit.end).toBeGreaterThan(hit.start);
            at = hit.end;
          }
          expect(at).toBeLessThanOrEqual(text.length);
        },
      ),
    );
  });
});

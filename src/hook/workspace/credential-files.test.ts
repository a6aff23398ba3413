/** The files that hold credentials: by name, and by what is written in them. */
import { readFileSync, realpathSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";
import { textLists } from "../../../test/support/text-lists.ts";
import { tempDir } from "../../../test/support/tmp.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { createPathGuard } from "../path-guard.ts";
import { wordsOf } from "./auto-run-files.ts";
import { CREDENTIAL_FILES } from "./credential-files.ts";

const page = readFileSync(new URL("../../../docs/reference/coding-agents-rules.md", import.meta.url), "utf8");
const guard = createPathGuard({ home: "/home/ann", protect: [], authority: "127.0.0.1:1" });
const refused = (path: string, cwd = "/home/ann/shop") => guard.path(path, cwd) !== null;

it("are all in the reference", () => {
  verifies("beyond.hooks.documented-lists");
  const lists = Object.entries(CREDENTIAL_FILES).map(([name, list]) => [name, wordsOf(list)]);
  expect(textLists(page, "## Files with credentials")).toEqual(Object.fromEntries(lists));
});

describe("a call is refused that names", () => {
  const { "in any directory": anywhere, "of the machine": machine, ...more } = CREDENTIAL_FILES;
  const home = Object.entries(more).flatMap(([name, list]) =>
    name.includes("written out") ? [] : wordsOf(list),
  );
  const paths = [
    ...wordsOf(anywhere).map((name) => `config/${name.replaceAll("*", "x")}`),
    ...home.map((name) => `/home/ann/${name}`),
    ...wordsOf(machine),
  ];

  it.each(paths)("%s, in any letter case", (path) => {
    verifies("beyond.hooks.protected");
    for (const spelling of [path, path.toUpperCase()]) expect(refused(spelling)).toBe(true);
  });
});

describe("a call is not refused that names", () => {
  it.each([
    ...[".env.example", "secrets.example.yml", "config/secrets.sample.json", ".env.template", "id_rsa.pub"],
    ...["src/secrets.ts", "credentials.ts", "src/auth.json", "kubeconfig-reader.go", "locales/en/auth.json"],
  ])("%s", (path) => {
    verifies("beyond.hooks.everyday-work");
    expect(refused(path)).toBe(false);
  });
});

describe("a configuration", () => {
  const cwd = realpathSync(tempDir("written-out"));
  const holding = (name: string, text: string): boolean => {
    writeFileSync(join(cwd, name), text);
    return (
      createPathGuard({ home: "/home/ann", protect: [], authority: "127.0.0.1:1" }).path(name, cwd) !== null
    );
  };

  it.each([
    [".npmrc", "//packages.example.com/:_authToken=npm_a1b2c3d4e5f6"],
    [".envrc", "export AWS_SECRET_ACCESS_KEY='abcdEFGH1234'"],
    [".envrc", "export DATABASE_URL=postgres://ann:hunter22@db.example.com/shop"],
    ["prod.tfvars", 'db_password = "correct-horse"'],
    ["settings.xml", "<password>correct-horse</password>"],
    ["auth.json", '{"http-basic": {"example.com": {"username": "a", "password": "0123456789ab"}}}'],
    ["wp-config.php", "define('DB_PASSWORD', 'correct-horse');"],
    ["secret.yaml", "data:\n  token: Y29ycmVjdC1ob3JzZQ==\n"],
  ])("is refused with a value written out: %s", (name, text) => {
    verifies("beyond.hooks.protected");
    expect(holding(name, text)).toBe(true);
  });

  it.each([
    [".npmrc", `//packages.example.com/:_authToken=$\{NPM_TOKEN}\nsave-exact=true`],
    [".envrc", "use flake\nexport PORT=3000\nexport TOKEN=$(pass show token)"],
    ["dev.tfvars", 'region = "eu-west-1"\npassword_length = 16\nrotate_secret = true'],
    ["settings.xml", `<password>$\{env.PASSWORD}</password>`],
    ["auth.json", '{"title": "Sign in", "forgot": "Forgot it?"}'],
    ["secret.yaml", "data:\n  token: {{ .Values.token | b64enc }}\n"],
  ])("passes with none: %s", (name, text) => {
    verifies("beyond.hooks.everyday-work");
    expect(holding(name, text)).toBe(false);
  });
});

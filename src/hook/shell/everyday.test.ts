/** Rules of everyday work: printed credentials, files that the run changed, terminals and selects. */
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { describe, expect, it, onTestFinished } from "vitest";
import { tempDir } from "../../../test/support/tmp.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { createPathGuard } from "../path-guard.ts";
import { classifyCommand } from "./classify.ts";
import { changedTest } from "./rules/decisive-files.ts";
import { isPlainSelect } from "./rules/sql-select.ts";

const home = "/home/ann";
const guard = createPathGuard({ home, protect: ["/home/ann/svc-hooks"], authority: "127.0.0.1:8787" });
const judge = (command: string, more: { cwd?: string; changed?: string[]; terminal?: boolean } = {}) =>
  classifyCommand(
    command,
    {
      cwd: more.cwd ?? "/home/ann/shop",
      home,
      changed: changedTest(more.changed ?? []),
      terminal: more.terminal ?? false,
    },
    guard,
  );

describe("a subcommand that prints credentials", () => {
  it.each([
    "gh auth token",
    "gh auth status -t",
    "aws --region eu-west-1 configure get aws_secret_access_key",
    "gcloud auth print-access-token",
    "az account get-access-token --output json",
    "kubectl -n web get secret x -o yaml",
    "kubectl get pods,secrets -o yaml",
    "terraform output -json",
    "timeout 5 vault kv get x",
    "sh -c 'op read op://a/b'",
    'echo "$(gh auth token)"',
  ])("is refused: %s", (command) => {
    verifies("beyond.hooks.printed-credentials");
    expect(judge(command).touches.join()).toContain("prints credentials");
  });

  it.each(["gh auth status", "aws configure list", "git add credential", "terraform output -no-color"])(
    "is not refused: %s",
    (command) => {
      verifies("beyond.hooks.printed-credentials");
      expect(judge(command).touches).toEqual([]);
    },
  );
});

describe("a formatter or fixer", () => {
  it.each([
    "npx prettier --write .",
    "npx eslint --fix src",
    "npx biome check --write .",
    "ruff check --fix .",
    "ruff format .",
    "black .",
    "gofmt -w .",
    "cargo fmt",
    "cargo clippy --fix",
    "rubocop -A",
    "terraform fmt -recursive",
    "shfmt -w a.sh",
  ])("is a write: %s", (command) => {
    verifies("beyond.hooks.formatters");
    expect(judge(command)).toMatchObject({ class: "format", touches: [] });
  });

  it.each(["npx prettier --check .", "npx eslint src", "ruff check ."])("only looks: %s", (command) => {
    verifies("beyond.hooks.formatters");
    expect(judge(command)).toMatchObject({ class: "build", touches: [] });
  });
});

describe("a file that the run changed", () => {
  it.each([
    ["./gradlew test", "gradlew"],
    ["./gradlew test", "gradle/wrapper/gradle-wrapper.properties"],
    ["./mvnw test", ".mvn/wrapper/maven-wrapper.properties"],
    ["node_modules/.bin/vitest run", "node_modules/.bin/vitest"],
    ["npx vitest run", "node_modules/.bin/vitest"],
    ["node_modules/.bin/vitest run", "node_modules"],
    [".venv/bin/pytest -q", ".venv/bin/pytest"],
    ["uv run pytest", ".venv/bin/pytest"],
    ["uv run pytest", "uv.lock"],
    ["npm ci", "package-lock.json"],
    ["pip install --require-hashes -r requirements.txt", "requirements.txt"],
    ["go mod download", "go.sum"],
  ])("makes the command ask: %s after %s", (command, path) => {
    verifies("beyond.hooks.changed-by-run");
    expect(judge(command).class).toBe("build");
    expect(judge(command, { changed: [`/home/ann/shop/${path}`] }).class).toMatch(/unknown|packages/);
  });

  it.each([
    ["cp x node_modules/.bin/tsc", "/home/ann/shop/node_modules/.bin/tsc"],
    ["echo x > gradlew", "/home/ann/shop/gradlew"],
    ["sed -i s/a/b/ package-lock.json", "/home/ann/shop/package-lock.json"],
    ["mv x.lock uv.lock", "/home/ann/shop/uv.lock"],
    ["cp --target-directory=.venv/bin pytest", "/home/ann/shop/.venv/bin"],
  ])("is noted: %s", (command, path) => {
    verifies("beyond.hooks.changed-by-run");
    expect(judge(command).writes).toContain(path);
  });
});

describe("a program of the workspace", () => {
  it.each([
    ...["./x", "node x.js", "python x.py", "deno run x.ts", "bun run x.ts", "bun run ./x", "java -jar x.jar"],
    ...["go run .", "go run ./cmd/a --help", "cargo run", "cargo r --bin a", "cargo run -- --help"],
    ...[
      "dotnet run",
      "zig build run",
      "zig run x.zig",
      "swift run",
      "gradle run",
      "mvn exec:java",
      "stack run",
    ],
  ])("asks, whatever starts it: %s", (command) => {
    verifies("beyond.hooks.understood-or-unknown");
    expect(judge(command)).toMatchObject({ class: "unknown", touches: [] });
  });

  it.each(["npm start", "bun run build", "go test ./...", "cargo test -- --nocapture", "zig build test"])(
    "does not ask as a task that the project names, or as its tests: %s",
    (command) => {
      verifies("beyond.hooks.everyday-work");
      expect(judge(command)).toMatchObject({ class: "build", touches: [] });
    },
  );
});

describe("a program that obeys keys", () => {
  it.each(["less a.txt", "man ls", "git log | less"])("asks with a terminal: %s", (command) => {
    verifies("beyond.hooks.typed-terminal");
    expect(judge(command, { terminal: true }).class).toBe("unknown");
    expect(judge(command).class).toBe("read");
  });

  it.each([
    "git commit",
    "git commit --amend",
    "git merge x",
    "git rebase --continue",
    "git revert x",
    "git tag -a v1",
    "git stash -p",
  ])("asks with a terminal, because of its editor: %s", (command) => {
    verifies("beyond.hooks.typed-terminal");
    expect(judge(command, { terminal: true }).class).toBe("unknown");
    expect(judge(command).class).toBe("vcs");
  });

  it.each([
    "git commit -am x",
    "git commit --amend --no-edit",
    "git merge --no-edit x",
    "git rebase main",
    "git tag -a v1 -m x",
    "git stash",
  ])("does not ask without an editor: %s", (command) => {
    verifies("beyond.hooks.typed-terminal");
    expect(judge(command, { terminal: true }).class).toBe("vcs");
  });

  it("does not ask if its output goes to a program", () => {
    verifies("beyond.hooks.typed-terminal");
    expect(judge("less a.txt | head", { terminal: true }).class).toBe("read");
  });
});

describe("a file with the name of an option", () => {
  it("makes a pattern ask", () => {
    verifies("beyond.hooks.understood-or-unknown");
    const cwd = tempDir();
    writeFileSync(join(cwd, "a.txt"), "");
    expect(judge("sort *.txt", { cwd }).class).toBe("read");
    writeFileSync(join(cwd, "--compress-program=x.txt"), "");
    expect(judge("sort *.txt", { cwd }).class).toBe("unknown");
    expect(judge('for f in *.txt; do sort "$f"; done', { cwd }).class).toBe("unknown");
  });
});

describe("a write outside of the workspace", () => {
  const at = (path: string) => {
    const shop = join(path, "shop");
    mkdirSync(join(shop, ".git"), { recursive: true });
    return shop;
  };

  it("asks, also behind a link and from another directory than the session's", () => {
    verifies("beyond.hooks.writes-outside");
    // Below the home, because everything below a temporary directory passes.
    const root = mkdtempSync(join(homedir(), ".svc-outside-"));
    onTestFinished(() => rmSync(root, { recursive: true, force: true }));
    const shop = at(root);
    symlinkSync(root, join(shop, "up"));
    mkdirSync(join(root, "other/.git"), { recursive: true });
    const began = (command: string, cwd: string) =>
      classifyCommand(command, { cwd, home, began: shop }, guard).class;
    expect(began("echo x > a.txt", shop)).toBe("write");
    expect(began("echo x > src/a.txt", join(shop, "src"))).toBe("write");
    expect(began("echo x > up/a.txt", shop)).toBe("unknown");
    expect(began("cp a.txt up/", shop)).toBe("unknown");
    expect(began("echo x > a.txt", join(root, "other"))).toBe("unknown");
    expect(began("git log", join(root, "other"))).toBe("unknown");
    expect(began("git log", shop)).toBe("read");
    expect(began("git -C ../other log", shop)).toBe("unknown");
  });
});

describe("a select", () => {
  it.each([
    "select 1",
    "SELECT count(*), max(total) FROM orders WHERE day >= '2026-01-01' GROUP BY day;",
    "select o.id from orders o join users u on (u.id = o.user_id) where u.name like 'a%' limit 5",
    "select ';drop table a' as x",
  ])("reads: %s", (sql) => {
    verifies("beyond.hooks.plain-select");
    expect(isPlainSelect(sql)).toBe(true);
  });

  it.each([
    "select 1; select 2",
    "select pg_read_file('x')",
    "select * from x.count('a')",
    'select "pg_read_file"(1)',
    "select 1 into t",
    "select * from t for update",
    "with x as (delete from a returning 1) select 1",
    "select setval('a', 1)",
    "select nextval('a')",
    "select 1 -- x",
    "select $$a$$",
    "select :'x'",
    "select E'\\\\'; drop table a; --'",
    "\\! id",
    "copy a to program 'x'",
    "select * from pg_authid",
  ])("is not plain: %s", (sql) => {
    verifies("beyond.hooks.plain-select");
    expect(isPlainSelect(sql)).toBe(false);
  });
});

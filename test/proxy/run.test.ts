/** `svc run`: what a confined command sees, writes and reaches, how it ends, and the ways out that were tried. */
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { SMALL_LIMITS, tryAllWays } from "../../stress/escape/main.ts";
import { ESCAPE_WAYS } from "../../stress/escape/ways.ts";
import { type CliResult, svc } from "../support/cli.ts";
import { program } from "../support/programs.ts";
import { selfSigned, upstream } from "../support/proxy.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";

const BWRAP = await program("bubblewrap");
const GIT = await program("git");
await program("curl");
await program("openssl");
const TLS = selfSigned(["localhost"]);
const SECRET = "confined-secret-42";
const api = await upstream(({ headers }, response) => {
  response.setHeader("content-type", "application/json");
  response.end(JSON.stringify({ sent: headers.authorization ?? null }));
}, TLS);
const HOST = `localhost:${api.port}`;

interface Place {
  home: string;
  workspace: string;
  file(path: string, text: string): string;
  run(command: string[], more?: { args?: string[]; env?: Record<string, string> }): Promise<CliResult>;
  bash(script: string, more?: { args?: string[]; env?: Record<string, string> }): Promise<CliResult>;
}

function place(policy = "version: 1\n"): Place {
  const folder = tempDir("run");
  const home = join(folder, "home");
  const workspace = join(home, "work");
  mkdirSync(workspace, { recursive: true });
  const file = (path: string, text: string) => {
    const full = join(home, path);
    mkdirSync(dirname(full), { recursive: true });
    writeFileSync(full, text);
    return full;
  };
  file("svc/policy.yaml", policy);
  file(
    "svc/manifests.yaml",
    `- {tool: net.connect, effect: irreversible, permission: net}
- {tool: api.get, effect: read, permission: api, http: {host: "${HOST}", method: GET, path: "/{what}"}}
`,
  );
  file(
    "svc/svc.config.yaml",
    `manifests: manifests.yaml
policy: policy.yaml
data: data
allow_hosts: [localhost]
credentials: [{name: api, hosts: ["${HOST}"], header: {name: Authorization, prefix: "Bearer "}, from: {env: API_TOKEN}}]
`,
  );
  const run: Place["run"] = (command, { args = [], env = {} } = {}) =>
    svc(["run", "--config", join(home, "svc/svc.config.yaml"), ...args, "--", ...command], {
      cwd: workspace,
      env: { HOME: home, API_TOKEN: SECRET, NODE_EXTRA_CA_CERTS: TLS.file, ...env },
    });
  return { home, workspace, file, run, bash: (script, more) => run(["bash", "-c", script], more) };
}

describe("svc run", () => {
  it("ends with the command's code", async () => {
    verifies("beyond.run.exit-codes");
    const { bash, run } = place();
    expect((await bash("exit 0")).code).toBe(0);
    expect((await bash("exit 7")).code).toBe(7);
    expect((await bash("kill -TERM $$")).code).toBe(143);
    expect((await run(["no-such-program"])).code).toBe(1);
  });

  it("refuses where confinement cannot be had, and says how to get it", async () => {
    verifies("beyond.run.refuses");
    const { bash, home } = place();
    const empty = tempDir("path");
    const missing = await bash("touch ran", { env: { PATH: empty } });
    expect([missing.code, missing.err]).toEqual([1, expect.stringContaining("apt-get install bubblewrap")]);
    const broken = join(empty, "bwrap");
    writeFileSync(broken, "#!/bin/sh\necho 'No permissions to create new namespace' >&2\nexit 1\n");
    chmodSync(broken, 0o755);
    const refused = await bash("touch ran", { env: { PATH: `${empty}:${process.env["PATH"]}` } });
    expect([refused.code, refused.err]).toEqual([1, expect.stringContaining("user namespaces")]);
    for (const wide of [home, "/", "/usr/share"])
      expect((await bash("touch ran", { args: ["--workspace", wide] })).err).toContain("--workspace");
    expect(existsSync(join(home, "work/ran"))).toBe(false);
    const nothing = await bash("true", {
      env: { PATH: process.env["PATH"]! },
      args: ["--policy", "missing.yaml"],
    });
    expect(nothing.code).toBe(1);
  });

  it("lets the command write to its workspace and its own temporary directory", async () => {
    verifies("beyond.run.writes");
    const { bash, home, workspace } = place();
    const { code, err } = await bash(
      `echo a > here; mkdir -p sub; echo b > sub/there; echo c > /tmp/own; echo d > ../outside; echo e > "$HOME/own"`,
    );
    expect([code, err]).toEqual([0, expect.stringMatching(/at most .*(cgroups|rlimits)/)]);
    expect(readFileSync(join(workspace, "sub/there"), "utf8")).toBe("b\n");
    expect(readdirSync(home).sort()).toEqual(["svc", "work"]);
    expect(existsSync("/tmp/own")).toBe(false);
    expect(readdirSync(workspace).sort()).toEqual(["here", "sub"]);
  });

  it("keeps files that run by themselves read-only, and moves new ones away", async () => {
    verifies("beyond.run.protected");
    const { bash, home, workspace, file } = place();
    spawnSync(GIT, ["init", "-q", workspace]);
    file("work/.envrc", "export A=1\n");
    file("work/sub/.vscode/tasks.json", "{}\n");
    const { code, err } = await bash(`
      for f in .envrc .mcp.json .git/config .git/hooks/pre-commit sub/.vscode/tasks.json .claude/settings.json; do
        (echo evil >> $f) 2>/dev/null && echo wrote $f; done
      mv .git gone 2>/dev/null; mkdir -p new && echo evil > new/.envrc && mkdir -p new/.claude && echo '{}' > new/.claude/settings.json
      ln -s / new/.vscode; echo ok > new/plain; git add -A .; git -c user.name=a -c user.email=b commit -qm x; git init -q other`);
    expect(code).toBe(0);
    expect(readFileSync(join(workspace, ".envrc"), "utf8")).toBe("export A=1\n");
    expect(readFileSync(join(workspace, "sub/.vscode/tasks.json"), "utf8")).toBe("{}\n");
    expect(readdirSync(join(workspace, "new"))).toEqual(["plain"]);
    expect(readdirSync(workspace).sort()).toEqual([".envrc", ".git", "new", "other", "sub"]);
    expect(readdirSync(join(workspace, "other"))).toEqual([]);
    expect(err).toContain("new/.envrc");
    const moved = join(home, "svc/data/moved");
    expect(readFileSync(join(moved, readdirSync(moved)[0]!, "new/.envrc"), "utf8")).toBe("evil\n");
    const log = spawnSync(GIT, ["-C", workspace, "ls-tree", "-r", "--name-only", "HEAD"], {
      encoding: "utf8",
    });
    expect(log.stdout).toContain("new/plain");
    expect(log.stdout).not.toContain(".mcp.json");
  });

  it("protects what a hook leads to, and the directory that git's configuration names", async () => {
    verifies("beyond.run.protected");
    const { bash, home, workspace, file } = place();
    spawnSync(GIT, ["init", "-q", workspace]);
    spawnSync(GIT, ["-C", workspace, "config", "core.hooksPath", "tools/hooks"]);
    file("work/scripts/check", "#!/bin/sh\n");
    file("work/tools/hooks/post-merge", "#!/bin/sh\n");
    symlinkSync("../../scripts/check", join(workspace, "tools/hooks/pre-commit"));
    symlinkSync("scripts/check", join(workspace, ".envrc"));
    const { code, err } = await bash(`
      for f in scripts/check tools/hooks/pre-commit tools/hooks/post-merge tools/hooks/new .envrc; do
        (echo evil >> $f) 2>/dev/null && echo wrote $f; done
      mv scripts s2 && mkdir scripts && echo evil > scripts/check; mv tools t2 && mkdir -p tools/hooks && echo evil > tools/hooks/post-merge`);
    expect([code, err]).toEqual([0, expect.stringContaining("check them in")]);
    for (const path of ["s2/check", "t2/hooks/post-merge"])
      expect(readFileSync(join(workspace, path), "utf8")).toBe("#!/bin/sh\n");
    expect([readdirSync(join(workspace, "scripts")), readdirSync(join(workspace, "tools"))]).toEqual([
      [],
      [],
    ]);
    const moved = join(home, "svc/data/moved");
    expect(readFileSync(join(moved, readdirSync(moved)[0]!, "scripts/check"), "utf8")).toBe("evil\n");
  });

  it("starts where git's configuration names a directory of hooks that is not there", async () => {
    verifies("beyond.run.protected");
    const { bash, workspace } = place();
    spawnSync(GIT, ["init", "-q", workspace]);
    spawnSync(GIT, ["-C", workspace, "config", "core.hooksPath", "far/away/hooks"]);
    const { code, err } = await bash("mkdir -p far/away/hooks; echo evil > far/away/hooks/pre-commit");
    expect([code, err]).toEqual([0, expect.stringContaining("far/away/hooks")]);
    expect(readdirSync(join(workspace, "far/away"))).toEqual([]);
  });

  it("leaves no file that gives others this user's rights", async () => {
    verifies("beyond.run.set-id");
    const { bash, workspace } = place();
    const { out } = await bash(
      `cp /bin/true a; chmod 4755 a; chmod u+s a; chmod 2755 a; install -m 6755 /bin/true b; mkdir -m 2775 c; chmod 755 a && echo plain`,
    );
    expect(out).toBe("plain\n");
    for (const name of readdirSync(workspace))
      expect([name, statSync(join(workspace, name)).mode & 0o6000]).toEqual([name, 0]);
  });

  it("removes what would give git other hooks while the command runs", async () => {
    verifies("beyond.run.protected");
    const { bash, workspace } = place();
    spawnSync(GIT, ["init", "-q", workspace]);
    const { out, err } = await bash(
      "mkdir evil; echo ../evil > .git/commondir; for i in $(seq 100); do [ -e .git/commondir ] || break; sleep 0.05; done; ls .git/commondir || echo gone",
    );
    expect([out, err]).toEqual(["gone\n", expect.stringContaining("would give git other hooks")]);
    expect(existsSync(join(workspace, ".git/commondir"))).toBe(false);
  });

  it("hides credentials and the service's own files", async () => {
    verifies("beyond.run.hidden");
    const { bash, home, file } = place();
    file(".ssh/id_ed25519", "canary");
    file("work/.env", "canary");
    file("work/deep/server.pem", "canary");
    file("work/svc.config.yaml", "# canary\n");
    const { out } = await bash(
      `cat .env deep/server.pem svc.config.yaml "$HOME/.ssh/id_ed25519" ../svc/* /proc/1/environ 2>/dev/null; env; ls -A "$HOME" ../svc`,
    );
    expect(out).not.toContain("canary");
    expect(out).not.toContain(SECRET);
    expect(out).not.toContain(join(home, "svc/data"));
    expect(out).toContain("API_TOKEN=placeholder-api");
  });

  it("reaches nothing but the governed proxy", async () => {
    verifies("beyond.run.network");
    const { bash, home } = place(
      "version: 1\nrules:\n  - {id: hosts, match: {tool: net.connect}, action: require_approval, reason: it leaves the machine}\n",
    );
    const { out } = await bash(`
      curl -sS -H "Authorization: Bearer $API_TOKEN" https://${HOST}/things
      echo; curl -sS --noproxy '*' https://${HOST}/things || echo direct-failed
      curl -sS -o /dev/null -w '%{http_code} ' https://1.1.1.1/ || echo asked`);
    expect(out).toContain('{"sent":"********"}');
    expect(out).toContain("direct-failed");
    expect(out).toContain("asked");
    expect(api.seen.at(-1)!.headers.authorization).toBe(`Bearer ${SECRET}`);
    const data = join(home, "svc/svc.config.yaml");
    const { out: records } = await svc(["export", "--config", data], { env: { HOME: home } });
    expect(records).toContain('"tool":"api.get"');
    const { out: asked } = await svc(["approvals", "list", "--json", "--config", data], {
      env: { HOME: home },
    });
    expect(JSON.parse(asked).approvals.map(({ tool }: { tool: string }) => tool)).toEqual(["net.connect"]);
  });

  it("gives a client a copy of its state, and copies back transcripts and renewed logins alone", async () => {
    verifies("beyond.run.client-state");
    const { run, home, file } = place();
    file(".claude/settings.json", '{"hooks":{}}');
    file(".claude/.credentials.json", '{"token":"old"}');
    file(".claude/projects/other/secret.jsonl", "canary");
    const client = file(
      "bin/claude",
      `#!/bin/sh
cat "$CLAUDE_CONFIG_DIR/settings.json"; ls "$CLAUDE_CONFIG_DIR/projects" 2>/dev/null
mkdir -p "$CLAUDE_CONFIG_DIR/projects/shop" "$CLAUDE_CONFIG_DIR/skills"
echo '{"line":1}' > "$CLAUDE_CONFIG_DIR/projects/shop/a.jsonl"; ln -s /etc/passwd "$CLAUDE_CONFIG_DIR/projects/shop/b.jsonl"
echo '{"hooks":"evil"}' > "$CLAUDE_CONFIG_DIR/settings.json"; echo evil > "$CLAUDE_CONFIG_DIR/skills/x.md"
echo '{"token":"new"}' > "$CLAUDE_CONFIG_DIR/.credentials.json"
`,
    );
    chmodSync(client, 0o755);
    const { code, out } = await run([client]);
    expect([code, out]).toEqual([0, '{"hooks":{}}']);
    const read = (path: string) => readFileSync(join(home, ".claude", path), "utf8");
    expect(read("settings.json")).toBe('{"hooks":{}}');
    expect(read(".credentials.json")).toBe('{"token":"new"}\n');
    expect(read("projects/shop/a.jsonl")).toBe('{"line":1}\n');
    expect(readdirSync(join(home, ".claude/projects/shop"))).toEqual(["a.jsonl"]);
    expect(existsSync(join(home, ".claude/skills"))).toBe(false);
  });
});

describe("ways out", () => {
  const CONFIG = join(tempDir("escape"), "svc.config.yaml");
  writeFileSync(CONFIG, `data: data\n${SMALL_LIMITS}`);
  const svcRun = [
    process.execPath,
    join(import.meta.dirname, "../../bin/svc.js"),
    "run",
    "--config",
    CONFIG,
    "--",
  ];

  it("are all tried from inside, and none gets out", async () => {
    verifies("beyond.run.escapes", "beyond.run.exhaustion");
    const { tried, outside, code, output } = await tryAllWays(() => svcRun);
    // Root needs a writable cgroup for a limit of processes. The output says if there is none.
    const open = output.includes("the number of processes is not limited") ? ["processes"] : [];
    expect(tried.filter(({ result }) => result === "ESCAPED").map(({ way }) => way)).toEqual(open);
    expect(outside).toEqual([]);
    expect([tried.length, code], output).toEqual([ESCAPE_WAYS.length, 0]);
    expect(ESCAPE_WAYS.length).toBeGreaterThanOrEqual(80);
    expect(existsSync(BWRAP)).toBe(true);
  });

  it("are noticed where nothing confines", async () => {
    verifies("beyond.run.escapes", "beyond.run.exhaustion");
    // Those that harm nothing but their own directory.
    const harmless = ESCAPE_WAYS.filter(({ way }) =>
      [
        "TCP to the machine's loopback",
        "a Unix socket in the workspace",
        "an abstract socket",
        "the own environment",
        "a file outside through a link",
        "credentials in the workspace",
        "a git hook",
        "a start-up file",
        "new privileges",
        "processes",
      ].includes(way),
    );
    const { tried, outside } = await tryAllWays(() => ["env"], {}, harmless);
    expect(tried.filter(({ result }) => result === "held")).toEqual([]);
    expect(tried).toHaveLength(10);
    expect(outside.length).toBeGreaterThan(3);
  });
});

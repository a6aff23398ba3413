/** Guides on coding agents and on people at tool servers: a client, its hook, and an authorization server. */
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { parse } from "yaml";
import { consent, linkIn, signedIn } from "../gateway/support/consent.ts";
import { type AnyResult, call, type GatewayTest, testGateway } from "../gateway/support/gateway.ts";
import { oauthUpstream } from "../gateway/support/oauth-upstream.ts";
import { authorizationServer } from "../support/authorization-server.ts";
import { ROOT } from "../support/files.ts";
import { type HookedPlace, hookedPlace } from "../support/hooked.ts";
import { freePort } from "../support/ports.ts";
import { program } from "../support/programs.ts";
import { tempDir } from "../support/tmp.ts";
import { verifies } from "../support/verifies.ts";
import { filesOf, fitsShown, runGuide, withValues } from "./guide-shell.ts";

await program("bubblewrap");
await program("openssl");

const page = (name: string) => `docs/guides/${name}.md`;

/** A program `claude` on the path of the guide's commands. */
function installClient(place: HookedPlace, script: string): void {
  mkdirSync(join(place.shop, "bin"));
  const file = join(place.shop, "bin/claude");
  writeFileSync(file, `#!/bin/sh\n${script}\n`);
  chmodSync(file, 0o755);
  writeFileSync(join(place.shop, "package.json"), '{"version": "2.1.327"}');
}

/** A transcript with one call that the hook saw, and one that it did not. */
async function sessionWithHiddenCall(place: HookedPlace): Promise<void> {
  const transcript_path = join(place.home, "session.jsonl");
  const used = (id: string, hour: number) => ({
    type: "assistant",
    timestamp: new Date(Date.UTC(2026, 0, 2, hour)).toISOString(),
    message: { content: [{ type: "tool_use", id, name: "Bash", input: { command: "ls" } }] },
  });
  const lines = (...values: object[]) => values.map((value) => `${JSON.stringify(value)}\n`).join("");
  writeFileSync(transcript_path, lines(used("t1", 9)));
  const event = { transcript_path, tool_use_id: "t1", tool_name: "Bash", tool_input: { command: "ls" } };
  expect((await place.ask(event)).code).toBe(0);
  expect((await place.ask({ ...event, hook_event_name: "PostToolUse", tool_response: {} })).code).toBe(0);
  writeFileSync(transcript_path, lines(used("t1", 9), used("toolu_9", 10)));
}

it("check-coding-agents runs as shown, after a session with a hidden call", async () => {
  verifies("beyond.docs.guides-run");
  const place = await hookedPlace("claude-code", "--hold", "0");
  installClient(place, "exit 0");
  const before = async (command: string) => {
    if (command.includes("reconcile")) await sessionWithHiddenCall(place);
    return {};
  };
  const values = { "/home/ann": place.home, "<session-id>": "s" };
  expect(await runGuide(page("check-coding-agents"), place.shop, { HOME: place.home }, values, before)).toBe(
    3,
  );
  expect(await place.server.stop()).toBe(0);
});

it("confine-agents runs as shown, with a client that tries to write outside", async () => {
  verifies("beyond.docs.guides-run");
  const place = await hookedPlace("claude-code", "--hold", "0");
  installClient(place, 'date >> made.txt; touch "$HOME/outside" ../outside');
  const own = join(place.home, "svc");
  mkdirSync(own);
  writeFileSync(
    join(own, "manifests.yaml"),
    "- {tool: net.connect, effect: irreversible, permission: net}\n",
  );
  writeFileSync(join(own, "policy.yaml"), "version: 1\n");
  writeFileSync(join(own, "svc.config.yaml"), "manifests: manifests.yaml\npolicy: policy.yaml\ndata: data\n");
  const values = {
    "<config-file>": join(own, "svc.config.yaml"),
    "<workspace>": place.shop,
    "<key-file>": join(place.folder, "claude-code.key"),
    "https://svc.example.com": place.server.url,
    // Without a cgroup that this user can write to, the limits are others.
    "1024 processes and 8192 MB, by cgroups": "…",
  };
  expect(await runGuide(page("confine-agents"), place.shop, { HOME: place.home }, values)).toBe(3);
  expect(readFileSync(join(place.shop, "made.txt"), "utf8").trim().split("\n")).toHaveLength(3);
  expect(existsSync(join(place.home, "outside"))).toBe(false);
  expect(await place.server.stop()).toBe(0);
});

const MANIFESTS =
  "- {tool: linear.whoami, effect: read, permission: linear}\n- {tool: linear.write, effect: idempotent, permission: linear}\n";

it("upstream-consent runs as shown, with a person who consents at a real issuer", async () => {
  verifies("beyond.docs.guides-run");
  const place = tempDir("guide");
  const issuer = await authorizationServer();
  const up = await oauthUpstream(issuer.url);
  const port = await freePort();
  const values = {
    "/etc/svc/token.key": join(place, "token.key"),
    "https://mcp.linear.app/mcp": up.url,
    "mcp.linear.app": new URL(issuer.url).host,
    "https://gateway.example.com": `http://127.0.0.1:${port}`,
    "read write": "tools.read",
  };
  const shown = withValues(readFileSync(join(ROOT, page("upstream-consent")), "utf8"), values);
  let g: GatewayTest | undefined;
  const before = async (command: string) => {
    if (!command.includes("upstreams list")) return {};
    const { upstreams, ...config } = parse(filesOf(shown)[0]!.text);
    g = await testGateway({
      upstreams,
      manifests: MANIFESTS,
      config: { ...config, listen: { host: "127.0.0.1", port } },
      keys: [{ name: "ann", role: "agent" }],
    });
    const client = await g.connect("ann");
    const answer: AnyResult = await call(client, "linear.whoami");
    const message = /```text\n([\s\S]*?)```/.exec(shown)![1]!.replaceAll("\n", " ").trim();
    expect(fitsShown(message.replace("...", "…"), answer.content[0].text)).toBe(true);
    await consent(await signedIn(g, "admin"), issuer, linkIn(answer)!);
    expect((await call(client, "linear.whoami")).isError).not.toBe(true);
    return { SVC_SERVER: g.url, SVC_TOKEN: "admin" };
  };
  expect(await runGuide(page("upstream-consent"), place, {}, values, before)).toBe(5);
  expect(await g!.events()).toContain("upstream_revoked");
});

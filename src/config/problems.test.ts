import { execFileSync } from "node:child_process";
import { symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import * as z from "zod";
import { load, problems } from "../../test/support/settings.ts";
import { tempDir } from "../../test/support/tmp.ts";
import { verifies } from "../../test/support/verifies.ts";
import { loadSettings } from "./load.ts";

describe("problems", () => {
  const cases: [string, string, RegExp][] = [
    [
      "an unknown key",
      "store: files\nmanifest: x\n",
      /^svc\.config\.yaml:2:1: manifest: unknown key; did you mean "manifests"/,
    ],
    [
      "a key outside of its section",
      "port: 80\n",
      /^svc\.config\.yaml:1:1: port: unknown key; did you mean "listen\.port"/,
    ],
    [
      "an unknown key in a section",
      "capture:\n  enable: true\n",
      /^svc\.config\.yaml:2:3: capture\.enable: unknown key; did you mean "enabled"/,
    ],
    ["retention", "retention: {}\n", /retention: unknown key; retention belongs in the policy file/],
    ["a malformed duration", "capture: {ttl: 7 days}", /capture\.ttl: is not a duration/],
    ["a quota that limits nothing", "quotas: [{match: {tenant: a}}]", /quotas\[0\]: limits nothing; set/],
    ["a quota's glob", 'quotas: [{match: {actor: "{"}, waiting: 1}]', /quotas\[0\]\.match\.actor: glob/],
    ["a burst alone", "quotas: [{burst: 2, waiting: 1}]", /quotas\[0\]: burst needs requests_per_second/],
    ["a number as duration", "capture: {ttl: 7}", /capture\.ttl: must be text/],
    ["an endless duration", "capture: {ttl: 99999999w}", /capture\.ttl: is not a duration/],
    ["no time at all", "anchor: {interval: 0s}", /anchor\.interval: is too short/],
    ["a port too high", "listen: {port: 70000}", /listen\.port: must be at most 65535/],
    ["a negative port", "listen: {port: -1}", /listen\.port: must be at least 0/],
    ["half a port", "listen: {port: 80.5}", /listen\.port: must be a whole number/],
    ["a host with a scheme", "listen: {host: 'http://x'}", /listen\.host: is not a host name/],
    [
      "a role map that is a list",
      "oidc: {issuer: 'https://i', audience: a, role_map: [admin]}",
      /oidc\.role_map: must be a mapping/,
    ],
    [
      "an unknown role",
      "oidc: {issuer: 'https://i', audience: a, role_map: {g: root}}",
      /oidc\.role_map\.g: must be one of agent, auditor/,
    ],
    [
      "an issuer without audience",
      "oidc: {issuer: 'https://i'}",
      /svc\.config\.yaml:1: oidc\.issuer: an issuer needs an audience/,
    ],
    ["a client id without issuer", "oidc: {client_id: web}", /oidc\.client_id: a client id needs an issuer/],
    [
      "a client secret without client id",
      "oidc: {issuer: 'https://i', audience: a, client_secret: s}",
      /oidc\.client_secret: a client secret needs a client id/,
    ],
    ["a NUL in a path", 'data: "a\\0b"', /data: must not hold a NUL/],
    [
      "an open console for everybody",
      "console: open\nlisten: {host: 0.0.0.0}",
      /svc\.config\.yaml:1: console\.mode: an open console has no login/,
    ],
    ["an open console on [::]", "console: open\nlisten: {host: '::'}", /an open console/],
    [
      "an open console as admin",
      "console: {mode: open, role: admin}",
      /console\.role: an open console never acts as admin/,
    ],
    ["an unknown console mode", "console: on", /console: must be one of off, open, login/],
    ["postgres without a database", "store: postgres", /store: the postgres store needs SVC_DATABASE_URL/],
    ["a section that is a list", "capture: []", /capture: must be a mapping with enabled, ttl, redact_pii/],
    ["a file that is a list", "- a", /must be a mapping of settings/],
    [
      "an upstream without a door",
      "upstreams: [{name: a}]",
      /upstreams\[0\]: needs a command to start or a url/,
    ],
    [
      "an upstream with two doors",
      "upstreams: [{name: a, command: x, url: 'http://x'}]",
      /upstreams\[0\]\.url: cannot be combined with command/,
    ],
    [
      "arguments for a url",
      "upstreams: [{name: a, url: 'http://x', args: [b]}]",
      /upstreams\[0\]\.args: requires an upstream with a command/,
    ],
    ["a reserved upstream", "upstreams: [{name: svc, command: x}]", /upstreams\[0\]\.name: must be letters/],
    [
      "an upstream twice",
      "upstreams: [{name: a, command: x}, {name: a, command: y}]",
      /upstreams\[1\]\.name: another upstream has this name/,
    ],
    [
      "a header with a line break",
      'upstreams: [{name: a, url: "http://x", headers: {x: "a\\nb"}}]',
      /headers\.x: must not hold a line break/,
    ],
    [
      "an unknown passthrough",
      "upstreams: [{name: a, command: x, passthrough: [tools]}]",
      /passthrough\[0\]: must be one of resources/,
    ],
    ["an unknown sink", "anchor: {sinks: [{type: ftp}]}", /anchor\.sinks\[0\]/],
    [
      "an egress URL",
      "egress: {allow: ['https://x.example.com/']}",
      /egress\.allow\[0\]: is not a host pattern/,
    ],
    ["a reserved actor", "actor: engine", /actor: is reserved for the service/],
    [
      "a password in an address",
      "console_url: https://a:b@c",
      /console_url: must not hold a user name or password/,
    ],
    [
      "two channels of one name",
      "notifications: {channels: [{name: a, type: x}, {name: a, type: y}]}",
      /channels\[1\]\.name: another channel/,
    ],
    ["a duplicate key", "store: files\nstore: files", /duplicate key/],
    ["a tag", "store: !!js/function x", /tags/],
  ];
  test.each(cases)("%s", (_name, yaml, wanted) => {
    verifies("contract.config.unknown-key", "beyond.quotas.config");
    expect(problems(yaml).join("\n")).toMatch(wanted);
  });

  test("all are reported at once, from all places", () => {
    const found = problems("store: mysql\nlisten: {port: 70000}\nnope: 1\n", {
      env: { SVC_CAPTURE: "maybe", SVC_LOG: "loud", SVC_CAPTURE_TTL_DAYS: "x", SVC_CHAT_USERS: "{" },
      flags: { role: "admin" },
    });
    expect(found).toHaveLength(8);
  });

  test("a secret is never part of one", () => {
    const found = problems(
      "chat: {signing_secret: 987654321}\ndatabase_url: mysql://u:pw987@h\nupstreams: [{name: a, url: 'https://h', headers: {authorization: 987654321}}]\n",
      {
        env: { SVC_APPROVAL_WEBHOOK: "pw987", SVC_OIDC_ROLE_MAP: "pw987" },
      },
    );
    expect(found.length).toBeGreaterThanOrEqual(4);
    expect(found.join("\n")).not.toMatch(/987/);
  });

  test("a config file that is not there, a folder, a pipe, a circle, or not text", () => {
    const cwd = tempDir("cfg");
    execFileSync("mkfifo", [join(cwd, "pipe")]);
    symlinkSync("loop", join(cwd, "loop"));
    writeFileSync(join(cwd, "latin1"), Buffer.from([0xff, 0xfe, 0x41]));
    const from = (config: string) => () => loadSettings({ env: {}, flags: { config }, cwd });
    expect(from("nope.yaml")).toThrow(/nope\.yaml: does not exist/);
    expect(from(".")).toThrow(/is a directory/);
    expect(from("pipe")).toThrow(/is a named pipe/);
    expect(from("/dev/zero")).toThrow(/is a device/);
    expect(from("loop")).toThrow(/leads to itself/);
    expect(from("latin1")).toThrow(/is not UTF-8/);
  });

  test("a file of comments is an empty config", () => {
    expect(load("# nothing yet\n\n  # still\n").settings.store).toBe("files");
    expect(load("").settings.store).toBe("files");
  });
});

describe("warnings and hooks", () => {
  test("half a chat setup, an issuer over plain http, no roles", () => {
    const { settings } = load("oidc: {issuer: 'http://id.example.com', audience: a}", {
      env: { SVC_CHAT_USERS: "{}" },
    });
    expect(settings.meta.warnings).toEqual([
      expect.stringMatching(/^SVC_CHAT_USERS: chat actions stay off/),
      expect.stringMatching(/^svc\.config\.yaml:1: oidc\.issuer: .*plain http/),
      expect.stringMatching(/no group has a role/),
    ]);
    expect(
      load("oidc: {issuer: 'http://localhost:1', audience: a, role_map: {g: admin}}").settings.meta.warnings,
    ).toEqual([]);
  });

  test("a feature may hold its key to its own schema", () => {
    const schemas = {
      "notifications.channels": z.array(
        z.strictObject({ name: z.string(), type: z.enum(["slack"]), url: z.string() }),
      ),
    };
    const yaml =
      "notifications:\n  channels:\n    - {name: a, type: slak, url: x}\n    - {name: b, type: slack}\n";
    expect(problems(yaml, { schemas })).toEqual([
      expect.stringMatching(/^svc\.config\.yaml:3:23: notifications\.channels\[0\]\.type: must be slack/),
      expect.stringMatching(/^svc\.config\.yaml:4:7: notifications\.channels\[1\]\.url: is missing/),
    ]);
  });
});

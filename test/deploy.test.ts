/** The deployment examples: they parse, name only settings and routes that exist, and their config loads. */
import { execFileSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { loadSettings } from "../src/config/load.ts";
import { allRows } from "../src/config/settings.ts";
import { filesUnder, ROOT } from "./support/files.ts";
import { speak } from "./support/io.ts";
import { tempDir } from "./support/tmp.ts";
import { verifies } from "./support/verifies.ts";

const read = (path: string) => readFileSync(join(ROOT, "deploy", path), "utf8");
const FOLDERS = ["systemd", "container", "compose", "kubernetes"];
const known = new Set([...allRows().flatMap(({ row }) => row.env ?? []), "SVC_CONFIG"]);

interface Resource {
  kind: string;
  metadata: { name: string };
  // biome-ignore lint/suspicious/noExplicitAny: a manifest is looked into freely
  spec?: any;
  data?: Record<string, string>;
}
const resources = () =>
  parseAllDocuments(read("kubernetes/svc.yaml")).map((document) => {
    expect(document.errors).toEqual([]);
    return document.toJS() as Resource;
  });

describe("every file of deploy/", () => {
  it("names only settings that exist", () => {
    const files = FOLDERS.flatMap((folder) => filesUnder(`deploy/${folder}`, ""))
      .map((path) => path.slice("deploy/".length))
      .filter((path) => /\.[a-z]|Dockerfile/.test(basename(path)));
    expect(files.length).toBeGreaterThan(8);
    const unknown = files.flatMap((path) =>
      [...read(path).matchAll(/\bSVC_[A-Z_]+/g)]
        .filter(([name]) => !known.has(name))
        .map(([name]) => `${path}: ${name}`),
    );
    expect(unknown).toEqual([]);
  });

  it("is in the README", () => {
    for (const folder of [...FOLDERS, "prometheus", "grafana"])
      expect(read("README.md")).toContain(`\`${folder}/\``);
  });
});

describe("the alert rules", () => {
  it("have the suggested ones: halted, failed undos, lingering approvals, not ready", () => {
    verifies("ops.metrics.suggested-alerts");
    const { groups } = parse(read("prometheus/alerts.yml")) as { groups: { rules: { expr: string }[] }[] };
    const expressions = groups.flatMap(({ rules }) => rules.map(({ expr }) => expr));
    for (const wanted of [
      /svc_halted\) == 1/,
      /(?:rate|increase)\(svc_ledger_events_total\{.*compensation_failed/,
      /svc_oldest_approval_age_seconds/,
      /probe_success\{job="svc-readyz"\} == 0/,
    ]) {
      expect(
        expressions.some((one) => wanted.test(one)),
        String(wanted),
      ).toBe(true);
    }
  });
});

describe("the systemd unit", () => {
  it.skipIf(!existsSync("/usr/bin/systemd-analyze"))("is one that systemd reads without a complaint", () => {
    // The program and the account need not exist here.
    const unit = read("systemd/svc.service").replace("/usr/bin/svc ", "/bin/true ");
    const path = join(tempDir("unit"), "svc.service");
    writeFileSync(path, unit);
    const out = execFileSync("sh", ["-c", `systemd-analyze verify '${path}' 2>&1 || true`], {
      encoding: "utf8",
    });
    expect(out.split("\n").filter((line) => line.includes("svc.service"))).toEqual([]);
  });

  it("stops the server in the way it is meant to be stopped", () => {
    const unit = read("systemd/svc.service");
    expect(unit).toMatch(/^ExecStart=\S+ server$/m);
    expect(unit).toMatch(/^KillSignal=SIGTERM$/m);
    expect(unit).toMatch(/^ExecReload=.*-HUP/m);
    for (const wall of ["NoNewPrivileges=yes", "ProtectSystem=strict", "CapabilityBoundingSet="]) {
      expect(unit.split("\n")).toContain(wall);
    }
  });
});

describe("the container file", () => {
  it("ends as somebody who is not root, with a health check", () => {
    const text = read("container/Dockerfile");
    expect(text.match(/^USER .*$/gm)).toEqual(["USER 10001:10001"]);
    expect(text).toContain("/healthz");
    expect(text).toMatch(/^CMD \["server"\]$/m);
    for (const [, image] of text.matchAll(/^FROM (\S+)/gm)) expect(image).toBe("node:20-slim");
  });

  it("copies only what is there and what the build context lets in", () => {
    const lets = read("container/Dockerfile.dockerignore")
      .split("\n")
      .flatMap((line) => (line.startsWith("!") ? [line.slice(1)] : []));
    const copied = [...read("container/Dockerfile").matchAll(/^COPY (?!--)(.*) \S+$/gm)].flatMap(([, from]) =>
      from!.split(" "),
    );
    expect(copied.length).toBeGreaterThan(5);
    for (const path of copied) {
      expect(lets).toContain(path);
      expect(existsSync(join(ROOT, path)), path).toBe(true);
    }
  });
});

describe("the compose file", () => {
  const compose = () => parse(read("compose/compose.yaml"), { merge: true });

  it("has two servers on one database behind one address", () => {
    const { services } = compose();
    expect(Object.keys(services)).toEqual(["server-1", "server-2", "proxy", "postgres"]);
    for (const name of ["server-1", "server-2"]) {
      expect(services[name].environment).toMatchObject({ SVC_STORE: "postgres" });
      expect(services[name].ports).toBeUndefined();
      expect(read("compose/nginx.conf")).toContain(`server ${name}:8787`);
    }
    expect(services.proxy.ports).toHaveLength(1);
    expect(services.postgres.networks).toEqual(["back"]);
  });

  it("mounts a configuration that loads, with a policy whose tests pass", async () => {
    const folder = tempDir("compose");
    cpSync(join(ROOT, "deploy/compose/config"), folder, { recursive: true });
    const { code, out } = await speak(["doctor"], { cwd: folder });
    expect(code).toBe(0);
    expect(out).toContain("ok    manifests    2 manifests");
    expect(out).toContain("its 2 tests pass");
  });

  it("has an nginx configuration whose braces close", () => {
    const text = read("compose/nginx.conf").replace(/#.*$/gm, "");
    expect(text.split("{").length).toBe(text.split("}").length);
    for (const line of text.split("\n").map((one) => one.trim())) {
      if (line !== "" && !/[{}]$/.test(line)) expect(line).toMatch(/;$/);
    }
  });
});

describe("the Kubernetes example", () => {
  const kind = (name: string) => resources().filter((one) => one.kind === name);

  it("has each kind, and selectors that meet", () => {
    expect(resources().map((one) => one.kind)).toEqual([
      "ConfigMap",
      "Secret",
      "Deployment",
      "Service",
      "PodDisruptionBudget",
    ]);
    const [deployment] = kind("Deployment");
    const { labels } = deployment!.spec.template.metadata;
    expect(deployment!.spec.selector.matchLabels).toEqual(labels);
    expect(kind("Service")[0]!.spec.selector).toEqual(labels);
    expect(kind("PodDisruptionBudget")[0]!.spec.selector.matchLabels).toEqual(labels);
  });

  it("probes the right routes and drops what it can", () => {
    const pod = kind("Deployment")[0]!.spec.template.spec;
    const [container] = pod.containers;
    expect(container.livenessProbe.httpGet.path).toBe("/healthz");
    expect(container.readinessProbe.httpGet.path).toBe("/readyz");
    expect(container.securityContext).toMatchObject({
      readOnlyRootFilesystem: true,
      allowPrivilegeEscalation: false,
    });
    expect(pod.securityContext.runAsNonRoot).toBe(true);
    const mounts = container.volumeMounts.map(({ name }: { name: string }) => name);
    expect(pod.volumes.map(({ name }: { name: string }) => name).sort()).toEqual(mounts.sort());
  });

  it("holds a configuration that loads", () => {
    const folder = tempDir("k8s");
    for (const [name, text] of Object.entries(kind("ConfigMap")[0]!.data!))
      writeFileSync(join(folder, name), text);
    const settings = loadSettings({
      env: { DATABASE_URL: "postgres://svc:x@db.example.com/svc" },
      cwd: folder,
    });
    expect(settings).toMatchObject({
      store: "postgres",
      listen: { host: "0.0.0.0", port: 8787 },
      environment: "prod",
    });
  });
});

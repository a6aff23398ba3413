/** The deployment examples: they parse, name only settings and routes that exist, and their config loads. */
import { execFileSync, spawnSync } from "node:child_process";
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { basename, join } from "node:path";
import { DCLinter } from "dclint";
import { validate } from "dockerfile-utils";
import { describe, expect, it } from "vitest";
import { parse, parseAllDocuments } from "yaml";
import { loadSettings } from "../src/config/load.ts";
import { settingRows } from "../src/config/settings.ts";
import { filesUnder, ROOT } from "./support/files.ts";
import { speak } from "./support/io.ts";
import { program } from "./support/programs.ts";
import { tempDir } from "./support/tmp.ts";
import { verifies } from "./support/verifies.ts";

const read = (path: string) => readFileSync(join(ROOT, "deploy", path), "utf8");
const FOLDERS = ["systemd", "container", "compose", "kubernetes", "helm"];
const known = new Set([...settingRows().flatMap(({ row }) => row.env ?? []), "SVC_CONFIG"]);

interface Resource {
  apiVersion: string;
  kind: string;
  metadata: { name: string };
  // biome-ignore lint/suspicious/noExplicitAny: a manifest is looked into freely
  spec?: any;
  data?: Record<string, string>;
}
const require = createRequire(import.meta.url);
/** The published schema of a resource's kind, as a class that validates. */
const model = ({ apiVersion, kind }: Resource) =>
  require(`kubernetes-models/${apiVersion}/${kind}`)[kind] as new (
    resource: Resource,
  ) => { validate(): void };

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
  it.skipIf(process.platform !== "linux")("is one that systemd reads without a complaint", async () => {
    const analyze = await program("systemd");
    // The program and the account need not exist here.
    const unit = read("systemd/svc.service").replace("/usr/bin/svc ", "/bin/true ");
    const path = join(tempDir("unit"), "svc.service");
    writeFileSync(path, unit);
    const out = execFileSync("sh", ["-c", `'${analyze}' verify '${path}' 2>&1 || true`], {
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
  it("is one that a linter finds nothing in", () => {
    expect(validate(read("container/Dockerfile")).map(({ message }) => message)).toEqual([]);
  });

  it("ends as an account that is not root, with a health check and production packages", () => {
    verifies("beyond.package.image");
    const text = read("container/Dockerfile");
    expect(text).toContain("npm ci --omit=dev");
    expect(text).toContain("COPY --from=dependencies /src/node_modules ./node_modules");
    expect(text.match(/^USER .*$/gm)).toEqual(["USER 10001:10001"]);
    expect(text).toContain("/healthz");
    expect(text).toMatch(/^CMD \["server"\]$/m);
    for (const [, image] of text.matchAll(/^FROM (\S+)/gm)) expect(image).toBe("node:24-slim");
  });

  it("copies only files that exist and that the build context contains", () => {
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

  it("is accepted by a linter that has the published schema", () => {
    verifies("beyond.package.compose");
    const linter = new DCLinter({
      rules: {},
      quiet: true,
      debug: false,
      exclude: [],
    });
    // Its declarations leave their file endings out, so that nothing is known of an answer's type.
    const results: { messages: { type: string }[] }[] = linter.lintFiles(
      [join(ROOT, "deploy/compose/compose.yaml")],
      false,
    );
    expect(results).toHaveLength(1);
    const problems = results.flatMap(({ messages }) => messages.filter(({ type }) => type === "error"));
    expect(problems).toEqual([]);
  });

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
      "NetworkPolicy",
      "Ingress",
    ]);
    const [deployment] = kind("Deployment");
    const { labels } = deployment!.spec.template.metadata;
    expect(deployment!.spec.selector.matchLabels).toEqual(labels);
    expect(kind("Service")[0]!.spec.selector).toEqual(labels);
    expect(kind("PodDisruptionBudget")[0]!.spec.selector.matchLabels).toEqual(labels);
    expect(kind("NetworkPolicy")[0]!.spec.podSelector.matchLabels).toEqual(labels);
  });

  it("is accepted by the schema of each kind", () => {
    verifies("beyond.package.kubernetes");
    for (const one of resources()) expect(() => new (model(one))(one).validate(), one.kind).not.toThrow();
    const broken = kind("Deployment")[0]!;
    broken.spec.replicas = "two";
    expect(() => new (model(broken))(broken).validate()).toThrow(/replicas/);
  });

  it("lets Prometheus scrape its targets, and the outside nothing of it", () => {
    verifies("beyond.package.scrape");
    const config = parse(kind("ConfigMap")[0]!.data!["svc.config.yaml"]!);
    const { annotations } = kind("Deployment")[0]!.spec.template.metadata;
    expect(annotations).toMatchObject({ "prometheus.io/scrape": "true", "prometheus.io/path": "/metrics" });
    expect(config.metrics_public).toBe(true);
    const paths = kind("Ingress")[0]!.spec.rules[0].http.paths.map(({ path }: { path: string }) => path);
    expect(paths).toEqual(["/v1", "/console", "/openapi.json"]);
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
    expect(pod).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
    expect(container.resources).toMatchObject({ requests: { memory: "256Mi" }, limits: { memory: "512Mi" } });
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

describe("the Helm chart", () => {
  const values = () => parse(read("helm/values.yaml"));
  const templates = () =>
    filesUnder("deploy/helm/templates", "").map((path) => readFileSync(join(ROOT, path), "utf8"));

  it("names only values that it declares, and its schema accepts them", () => {
    verifies("beyond.package.chart");
    const named = templates().flatMap((text) =>
      [...text.matchAll(/\.Values\.([A-Za-z.]+)/g)].map(([, path]) => path!),
    );
    expect(named.length).toBeGreaterThan(10);
    const missing = named.filter(
      (path) => path.split(".").reduce((one, key) => one?.[key], values()) === undefined,
    );
    expect(missing).toEqual([]);
    const Ajv = require("ajv").default as new () => { compile(schema: object): (value: unknown) => boolean };
    const accepts = new Ajv().compile(JSON.parse(read("helm/values.schema.json")));
    expect(accepts(values())).toBe(true);
    expect(accepts({ ...values(), replica: 3 })).toBe(false);
  });

  it("says what the Kubernetes example says, where it takes no values", () => {
    const lines = (text: string) =>
      text
        .split("\n")
        .map((line) => line.trim())
        .filter((line) => line !== "" && !line.startsWith("#") && !line.includes("{{"));
    const example = new Set(lines(read("kubernetes/svc.yaml")));
    for (const name of ["config", "deployment", "disruption", "service"])
      expect(lines(read(`helm/templates/${name}.yaml`)).filter((line) => !example.has(line))).toEqual([]);
    const pod = lines(read("helm/templates/deployment.yaml"));
    for (const wall of ["enableServiceLinks: false", "runAsNonRoot: true", "readOnlyRootFilesystem: true"])
      expect(pod).toContain(wall);
  });

  it("closes what it opens, and carries the package's version", () => {
    for (const text of templates()) {
      expect(text.match(/\{\{-? ?(?:if|with|range|define) /g)?.length ?? 0).toBe(
        text.match(/\{\{-? end \}\}/g)?.length ?? 0,
      );
    }
    const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
    expect(parse(read("helm/Chart.yaml"))).toMatchObject({ version, appVersion: version });
  });

  it("declares a configuration that loads", () => {
    const folder = tempDir("helm");
    const { config, manifests, policy } = values();
    writeFileSync(join(folder, "manifests.yaml"), manifests);
    writeFileSync(join(folder, "policy.yaml"), policy);
    const own = { manifests: "manifests.yaml", policy: "policy.yaml", metrics_public: true };
    writeFileSync(join(folder, "svc.config.yaml"), JSON.stringify({ ...own, ...config }));
    expect(loadSettings({ env: {}, cwd: folder })).toMatchObject({
      environment: "prod",
      secure_cookies: true,
    });
  });

  it("passes helm's own linter and the schema of each kind it renders, where there is a helm", () => {
    if (spawnSync("helm", ["version"]).status !== 0) return;
    const chart = join(ROOT, "deploy/helm");
    const all = [
      "--set",
      "ingress.enabled=true,signing=true,ingress.tlsSecret=certificate,image.pullSecrets[0].name=r,pod.priorityClassName=high",
    ];
    execFileSync("helm", ["lint", "--strict", chart, ...all], { encoding: "utf8" });
    const rendered = execFileSync("helm", ["template", "svc", chart, ...all], { encoding: "utf8" });
    const made = parseAllDocuments(rendered).map((document) => document.toJS() as Resource);
    expect(made.map(({ kind }) => kind)).toContain("Ingress");
    for (const one of made) expect(() => new (model(one))(one).validate(), one.kind).not.toThrow();
  });
});

describe("the cluster", () => {
  const script = join(ROOT, "deploy/ha/cluster.sh");
  const run = (...args: string[]) => spawnSync(script, args, { encoding: "utf8" });

  it("waits for a standby that has it on disk, and connects to a primary alone", () => {
    verifies("beyond.cluster.deploy");
    // A word between @ signs is a placeholder, and isn't YAML yet.
    const { bootstrap } = parse(read("ha/patroni.yml").replace(/@\w+@/g, "true"));
    const { dcs, initdb } = bootstrap;
    expect(dcs).toMatchObject({ synchronous_mode: true, synchronous_mode_strict: true });
    expect(dcs.postgresql.parameters).toMatchObject({ synchronous_commit: "on" });
    expect(dcs.postgresql.use_pg_rewind).toBe(true);
    expect(initdb).toContain("data-checksums");
    const haproxy = read("ha/haproxy.cfg");
    expect(haproxy).toMatch(/option httpchk OPTIONS \/primary\n/);
    expect(haproxy).toMatch(/on-marked-down shutdown-sessions/);
    // Never one that a server may have carried out.
    expect(haproxy).toMatch(/^ {2}retry-on conn-failure$/m);
  });

  it("fills in every word of its templates, and has settings that load", () => {
    verifies("beyond.cluster.deploy");
    const filled = new Set(read("ha/cluster.sh").match(/@[A-Z]+@/g));
    for (const file of ["ha/patroni.yml", "ha/haproxy.cfg"])
      for (const word of read(file).match(/@[A-Z]+@/g) ?? []) expect(filled).toContain(word);
    const cwd = join(ROOT, "deploy/ha/config");
    expect(loadSettings({ flags: {}, env: {}, cwd }).manifests).toBe(join(cwd, "manifests.yaml"));
  });

  it.each([
    ["patroni 3.0.2", "etcd"],
    ["patroni 3.0.3", "etcd3"],
    ["patroni.py 4.1.4", "etcd3"],
    ["patroni 10.0.0", "etcd3"],
  ])("keeps %s from taking the leader's key without a comparison: %s", (version, api) => {
    verifies("beyond.cluster.deploy");
    const env = { ...process.env, SVC_HA_PATRONI: `echo ${version}` };
    const command = '. "$0" help >/dev/null; etcd_api';
    expect(spawnSync("bash", ["-c", command, script], { encoding: "utf8", env }).stdout).toBe(`${api}\n`);
    expect(read("ha/patroni.yml")).toMatch(/^@API@:\n {2}hosts/m);
  });

  it("lists its commands, and names the problem of a wrong one", () => {
    verifies("beyond.cluster.deploy");
    expect(run("help")).toMatchObject({ status: 0, stdout: expect.stringContaining("cut <node>") });
    expect(run("explode").status).toBe(1);
    expect(run("kill").stderr).toMatch(/name a node: db1 db2 db3 app1 app2/);
    expect(run("kill", "db9").stderr).toMatch(/no node db9/);
  });
});

/**
 * What the examples' `run.mjs` share: a temporary folder, child processes that end with the story, and a
 * transcript in which every line after a `$` is a command that a person could type.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";

export const SVC = join(import.meta.dirname, "..", "bin", "svc.js");

/** Tells a story, then ends every process and removes the folder, however the story went. */
export async function story(tell) {
  const stage = new Stage();
  process.once("SIGINT", () => void stage.end().then(() => process.exit(130)));
  try {
    await tell(stage);
  } catch (error) {
    console.error(error);
    process.exitCode = 1;
  } finally {
    await stage.end();
  }
}

class Stage {
  folder = mkdtempSync(join(tmpdir(), "svc-example-"));
  /** What every process is given besides its own; SVC_DATA and the like save options on the command line. */
  env = { PATH: process.env.PATH, HOME: process.env.HOME };
  #children = [];
  /** Lines that processes print while a command runs; they are shown after its own. */
  #held = null;

  say(text = "") {
    console.log(text);
  }

  /** A process that runs until the story ends. `heard(pattern)` waits for a line it prints. */
  start(command, args, { env = {}, echo = false } = {}) {
    const child = spawn(command, args, { env: { ...this.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
    const lines = [];
    const tell = (line) => {
      lines.push(line);
      if (echo && this.#held) this.#held.push(line);
      else if (echo) console.log(line);
      child.emit("line");
    };
    createInterface(child.stdout).on("line", tell);
    createInterface(child.stderr).on("line", tell);
    this.#children.push(child);
    const ended = once(child, "close").then(([code]) => code);
    const heard = async (pattern) => {
      for (;;) {
        const match = lines.map((line) => pattern.exec(line)).find(Boolean);
        if (match) return match;
        const over = await Promise.race([once(child, "line").then(() => false), ended.then(() => true)]);
        if (over && !lines.some((line) => pattern.test(line)))
          throw new Error(`${command} ended before it printed ${pattern}:\n${lines.join("\n")}`);
      }
    };
    return { child, heard, ended };
  }

  /** A server of `svc` on a free port; answers its address. */
  async server(env = {}) {
    const server = this.start(process.execPath, [SVC, "server", "--port", "0"], { env });
    const [, url] = await server.heard(/listening on (http:\S+)/);
    return { ...server, url };
  }

  /** Runs one `svc` command and shows it, with its output, as a terminal would. */
  async svc(...args) {
    this.say(`$ svc ${args.map((word) => (/[\s"*]/.test(word) ? `'${word}'` : word)).join(" ")}`);
    this.#held = [];
    const { code, out } = await this.quietly(...args);
    this.say([out.trimEnd(), ...this.#held].join("\n"));
    this.#held = null;
    return { code, out };
  }

  async quietly(...args) {
    const child = spawn(process.execPath, [SVC, ...args], {
      env: this.env,
      stdio: ["ignore", "pipe", "pipe"],
    });
    let out = "";
    let err = "";
    child.stdout.setEncoding("utf8").on("data", (text) => (out += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (err += text));
    const [code] = await once(child, "close");
    if (code === 1) throw new Error(`svc ${args.join(" ")} failed: ${err}`);
    return { code, out };
  }

  /** A run's records, a line each: the ledger holds no argument values. */
  async trail(run) {
    this.say(`$ svc export --run ${run} | jq -r '[.seq, .event, .tool, .actor, .detail] | @tsv'`);
    const { out } = await this.quietly("export", "--run", run);
    for (const { seq, event, tool = "", actor = "", detail = "" } of out.trim().split("\n").map(JSON.parse)) {
      this.say(
        `${String(seq).padEnd(4)}${event.padEnd(14)}${tool.padEnd(22)}${actor.padEnd(12)}${detail}`.trimEnd(),
      );
    }
  }

  async verify() {
    this.say("$ svc verify");
    const { out } = await this.quietly("verify");
    this.say(out.split("\n")[0]);
  }

  /** A key of its own for somebody; SVC_KEYS names the file. */
  async key(name, role, ...permissions) {
    const scope = permissions.length > 0 ? ["--max-permissions", permissions.join(",")] : [];
    const { out } = await this.quietly("keys", "add", name, "--role", role, ...scope);
    return out.trim();
  }

  async end() {
    for (const child of this.#children.splice(0).reverse()) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill();
      await once(child, "exit");
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

/** JSON over HTTP, with a key; throws what the service says is wrong. */
export async function ask(url, { key, method = "GET", body } = {}) {
  const response = await fetch(url, {
    method,
    headers: {
      ...(key ? { authorization: `Bearer ${key}` } : {}),
      ...(body ? { "content-type": "application/json" } : {}),
    },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  const answer = await response.json();
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${answer.error}`);
  return answer;
}

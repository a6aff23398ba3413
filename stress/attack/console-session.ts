/** A person at the console: logged in with a key, sending forms that carry the session's own field. */
import { asBytes } from "./requests.ts";
import type { Target } from "./target.ts";
import type { Reply } from "./wire.ts";

export class ConsoleSession {
  private readonly target: Target;
  private readonly cookies = new Map<string, string>();
  private csrf = "";

  private constructor(target: Target) {
    this.target = target;
  }

  static async open(target: Target, key: string): Promise<ConsoleSession> {
    const session = new ConsoleSession(target);
    await session.look("/console/login");
    const reply = await session.post("/console/login", { credential: key });
    if (reply.status !== 303) throw new Error(`no login for ${key}: ${reply.status}`);
    await session.look("/console/approvals");
    return session;
  }

  async get(path: string): Promise<Reply> {
    return this.send("GET", path);
  }

  async post(path: string, fields: Readonly<Record<string, string>> | URLSearchParams): Promise<Reply> {
    const form = new URLSearchParams(fields as Record<string, string>);
    form.append("csrf", this.csrf);
    return this.send("POST", path, form.toString());
  }

  /** Takes the form field of this session from a page. */
  private async look(path: string): Promise<void> {
    const { body } = await this.get(path);
    this.csrf = /name="csrf" value="([0-9a-f]+)"/.exec(body)?.[1] ?? this.csrf;
  }

  private async send(method: string, path: string, body?: string): Promise<Reply> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    const headers = {
      host: new URL(this.target.url).host,
      ...(cookie === "" ? {} : { cookie }),
      ...(body === undefined
        ? {}
        : { "content-type": "application/x-www-form-urlencoded", origin: this.target.url }),
    };
    const reply = await this.target.send(
      asBytes({ method, path, headers, ...(body === undefined ? {} : { body }) }),
    );
    for (const [, name, value] of reply.headers.matchAll(/^set-cookie: ([^=]+)=([^;\r\n]*)/gim))
      this.cookies.set(name!, value!);
    return reply;
  }
}

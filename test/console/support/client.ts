/** A browser without a screen: keeps cookies, sends the requested forms, and returns the pages. */
import { type IncomingHttpHeaders, request } from "node:http";

export interface Seen {
  status: number;
  headers: IncomingHttpHeaders;
  text: string;
  /** Where a redirect leads. */
  to: string | undefined;
  set_cookies: string[];
}

type Headers = Record<string, string>;

export class Client {
  readonly url: string;
  readonly cookies = new Map<string, string>();

  constructor(url: string) {
    this.url = url;
  }

  get(path: string, headers: Headers = {}): Promise<Seen> {
    return this.send("GET", path, undefined, headers);
  }

  /** A form as the browser sends it, with nothing added. */
  post(path: string, fields: Record<string, string | string[]>, headers: Headers = {}): Promise<Seen> {
    const body = new URLSearchParams();
    for (const [name, value] of Object.entries(fields))
      for (const one of Array.isArray(value) ? value : [value]) body.append(name, one);
    return this.send("POST", path, body.toString(), {
      "content-type": "application/x-www-form-urlencoded",
      ...headers,
    });
  }

  /** The same with the CSRF field of this session. */
  async submit(path: string, fields: Record<string, string | string[]> = {}): Promise<Seen> {
    return this.post(path, { csrf: await this.csrf(), ...fields });
  }

  /** The field's value on a page of this session. */
  async csrf(page = "/console/approvals"): Promise<string> {
    const { text } = await this.get(page);
    return /name="csrf" value="([0-9a-f]+)"/.exec(text)?.[1] ?? "";
  }

  async logIn(key: string): Promise<Seen> {
    const csrf = await this.csrf("/console/login");
    return this.post("/console/login", { csrf, credential: key });
  }

  private send(method: string, path: string, body: string | undefined, headers: Headers): Promise<Seen> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
    return new Promise((resolve, reject) => {
      const sent = request(
        `${this.url}${path}`,
        {
          method,
          agent: false,
          headers: {
            ...(cookie === "" ? {} : { cookie }),
            ...(body === undefined ? {} : { "content-length": String(Buffer.byteLength(body)) }),
            ...headers,
          },
        },
        (response) => {
          let text = "";
          response.setEncoding("utf8");
          response.on("data", (part: string) => {
            text += part;
          });
          response.on("end", () => {
            const set_cookies = response.headers["set-cookie"] ?? [];
            this.keep(set_cookies);
            const { statusCode, headers } = response;
            resolve({ status: statusCode!, headers, text, to: headers.location, set_cookies });
          });
        },
      );
      sent.once("error", reject);
      sent.end(body);
    });
  }

  private keep(set_cookies: readonly string[]): void {
    for (const line of set_cookies) {
      const [pair] = line.split(";", 1);
      const at = pair!.indexOf("=");
      const name = pair!.slice(0, at);
      const value = pair!.slice(at + 1);
      if (value === "") this.cookies.delete(name);
      else this.cookies.set(name, value);
    }
  }
}

export async function loggedIn(url: string, key: string): Promise<Client> {
  const client = new Client(url);
  const { status } = await client.logIn(key);
  if (status !== 303) throw new Error(`${key} could not log in: ${status}`);
  return client;
}

/** A gateway with a console in front of a guarded upstream, and people who consent in their browsers. */

import { randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { Client as Browser } from "../../console/support/client.ts";
import type { AuthorizationServer } from "../../support/authorization-server.ts";
import { freePort } from "../../support/ports.ts";
import { tempDir } from "../../support/tmp.ts";
import { type GatewayTest, type GatewayTestOptions, testGateway } from "./gateway.ts";

export const GUARDED_MANIFESTS =
  "- {tool: whoami, effect: read, permission: guarded.read}\n- {tool: write, effect: idempotent, permission: guarded.write}\n";

export function tokenKey(): string {
  const file = join(tempDir("token-key"), "key");
  writeFileSync(file, randomBytes(32), { mode: 0o600 });
  return file;
}

export async function consentGateway(
  url: string,
  options: GatewayTestOptions & { auth?: Record<string, unknown> } = {},
): Promise<GatewayTest> {
  const port = await freePort();
  const { auth = {}, config = {}, ...rest } = options;
  return testGateway({
    upstreams: [{ name: "guarded", url, auth: { type: "oauth", ...auth } }],
    manifests: GUARDED_MANIFESTS,
    ...rest,
    config: {
      listen: { host: "127.0.0.1", port },
      console: "login",
      console_url: `http://127.0.0.1:${port}`,
      token_key: tokenKey(),
      ...config,
    },
  });
}

/** The link in a result, or nothing. */
// biome-ignore lint/suspicious/noExplicitAny: results are looked into freely
export const linkIn = (result: any): string | undefined => result._meta?.["svc/connect_url"];

export async function signedIn(g: GatewayTest, key: string): Promise<Browser> {
  const browser = new Browser(g.url);
  await browser.logIn(key);
  return browser;
}

/** Opens a link and presses the button. Returns the issuer's address. */
export async function pressConnect(browser: Browser, link: string): Promise<string> {
  const path = new URL(link).pathname;
  const csrf = await browser.csrf(path);
  const { status, text } = await browser.post(path, { csrf });
  const url = /<a href="([^"]+)">Continue to/.exec(text)?.[1];
  if (url === undefined) throw new Error(`no address of the issuer: ${status} ${text}`);
  return url.replaceAll("&amp;", "&");
}

/** Consents as a person would: opens the link, signs in at the issuer, and comes back. */
export async function consent(
  browser: Browser,
  issuer: Pick<AuthorizationServer, "signIn">,
  link: string,
  login = "ann",
): Promise<string> {
  const back = await issuer.signIn(await pressConnect(browser, link), login);
  const { status, text } = await browser.get(back.pathname + back.search);
  if (status !== 200) throw new Error(`not connected: ${status} ${text}`);
  return back.pathname + back.search;
}

/**
 * A person at a browser: programs open addresses with `$BROWSER` or `xdg-open`, and the person signs in at the issuer and
 * comes back to the program.
 */
import { chmodSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { delimiter, join } from "node:path";
import { afterAll } from "vitest";
import type { AuthorizationServer } from "../../support/authorization-server.ts";
import { tempDir } from "../../support/tmp.ts";
import { until } from "../../support/until.ts";

export interface PersonAtBrowser {
  /** Variables under which a program reaches the person. */
  env: Record<string, string>;
  /** Addresses that programs opened. */
  opened: string[];
  /** Pages that the person came back to, with their status. */
  seen: string[];
}

export async function personAtBrowser(issuer: AuthorizationServer, login: string): Promise<PersonAtBrowser> {
  const opened: string[] = [];
  const seen: string[] = [];
  const visit = async (url: string) => {
    opened.push(url);
    const back = await issuer.signIn(url, login);
    // A program may open the address before it listens for the answer.
    await until(async () => {
      const page = await fetch(back).catch(() => null);
      if (page !== null) seen.push(`${page.status} ${back.pathname}`);
      return page !== null;
    }, "the program that waits for the sign-in");
  };
  const server = createServer((request, response) => {
    response.end();
    const url = new URL(request.url!, "http://localhost").searchParams.get("url")!;
    visit(url).catch((error: unknown) => seen.push(`failed: ${error}`));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  afterAll(() => {
    server.closeAllConnections();
    server.close();
  });
  const folder = tempDir("browser");
  const { port } = server.address() as AddressInfo;
  const script = `#!/bin/sh\nfor url; do :; done\nexec curl -sG http://127.0.0.1:${port}/ --data-urlencode "url=$url"\n`;
  for (const name of ["xdg-open", "browser", "open", "sensible-browser", "www-browser", "x-www-browser"]) {
    writeFileSync(join(folder, name), script);
    chmodSync(join(folder, name), 0o755);
  }
  return {
    env: {
      BROWSER: join(folder, "browser"),

      PATH: `${folder}${delimiter}${process.env["PATH"]}`,
    },
    opened,
    seen,
  };
}

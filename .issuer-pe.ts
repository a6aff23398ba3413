import { localIssuer } from "./test/console/support/issuer.ts";
import { createServer } from "node:http";
import { writeFileSync } from "node:fs";
const i = await localIssuer({ now: () => Date.now() } as never);
writeFileSync("/tmp/pe/issuer", i.url);
const t = createServer(async (q, r) => { const c = Object.fromEntries(new URL(q.url!, "http://x").searchParams); const groups=(c.groups??"").split(","); r.end(await i.token({sub:c.sub, groups, exp: Math.floor(Date.now()/1000)+3000})); });
t.listen(24999,"127.0.0.1");
console.log(i.url);

import { startPostgres, freshDatabase } from "/work/wt/p-pg/test/support/postgres.ts";
import { writeFileSync } from "node:fs";
const s = await startPostgres();
const d = await freshDatabase(s);
writeFileSync("/tmp/pe/url", d.url);
console.log(d.url, process.pid);
setInterval(()=>{}, 1000);
process.on("SIGTERM", async ()=>{ await s.dispose(); process.exit(0); });

/** A Python agent through sdk/python, and the undo of its work: node examples/python-agent/run.mjs */
import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { story } from "../stage.mjs";

const PYTHON = process.env.PYTHON ?? "python3";
const here = (name) => join(import.meta.dirname, name);

await story(async (stage) => {
  Object.assign(stage.env, {
    SVC_MANIFESTS: here("manifests.yaml"),
    SVC_POLICY: here("policy.yaml"),
    SVC_DATA: join(stage.folder, "data"),
    SVC_KEYS: join(stage.folder, "keys.json"),
    SVC_STORE: "sqlite",
    SVC_COMMAND_ENV: "STOCK_DB,PYTHONDONTWRITEBYTECODE",
    SVC_COMPENSATOR_CMD: `${PYTHON} "${here("undo.py")}"`,
    SVC_READER_CMD: `${PYTHON} "${here("undo.py")}"`,
    STOCK_DB: join(stage.folder, "stock.db"),
    PYTHONPATH: join(import.meta.dirname, "..", "..", "sdk", "python"),
    PYTHONDONTWRITEBYTECODE: "1",
  });
  const key = await stage.key("shop-bot", "agent", "stock.*");
  const server = await stage.server();
  const agent = stage.start(PYTHON, [here("agent.py")], {
    env: { SVC_URL: server.url, SVC_KEY: key },
    echo: true,
  });
  const [, run] = await agent.heard(/run (run_\S+)/);
  await agent.heard(/stock\.set_price/);

  const approval = await pending(stage);
  await stage.svc("approvals", "approve", approval, "--as", "ann");
  await agent.ended;

  stage.say();
  await stage.svc("rollback", run);
  stage.say();
  const ledger = join(stage.folder, "ledger.jsonl");
  writeFileSync(ledger, (await stage.quietly("export")).out);
  stage.say("$ svc export > ledger.jsonl && python3 -m reversi_sdk verify ledger.jsonl");
  stage.say(
    execFileSync(PYTHON, ["-m", "reversi_sdk", "verify", ledger], {
      env: stage.env,
      encoding: "utf8",
    }).trimEnd(),
  );
  const look = "import stock; print(stock.read('tea'))";
  stage.say(`$ python3 -c "${look}"`);
  stage.say(
    execFileSync(PYTHON, ["-c", look], {
      cwd: import.meta.dirname,
      env: stage.env,
      encoding: "utf8",
    }).trimEnd(),
  );
});

/** The one request that waits; the agent may need a moment to ask. */
async function pending(stage) {
  for (;;) {
    const found = /apr_[0-9a-f-]{36}/.exec((await stage.quietly("approvals", "list")).out);
    if (found) return found[0];
  }
}

/**
 * The whole story, on free ports and in a temporary folder:
 *
 *   node examples/refund-agent/run.mjs [report.html or report.pdf]
 */
import { join } from "node:path";
import { ask, story } from "../stage.mjs";

const report = process.argv[2] ?? "refund-report.html";
const here = (name) => join(import.meta.dirname, name);
const UNDO = `"${process.execPath}" "${here("undo.mjs")}"`;

await story(async (stage) => {
  const payments = stage.start(process.execPath, [here("payments.mjs")]);
  const [, paymentsUrl] = await payments.heard(/payments on (\S+)/);
  Object.assign(stage.env, {
    SVC_MANIFESTS: here("manifests.yaml"),
    SVC_POLICY: here("policy.yaml"),
    SVC_DATA: join(stage.folder, "data"),
    SVC_KEYS: join(stage.folder, "keys.json"),
    // The undo command runs beside svc and sees only what is named here.
    SVC_COMMAND_ENV: "PAYMENTS_URL",
    SVC_COMPENSATOR_CMD: UNDO,
    SVC_READER_CMD: UNDO,
    PAYMENTS_URL: paymentsUrl,
  });

  const key = await stage.key("refund-bot", "agent", "payments.refund", "books.post");
  const server = await stage.server();
  const agent = stage.start(process.execPath, [here("agent.mjs")], {
    env: { SVC_URL: server.url, SVC_KEY: key },
    echo: true,
  });
  const [, run] = await agent.heard(/run (run_\S+)/);

  const [, approval] = await agent.heard(/request (apr_\S+)/);
  await stage.svc("approvals", "approve", approval, "--as", "ann", "--note", "saw the parcel");

  await agent.ended;
  stage.say();
  await stage.svc("plan", run);
  stage.say();
  await stage.svc("rollback", run);
  stage.say();
  stage.say("$ curl $PAYMENTS_URL/state");
  stage.say(JSON.stringify(await ask(`${paymentsUrl}/state`)));
  stage.say();
  await stage.svc("report", run, "--out", report);
  stage.say();
  await stage.trail(run);
  stage.say();
  await stage.verify();
});

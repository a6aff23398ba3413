/** Tries every attack of the table, one input at a time, and checks everything that must not have happened. */
import { ATTACKS, type Attack, CANARY } from "./attacks.ts";
import { replyProblem } from "./batches.ts";
import { COVERED } from "./covered.ts";
import { asBytes } from "./requests.ts";
import { type AreaRow, newRow, noteTime } from "./row.ts";
import { PERMISSIONS } from "./samples.ts";
import { type Kind, Target } from "./target.ts";

export async function runTable(): Promise<AreaRow> {
  const row = newRow("table");
  const began = performance.now();
  for (const kind of ["server", "gateway"] as const) await attack(kind, row);
  row.seconds = (performance.now() - began) / 1_000;
  console.error(
    `table: ${ATTACKS.length} rows sent to a real process, ${COVERED.length} tried by the test they name`,
  );
  return row;
}

async function attack(kind: Kind, row: AreaRow): Promise<void> {
  const target = await Target.start(kind);
  try {
    const body = JSON.stringify({
      run_id: "attacked",
      permissions: PERMISSIONS.filter((name) => name !== "user.delete"),
    });
    await target.send(asBytes({ key: "agent", method: "POST", path: "/v1/runs", body }));
    const own = JSON.stringify({ run_id: "own", permissions: PERMISSIONS });
    await target.send(asBytes({ key: "both", method: "POST", path: "/v1/runs", body: own }));
    await target.stall();
    for (const one of ATTACKS.filter(({ on }) => on === kind)) await tryOne(target, one, row);
    await lookForValues(target, row);
  } finally {
    const code = await target.stop();
    if (code !== 0) row.problems.push(`${kind}: it ended with code ${code}`);
  }
}

async function tryOne(
  target: Target,
  { name, send, status, message, changes }: Attack,
  row: AreaRow,
): Promise<void> {
  const began_ms = Date.now();
  const before = target.state(began_ms);
  for (const [i, bytes] of send.entries()) {
    const reply = await target.send(bytes);
    row.inputs++;
    const found = (problem: string) => row.problems.push(`${name}, input ${i}: ${problem}`);
    const problem = replyProblem(reply);
    if (problem !== undefined) found(problem);
    else if (!status.includes(reply.status) || !message.test(reply.body))
      found(`${reply.status} ${reply.body.slice(0, 300)}, not ${status.join(" or ")} ${message}`);
    if (reply.body.includes(CANARY)) found("the answer repeats a value");
  }
  const after = target.state(began_ms);
  if (changes !== true && after !== before)
    row.problems.push(`${name}: the state changed: ${before} -> ${after}`);
  noteTime(row, (await target.stall()).busy_ms, name);
}

/** The value from the arguments: not on the ledger, in printed text, or in the metrics. */
async function lookForValues(target: Target, row: AreaRow): Promise<void> {
  const metrics = await target.send(asBytes({ key: "auditor", method: "GET", path: "/metrics" }));
  const places = { ledger: target.ledger, log: target.printed, metrics: metrics.body };
  for (const [place, text] of Object.entries(places)) {
    if (text.includes(CANARY)) row.problems.push(`a value of an argument is in the ${place}`);
    if (/\n\s+at .*\.js:\d+/.test(text)) row.problems.push(`a stack trace is in the ${place}`);
  }
  if (metrics.status !== 200) row.problems.push(`no metrics: ${metrics.status}`);
}

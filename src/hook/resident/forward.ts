/**
 * The carrier in Node: hands an event to the resident process and starts that process if there is none. Used where the
 * small script found no process, and where the machine has no perl and no nc.
 */
import { existsSync, lstatSync } from "node:fs";
import { homedir } from "node:os";
import { type HookAnswer, refuseAnswer } from "../clients/clients.ts";
import { prepareFolder, residentFolder, SOCKET_NAME } from "./places.ts";
import { ANSWER_MS, CARRIER_PROTOCOL, decodeAnswer } from "./protocol.ts";

/** Time for starting the process, before the time for the answer begins. */
export const START_MS = 8_000;
const AGAIN_MS = 15;
const WATCH_MS = 250;

export async function forwardEvent(
  folder: string,
  client: string,
  input: string,
  program: string,
): Promise<HookAnswer> {
  prepareFolder(folder);
  // A relative socket path is short on every system, however long the directory's is.
  process.chdir(residentFolder(folder));
  const until = Date.now() + START_MS;
  for (let started = false; ; ) {
    const said = await ask(client, input);
    if (said !== null) return said;
    if (!started) startResident(folder, program);
    started = true;
    if (Date.now() > until)
      return refuseAnswer(
        `svc: the process that judges calls did not start, so the call is refused; try svc hook serve --dir ${folder}`,
      );
    await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
  }
}

/** Null if no process listens. Nothing was sent then. */
async function ask(client: string, input: string): Promise<HookAnswer | null> {
  const found = lstatSync(SOCKET_NAME, { throwIfNoEntry: false });
  if (found === undefined) return null;
  if (!found.isSocket() || found.uid !== process.getuid?.())
    return refuseAnswer(`svc: ${SOCKET_NAME} is not this user's socket, so the call is refused`);
  const { connect } = process.getBuiltinModule("node:net");
  return new Promise((resolve) => {
    let said = "";
    let connected = false;
    const socket = connect(SOCKET_NAME);
    const over = () => {
      resolve(refuseAnswer(`svc: no answer within ${ANSWER_MS / 1_000} s, so the call is refused`));
      socket.destroy();
    };
    let timer = setTimeout(over, ANSWER_MS);
    const parent = process.ppid;
    let watch: NodeJS.Timeout | undefined;
    socket.setEncoding("utf8");
    socket.on("connect", () => {
      connected = true;
      socket.write(`${CARRIER_PROTOCOL} call ${client}\n${input}\0`);
    });
    socket.on("data", (text: string) => {
      said += text;
      const held = /^hold (\d+)\n/.exec(said);
      said = said.replace(/^(?:hold \d+\n|wait\n)+/, "");
      if (held === null) return;
      clearTimeout(timer);
      timer = setTimeout(over, ANSWER_MS + Number(held[1]) * 1_000);
      // A client that is gone leaves this process to another parent, and its call must not use an approval.
      watch = setInterval(() => process.ppid === parent || socket.destroy(), WATCH_MS);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      clearInterval(watch);
      if (!connected) return resolve(null);
      resolve(
        decodeAnswer(said) ??
          refuseAnswer("svc: the process that judges calls gave no whole answer, so the call is refused"),
      );
    });
  });
}

/** Starts a detached process, which continues when the client ends. */
export function startResident(folder: string, program: string): void {
  const { spawn } = process.getBuiltinModule("node:child_process");
  if (!existsSync(program)) throw new Error(`${program} is missing; install svc again`);
  const kept = ["PATH", "NODE_EXTRA_CA_CERTS"].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value]];
  });
  spawn(process.execPath, [program, folder], {
    cwd: residentFolder(folder),
    env: { HOME: process.env["HOME"] || homedir(), ...Object.fromEntries(kept) },
    detached: true,
    stdio: "ignore",
  })
    .on("error", () => {})
    .unref();
}

/**
 * The clients that the tests drive: the one that installs smallest, or all of them in `npm run prove -- clients`, which
 * sets the variable.
 */
import { REAL_CLIENTS, type RealClient } from "./install.ts";

export const PROVES_ALL_CLIENTS = process.env["SVC_PROVE_CLIENTS"] === "all";

const named = process.env["SVC_PROVE_CLIENTS"]?.split(",") ?? [REAL_CLIENTS[0]];

export const CHOSEN_CLIENTS: readonly RealClient[] = PROVES_ALL_CLIENTS
  ? REAL_CLIENTS
  : REAL_CLIENTS.filter((one) => named.includes(one));

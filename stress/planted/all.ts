/** Every planted bug. */
import type { Bug } from "./bug.ts";
import { DECISIONS } from "./bugs/decisions.ts";
import { EVIDENCE } from "./bugs/evidence.ts";
import { GATEWAY } from "./bugs/gateway.ts";
import { HELD } from "./bugs/held.ts";
import { IDENTITY } from "./bugs/identity.ts";
import { INPUT } from "./bugs/input.ts";
import { PROVER } from "./bugs/prover.ts";
import { SETUP } from "./bugs/setup.ts";
import { STORAGE } from "./bugs/storage.ts";
import { TOLD } from "./bugs/told.ts";

export const BUGS: readonly Bug[] = [
  ...STORAGE,
  ...DECISIONS,
  ...IDENTITY,
  ...EVIDENCE,
  ...INPUT,
  ...PROVER,
  ...SETUP,
  ...TOLD,
  ...HELD,
  ...GATEWAY,
];

/** Every planted bug. */
import type { Bug } from "./bug.ts";
import { DECISIONS } from "./bugs/decisions.ts";
import { EVIDENCE } from "./bugs/evidence.ts";
import { GATEWAY } from "./bugs/gateway.ts";
import { IDENTITY } from "./bugs/identity.ts";
import { INPUT } from "./bugs/input.ts";
import { STORAGE } from "./bugs/storage.ts";

export const BUGS: readonly Bug[] = [
  ...STORAGE,
  ...DECISIONS,
  ...IDENTITY,
  ...EVIDENCE,
  ...INPUT,
  ...GATEWAY,
];

/** What doctor says: one finding a line, with how it stands and what to do about it. */
import type { Settings } from "../../config/settings.ts";
import type { Egress } from "../../egress/egress.ts";
import type { Env } from "../../kernel/env.ts";
import { messageOf, ProblemsError } from "../../kernel/errors.ts";

export const STANDINGS = ["ok", "warn", "fail"] as const;
export type FindingStatus = (typeof STANDINGS)[number];

export interface DoctorFinding {
  check: string;
  status: FindingStatus;
  message: string;
  /** What to do; null where there is nothing to do. */
  fix: string | null;
}

/** What every check is given; none opens anything that another one also opens. */
export interface World {
  settings: Settings;
  env: Env;
  egress: Egress;
  variables: Readonly<Record<string, string | undefined>>;
  cwd: string;
}

export type Check = (world: World) => Promise<DoctorFinding[]>;

const MOST_PROBLEMS = 20;
const MOST_NAMES = 5;

export const ok = (check: string, message: string): DoctorFinding => ({
  check,
  status: "ok",
  message,
  fix: null,
});
export const warn = (check: string, message: string, fix: string): DoctorFinding => ({
  check,
  status: "warn",
  message,
  fix,
});
export const fail = (check: string, message: string, fix: string): DoctorFinding => ({
  check,
  status: "fail",
  message,
  fix,
});

/** Everything that an error tells, a failure for each problem. */
export function failures(check: string, error: unknown, fix: string): DoctorFinding[] {
  const problems = error instanceof ProblemsError ? error.problems : [messageOf(error)];
  const told = problems.slice(0, MOST_PROBLEMS).map((problem) => fail(check, problem, fix));
  const left = problems.length - told.length;
  return left > 0 ? [...told, fail(check, `and ${left} more problems`, fix)] : told;
}

/** Names for a line of text: the first few, and how many there are. */
export function firstNames(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).join(", ");
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}

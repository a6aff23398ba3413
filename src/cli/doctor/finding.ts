/** Findings of `svc doctor`: a line per finding, with a status and a fix. */
import type { LoadedSettings } from "../../config/settings.ts";
import type { EgressClient } from "../../egress/egress.ts";
import type { RuntimeEnv } from "../../kernel/env.ts";
import { messageOf, ProblemsError } from "../../kernel/errors.ts";

export const FINDING_STATUSES = ["ok", "warn", "fail"] as const;
export type FindingStatus = (typeof FINDING_STATUSES)[number];

export interface DoctorFinding {
  check: string;
  status: FindingStatus;
  message: string;
  /** Suggested fix, or null if none is needed. */
  fix: string | null;
}

/** Inputs of every check. Each resource is opened by at most one check. */
export interface CheckContext {
  settings: LoadedSettings;
  env: RuntimeEnv;
  egress: EgressClient;
  variables: Readonly<Record<string, string | undefined>>;
  cwd: string;
}

export type DoctorCheck = (world: CheckContext) => Promise<DoctorFinding[]>;

const MAX_PROBLEMS = 20;
const MAX_NAMES = 5;

export const okFinding = (check: string, message: string): DoctorFinding => ({
  check,
  status: "ok",
  message,
  fix: null,
});
export const warnFinding = (check: string, message: string, fix: string): DoctorFinding => ({
  check,
  status: "warn",
  message,
  fix,
});
export const failFinding = (check: string, message: string, fix: string): DoctorFinding => ({
  check,
  status: "fail",
  message,
  fix,
});

/** Returns a failure for each problem in the error. */
export function failFindings(check: string, error: unknown, fix: string): DoctorFinding[] {
  const problems = error instanceof ProblemsError ? error.problems : [messageOf(error)];
  const findings = problems.slice(0, MAX_PROBLEMS).map((problem) => failFinding(check, problem, fix));
  const left = problems.length - findings.length;
  return left > 0 ? [...findings, failFinding(check, `and ${left} more problems`, fix)] : findings;
}

/** Joins the first few names and the number of the others. */
export function firstNames(names: readonly string[]): string {
  const shown = names.slice(0, MAX_NAMES).join(", ");
  return names.length > MAX_NAMES ? `${shown} and ${names.length - MAX_NAMES} more` : shown;
}

/** Incidents: working data about one agent in one tenant that a person has to look after. */

export const INCIDENT_STATUSES = ["open", "closed"] as const;
export type IncidentStatus = (typeof INCIDENT_STATUSES)[number];

/**
 * Everything that opens an incident or joins an open one. `once` causes have one name in the whole store, so that a
 * closed incident keeps them and no later sweep opens another one for the same fact.
 */
export const INCIDENT_CAUSES = {
  containment: { label: "The agent was contained", once: false },
  halt: { label: "The agent was halted", once: false },
  rollback: { label: "A rollback failed or met a conflict", once: false },
  outcome: { label: "An outcome is still unknown", once: true },
  ungoverned: { label: "Calls ran without a decision", once: true },
  probe: { label: "A guarantee does not hold", once: true },
} as const;

export type IncidentCauseKind = keyof typeof INCIDENT_CAUSES;
export const INCIDENT_CAUSE_KINDS = Object.keys(INCIDENT_CAUSES) as [
  IncidentCauseKind,
  ...IncidentCauseKind[],
];

/** The agent and the tenant that an incident is about. At most one incident of each pair is open. */
export interface IncidentSubject {
  actor: string;
  tenant: string | null;
}

/** A fact that opens an incident. `ref` identifies it: a halt, a containment, a run, a step or a probe. */
export interface IncidentCause {
  kind: IncidentCauseKind;
  ref: string;
  at_ms: number;
  text: string;
  run_id: string | null;
  step: number | null;
  /** The tenant whose people see the cause. A halt or containment of the whole service has none. */
  tenant: string | null;
}

export interface IncidentCauseDoc extends IncidentCause {
  incident_id: string;
}

export interface IncidentDoc extends IncidentSubject {
  id: string;
  status: IncidentStatus;
  opened_ms: number;
  closed_ms: number | null;
  /** The person who closed it. Null while it is open, and if it ended because no task was left. */
  closed_by: string | null;
  close_reason: string | null;
  assigned_to: string | null;
  /** The runs it names, oldest first. Retention removes deleted runs. */
  runs: string[];
  /** The number of causes and notes so far. The sweep ends an incident only if neither has changed. */
  causes: number;
  entries: number;
}

export const INCIDENT_ENTRY_KINDS = ["note", "assigned", "closed"] as const;

/** What a person did to the incident. Entries never change. */
export interface IncidentEntryDoc {
  incident_id: string;
  kind: (typeof INCIDENT_ENTRY_KINDS)[number];
  text: string;
  by: string;
  at_ms: number;
}

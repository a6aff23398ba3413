/**
 * The tables of the working data: the type of their documents, and the three indexed values. `owner` groups documents
 * (a run's steps), `sort` orders them, `tag` marks a searchable state. Stores handle all tables alike and never inspect
 * documents.
 */

import type { JsonValue } from "../../kernel/json/json.ts";
import type { ToolManifest } from "../../rules/manifest/types.ts";
import type { DrillDoc } from "../../rules/undo-proof.ts";
import {
  type ApprovalDoc,
  approvalTag,
  type StoredDelegation,
  type StoredHalt,
} from "../approvals/approval.ts";
import type { StoredValues } from "../cards/stored-values.ts";
import type { GrantDoc } from "../grants/grant.ts";
import { isUsedUp } from "../grants/grant.ts";
import type { IncidentCauseDoc, IncidentDoc, IncidentEntryDoc } from "../incidents/incident.ts";
import type { PlanDoc } from "../plans/plan.ts";
import type { PersonDevices } from "../push/device.ts";
import type { LegalHold } from "../runs/hold.ts";
import type { ChildRunDoc, PayloadDoc, RunDoc, RunToolDoc, StepDoc } from "../runs/run.ts";
import type { ChallengeDoc, PersonPasskeys } from "../signing/passkey.ts";
import type {
  TaintedStoreDoc,
  TenantMarkDoc,
  TenantTraceDoc,
  TraceDoc,
  TraceMarksDoc,
} from "../traces/trace.ts";
import type { UpstreamConsentDoc } from "../upstreams/consent-doc.ts";
import type {
  CaptureDoc,
  ContainmentDoc,
  CounterDoc,
  EarlierCallsDoc,
  GrantBucketEntry,
  GrantShapes,
  IdempotentReplyDoc,
  JobDoc,
  LeaseDoc,
  PinDoc,
  ResourceCallDoc,
  ResourceTouchDoc,
  UndoDeadlineDoc,
  ValueFeedDoc,
} from "./docs.ts";

export interface TableDocs {
  /** Small values of the store: its secret key, alert states, cursors of background work. */
  meta: JsonValue;
  runs: RunDoc;
  /** Child runs, by the root of their tree. */
  child_runs: ChildRunDoc;
  steps: StepDoc;
  payloads: PayloadDoc;
  run_tools: RunToolDoc;
  /** Manifests by content hash, so that a step keeps the manifest that it was accepted under. */
  manifests: ToolManifest;
  approvals: ApprovalDoc;
  /** Argument values of an approval request, kept while it is open, or approved and unused. */
  approval_values: StoredValues;
  /** The current approval request (open or approved) for a run, tool and arguments. */
  approval_slots: { id: string };
  /** One document, `active`, with all active halts. Every intent reads it. */
  halts: { active: StoredHalt[] };
  delegations: StoredDelegation;
  grants: GrantDoc;
  plans: PlanDoc;
  /** Index in which an intent finds the grants for its tool and actor. */
  grant_buckets: { grants: GrantBucketEntry[] };
  grant_shapes: GrantShapes;
  holds: LegalHold;
  counters: CounterDoc;
  /** Undos that expire, by deadline. */
  closings: UndoDeadlineDoc;
  /** Calls of a run on one resource, by ledger position. */
  touches: ResourceTouchDoc;
  /** Calls of all runs of a tenant on one resource, by ledger position. */
  resource_calls: ResourceCallDoc;
  /** Which calls were built on a call. */
  value_feeds: ValueFeedDoc;
  /** The step that a logical call already has. */
  idempotency: { run_id: string; step: number };
  /** Followed values of a run: the state, and their fingerprints in parts. */
  traces: TraceDoc;
  trace_marks: TraceMarksDoc;
  /** Values that are followed between the runs of a tenant: the state, and one document per value. */
  tenant_traces: TenantTraceDoc;
  tenant_marks: TenantMarkDoc;
  /** Stores with foreign values, by label. */
  tainted_stores: TaintedStoreDoc;
  /** Calls that a flow compares later calls with. */
  earlier_calls: EarlierCallsDoc;
  /** Stored responses by Idempotency-Key. */
  replies: IdempotentReplyDoc;
  leases: LeaseDoc;
  jobs: JobDoc;
  containments: ContainmentDoc;
  incidents: IncidentDoc;
  /** What opened an incident or joined it. */
  incident_causes: IncidentCauseDoc;
  /** Notes, assignments and closings of an incident. */
  incident_entries: IncidentEntryDoc;
  /** The last drill of each tool. */
  drills: DrillDoc;
  captures: CaptureDoc;
  /** Upstream tool definitions as first seen. */
  pins: PinDoc;
  /** Passkeys, one document per person. */
  passkeys: PersonPasskeys;
  /** Challenges that can be signed, by nonce. */
  challenges: ChallengeDoc;
  /** Consents at upstreams, one document per upstream and principal. Their tokens are encrypted. */
  upstream_consents: UpstreamConsentDoc;
  /** Browsers that get push messages, one document per person. */
  push_devices: PersonDevices;
}

export type TableName = keyof TableDocs;

/**
 * The document fields that hold a ledger position. A batch that runs before its position is known writes provisional
 * positions after all existing records, and shifts them when it is sealed. Units store positions in no other field.
 */
export const SEQ_FIELDS: { readonly [T in TableName]?: readonly (keyof TableDocs[T] & string)[] } = {
  steps: ["intended_seq", "succeeded_seq", "compensated_seq"],
  touches: ["succeeded_seq"],
  resource_calls: ["succeeded_seq"],
};

export interface IndexEntry {
  owner: string;
  sort: number;
  tag: string;
}

type Indexer<T> = (doc: T) => IndexEntry;
const plain = (): IndexEntry => ({ owner: "", sort: 0, tag: "" });

export const TABLE_INDEX: { [T in TableName]: Indexer<TableDocs[T]> } = {
  meta: plain,
  runs: (doc) => ({ owner: doc.principal, sort: doc.created_ms, tag: runTag(doc) }),
  child_runs: (doc) => ({ owner: doc.root, sort: doc.opened_ms, tag: doc.parent }),
  steps: (doc) => ({ owner: doc.run_id, sort: doc.step, tag: doc.status }),
  payloads: plain,
  run_tools: (doc) => ({ owner: doc.run_id, sort: 0, tag: doc.tool }),
  manifests: plain,
  approvals: (doc) => ({ owner: doc.run_id, sort: doc.requested_ms, tag: approvalTag(doc) }),
  approval_values: (doc) => ({ owner: doc.run_id, sort: 0, tag: "" }),
  approval_slots: plain,
  halts: plain,
  delegations: (doc) => ({
    owner: doc.to,
    sort: doc.created_ms,
    tag: doc.revoked_ms === null ? "active" : "ended",
  }),
  plans: (doc) => ({ owner: doc.run_id, sort: doc.requested_ms, tag: doc.status }),
  grants: (doc) => ({
    owner: doc.match.actor,
    sort: doc.created_ms,
    tag: doc.revoked_ms === null && !isUsedUp(doc) ? "active" : "ended",
  }),
  grant_buckets: plain,
  grant_shapes: plain,
  holds: (doc) => ({
    owner: "",
    sort: doc.created_ms,
    tag: doc.released_ms === null ? "active" : "released",
  }),
  counters: plain,
  closings: (doc) => ({ owner: doc.run_id, sort: doc.closes_ms, tag: "" }),
  touches: (doc) => ({ owner: touchOwner(doc.run_id, doc.thing), sort: doc.succeeded_seq, tag: "" }),
  resource_calls: (doc) => ({ owner: doc.thing, sort: doc.succeeded_seq, tag: "" }),
  value_feeds: (doc) => ({ owner: doc.run_id, sort: doc.step, tag: "" }),
  traces: (doc) => ({ owner: doc.run_id, sort: 0, tag: "" }),
  trace_marks: (doc) => ({ owner: doc.run_id, sort: 0, tag: "" }),
  tenant_traces: plain,
  tenant_marks: (doc) => ({ owner: doc.run_id, sort: 0, tag: "" }),
  tainted_stores: plain,
  earlier_calls: (doc) => ({ owner: doc.run_id, sort: 0, tag: "" }),
  idempotency: (doc) => ({ owner: doc.run_id, sort: doc.step, tag: "" }),
  replies: (doc) => ({ owner: doc.run_id, sort: doc.at_ms, tag: "" }),
  leases: plain,
  jobs: (doc) => ({ owner: doc.run_id, sort: doc.started_ms, tag: doc.state }),
  containments: (doc) => ({ owner: "", sort: doc.started_ms, tag: doc.state }),
  incidents: (doc) => ({ owner: doc.actor, sort: doc.opened_ms, tag: doc.status }),
  incident_causes: (doc) => ({ owner: doc.incident_id, sort: doc.at_ms, tag: "" }),
  incident_entries: (doc) => ({ owner: doc.incident_id, sort: doc.at_ms, tag: "" }),
  drills: (doc) => ({ owner: "", sort: doc.at_ms, tag: "" }),
  captures: (doc) => ({ owner: doc.run_id, sort: doc.captured_ms, tag: doc.tool }),
  pins: plain,
  passkeys: plain,
  challenges: (doc) => ({ owner: doc.owner, sort: doc.expires_ms, tag: "" }),
  upstream_consents: (doc) => ({ owner: doc.upstream, sort: doc.created_ms, tag: "" }),
  push_devices: plain,
};

/**
 * Tables whose documents can be listed and counted per tenant without reading those of other tenants. The tenant is in
 * the field `tenant`.
 */
const TENANT_TABLES = ["runs", "approvals", "captures", "incidents"] as const;
type TenantTable = (typeof TENANT_TABLES)[number];

export const hasTenants = (table: TableName): table is TenantTable =>
  (TENANT_TABLES as readonly TableName[]).includes(table);

/** Returns the tenant under which a document is indexed, or null if it has none or its table has no tenant index. */
export const tenantOfDoc = (table: TableName, doc: TableDocs[TableName]): string | null =>
  hasTenants(table) ? (doc as TableDocs[TenantTable]).tenant : null;

export const TABLE_NAMES = Object.keys(TABLE_INDEX) as TableName[];

/** Unambiguous, because run ids contain no slash. */
export const touchOwner = (run_id: string, thing: string): string => `${run_id}/${thing}`;

/** Returns `attention` for a run that needs attention now, `open` if a step has no outcome yet, else an empty tag. */
function runTag(doc: RunDoc): string {
  const { uncertain, compensation_failed, awaiting, undo_left } = doc;
  if (uncertain > 0 || compensation_failed > 0 || awaiting > 0 || undo_left !== undefined) return "attention";
  return doc.open > 0 ? "open" : "";
}

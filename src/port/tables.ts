/**
 * The working data, table by table: what a document is, and the three things it can be found by.
 * `owner` groups documents (a run's steps), `sort` orders them, `tag` marks a state one searches for.
 * Every store keeps all tables the same way; none knows what is in a document.
 */
import type { Json } from "../kernel/json.ts";
import { type ApprovalDoc, approvalTag, type Delegation, type Halt } from "../model/approval.ts";
import type { ApprovalValues } from "../model/card/types.ts";
import type { GrantDoc } from "../model/grant.ts";
import type { Hold } from "../model/hold.ts";
import type { Manifest } from "../model/manifest/types.ts";
import type { PlanDoc } from "../model/plan.ts";
import type { DrillDoc } from "../model/proof.ts";
import type { PayloadDoc, RunDoc, RunToolDoc, StepDoc } from "../model/run.ts";
import type {
  CaptureDoc,
  ClosingDoc,
  ContainmentDoc,
  CounterDoc,
  GrantBucketEntry,
  GrantShapes,
  JobDoc,
  LeaseDoc,
  PinDoc,
  ReplyDoc,
  TouchDoc,
} from "./docs.ts";

export interface Tables {
  /** Small facts of the store itself: its secret key, alert states, cursors of background work. */
  meta: Json;
  runs: RunDoc;
  steps: StepDoc;
  payloads: PayloadDoc;
  run_tools: RunToolDoc;
  /** Manifests by content, so that a step keeps the one it was accepted under. */
  manifests: Manifest;
  approvals: ApprovalDoc;
  /** The values of a request's call, as long as it is open or approved and unused. */
  approval_values: ApprovalValues;
  /** The request that speaks for (run, tool, arguments) now: open or approved. */
  approval_slots: { id: string };
  /** One document, `active`: every halt in force, read by each intent. */
  halts: { active: Halt[] };
  delegations: Delegation;
  grants: GrantDoc;
  plans: PlanDoc;
  /** Where an intent finds the grants that name its tool and actor. */
  grant_buckets: { grants: GrantBucketEntry[] };
  grant_shapes: GrantShapes;
  holds: Hold;
  counters: CounterDoc;
  /** Undos that close, by when. */
  closings: ClosingDoc;
  /** Calls of a run on one thing, by where they ended. */
  touches: TouchDoc;
  /** Which step stands for a logical call. */
  idempotency: { run_id: string; step: number };
  /** Answers already given under an Idempotency-Key. */
  replies: ReplyDoc;
  leases: LeaseDoc;
  jobs: JobDoc;
  containments: ContainmentDoc;
  /** The last drill of each tool. */
  drills: DrillDoc;
  captures: CaptureDoc;
  /** Tool definitions of upstreams as first seen. */
  pins: PinDoc;
}

export type TableName = keyof Tables;

/**
 * The fields that hold a record's place in the chain. A batch that is decided before its place is known writes them as
 * if it stood behind everything, and moves them when it is sealed; a unit keeps places nowhere else.
 */
export const PLACES: { readonly [T in TableName]?: readonly (keyof Tables[T] & string)[] } = {
  steps: ["intended_seq", "succeeded_seq", "compensated_seq"],
  touches: ["succeeded_seq"],
};

export interface IndexEntry {
  owner: string;
  sort: number;
  tag: string;
}

type Indexer<T> = (doc: T) => IndexEntry;
const plain = (): IndexEntry => ({ owner: "", sort: 0, tag: "" });

export const INDEX: { [T in TableName]: Indexer<Tables[T]> } = {
  meta: plain,
  runs: (doc) => ({ owner: doc.principal, sort: doc.created_ms, tag: runTag(doc) }),
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
    tag: doc.revoked_ms === null && doc.uses < doc.max_uses ? "active" : "ended",
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
  idempotency: (doc) => ({ owner: doc.run_id, sort: doc.step, tag: "" }),
  replies: (doc) => ({ owner: doc.run_id, sort: doc.at_ms, tag: "" }),
  leases: plain,
  jobs: (doc) => ({ owner: doc.run_id, sort: doc.started_ms, tag: doc.state }),
  containments: (doc) => ({ owner: "", sort: doc.started_ms, tag: doc.state }),
  drills: (doc) => ({ owner: "", sort: doc.at_ms, tag: "" }),
  captures: (doc) => ({ owner: doc.run_id, sort: doc.captured_ms, tag: doc.tool }),
  pins: plain,
};

/** Of these, a tenant's documents are listed and counted without a look at those of others; `tenant` says whose one is. */
const TENANT_TABLES = ["runs", "approvals", "captures"] as const;
type TenantTable = (typeof TENANT_TABLES)[number];

export const hasTenants = (table: TableName): table is TenantTable =>
  (TENANT_TABLES as readonly TableName[]).includes(table);

/** The tenant by which a document is found; null where it has none, or is of a table that is not looked through so. */
export const tenantOfDoc = (table: TableName, doc: Tables[TableName]): string | null =>
  hasTenants(table) ? (doc as Tables[TenantTable]).tenant : null;

export const TABLE_NAMES = Object.keys(INDEX) as TableName[];

/** No id of a run holds a slash. */
export const touchOwner = (run_id: string, thing: string): string => `${run_id}/${thing}`;

/** `attention` at once, `open` when a step may grow old, else nothing. */
function runTag(doc: RunDoc): string {
  const { uncertain, compensation_failed, awaiting, undo_left } = doc;
  if (uncertain > 0 || compensation_failed > 0 || awaiting > 0 || undo_left !== undefined) return "attention";
  return doc.open > 0 ? "open" : "";
}

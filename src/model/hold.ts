/** Legal holds: while one covers a run, retention leaves that run alone. */
export interface HoldScope {
  run_id: string | null;
  tenant: string | null;
  actor: string | null;
  tool: string | null;
}

export interface Hold {
  id: string;
  scope: HoldScope;
  reason: string;
  by: string;
  created_ms: number;
  released_ms: number | null;
  released_by: string | null;
}

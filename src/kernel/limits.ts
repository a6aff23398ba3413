/** All numbers of the interface, and the bounds on input. */
export const SERVICE_LIMITS = {
  body_bytes: 1_048_576,
  /**
   * The number of bytes of a rejected body that the server reads and discards, so that the sender can read the
   * response.
   */
  discard_bytes: 33_554_432,
  discard_ms: 5_000,
  /** The largest response that a client reads: for lists and single objects, and for documents such as exports. */
  answer_bytes: 67_108_864,
  document_bytes: 1_073_741_824,
  json_depth: 64,
  /** Messages of one stream that are answered at the same time, and the length of their ids. */
  stream_in_flight: 256,
  stream_id_chars: 128,
  /** Unsent bytes after which a stream is not read from, and how often its other end is asked for. */
  stream_buffer_bytes: 1_048_576,
  stream_ping_ms: 30_000,
  run_id_chars: 128,
  tool_chars: 256,
  reason_chars: 4_000,
  note_chars: 4_000,
  error_chars: 4_000,
  /** The length of an error that is searched for argument values, before the error is cut for storage. */
  error_read_chars: 8_000,
  /** The number of argument names that an approval request lists, and the length of each. */
  arg_names: 200,
  arg_name_chars: 256,
  permissions: 1_000,
  permission_chars: 256,
  depends_on: 1_000,
  /** Texts of people that one request gives to a run, and the characters of all texts of a run. */
  given_texts: 1_000,
  /** Of the secret that proves a confined command. */
  sandbox_secret_chars: 128,
  given_chars: 1_048_576,
  open_approvals_per_run: 100,
  /** Steps of other runs that one rollback covers. */
  cascade_steps: 1_000,
  /** Levels of a tree of runs, the root included, and child runs that one run can open. */
  run_levels: 5,
  child_runs: 100,
  approval_ttl_ms: 24 * 3_600_000,
  delegation_days: 30,
  plan_calls: 100,
  plans_under_way: 20,
  grant_days: 30,
  grant_uses: 1_000,
  /** Active grants whose globs have the same prefix. A call checks no more than these. */
  grants_alike: 200,
  /** Tool and actor pairs that the braces of one grant can expand to. */
  grant_alternatives: 100,
  grant_conditions: 20,
  /** Approval requests in one table, which one confirmation decides, and the length of their arguments. */
  group_rows: 100,
  group_chars: 1_000_000,
  grant_args: 100,
  grant_arg_chars: 256,
  break_glass_reason_chars: 10,
  hold_reason_chars: 5,
  approval_wait_s: 60,
  /** The client's own id of a call, and the calls of one comparison. */
  call_ref_chars: 128,
  reconciled_calls: 10_000,
  /** Coding agents that a tenant's machines report. */
  reported_agents: 1_000,
  /** Passkeys of one person, the wrong codes after which a new one ends, and the time to confirm it. */
  passkeys: 10,
  passkey_tries: 5,
  passkey_confirm_ms: 24 * 3_600_000,
  /** Devices of one person that get push messages, and what each shows at most. */
  push_devices: 10,
  push_shown: 100,
  /** How long a browser's push service keeps a message for a device that is off. */
  push_keep_s: 86_400,
  /** How long a challenge can be signed, and how many of one person are open. */
  challenge_ms: 5 * 60_000,
  challenges: 200,
  /** How long a link to connect an upstream works, and the sign-in that it starts. */
  connect_link_ms: 10 * 60_000,
  rollback_retries: { min: 1, max: 10, default: 3 },
  compensation_timeout_ms: 60_000,
  read_timeout_ms: 30_000,
  child_output_bytes: 1_048_576,
  lease_ms: 30_000,
  lease_heartbeat_ms: 5_000,
  key_reload_ms: 2_000,
  /** A request whose body took longer than this to arrive is authenticated again before it runs. */
  look_again_ms: 1_000,
  page_default: 50,
  page_max: 500,
  store_deadline_ms: 5_000,
  /**
   * The time for a shutdown, and its shares: for requests in progress (longer than a store timeout), and for pending
   * notifications.
   */
  stop_ms: 9_000,
  drain_ms: 5_500,
  tell_ms: 2_500,
  header_timeout_ms: 10_000,
  /** Requests that a connection can pipeline. The server closes a connection with more after it has answered these. */
  pipelined_requests: 100,
  /**
   * Connections that the operating system queues for the server. Thousands of agents reconnect at once after a restart.
   */
  connection_backlog: 4_096,
  capture_ttl_ms: 7 * 86_400_000,
  capture_string_chars: 20_000,
  capture_entries: 200,
  capture_depth: 12,
  alert_window_ms: 15 * 60_000,
  alert_poll_ms: 10_000,
  alert_remind_ms: 3_600_000,
  denial_spike: 10,
  undo_closing_ms: 86_400_000,
  auth_failures: 20,
  unresolved_after_ms: 3_600_000,
  /** The runs that an incident names, and the notes and other entries of people that it holds. */
  incident_runs: 500,
  incident_entries: 1_000,
  incident_timeline: 1_000,
  /** A run without activity for this long no longer counts as open for that reason alone. */
  run_quiet_ms: 30 * 60_000,
  egress_redirects: 3,
  egress_timeout_ms: 10_000,
  exchange_idle_ms: 60_000,
  exchange_total_ms: 3_600_000,
  run_processes: 1_024,
  run_memory_mb: 8_192,
  run_open_files: 65_536,
  anchor_interval_ms: 3_600_000,
  trace_batch: 50,
  trace_interval_ms: 5_000,
  idempotency_key_chars: 256,
  idempotency_keep_ms: 24 * 3_600_000,
  rollback_backoff_ms: 250,
  upstream_timeout_ms: 60_000,
  upstream_connections: 64,
  upstream_idle_ms: 30 * 60_000,
} as const;

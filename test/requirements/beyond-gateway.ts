/** Statements beyond the interface documents: the gateway with the clients and servers that people use. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondGatewayNames = section("beyond", "Gateway: names", {
  "beyond.names.spelling": [19, "a namespace's dot becomes `__`, every other character outside letters, digits, `_` and `-` becomes `_`"],
  "beyond.names.long": [19, "a name over 64 characters becomes its first 55, `_` and 8 hex digits of the SHA-256 of its dotted name"],
  "beyond.names.clash": [19, "made names that clash get those digits; a real name wins over a made one"],
  "beyond.names.unique": [19, "listed names are of the allowed characters, at most 64 long and unique"],
  "beyond.names.default-dots": [19, "without `tool_names` tools are listed under their dotted names"],
  "beyond.names.listed": [19, "`tool_names: underscores` lists `svc_plan_rollback` and `files__write_file`, on the operator endpoint too"],
  "beyond.names.both-spellings": [19, "both spellings are accepted in a call, whatever is listed"],
  "beyond.names.records-dotted": [19, "records and approvals keep the dotted name"],
  "beyond.names.svc-refused": [19, "a tool of an upstream whose name begins with `svc_` is refused like one with `svc.`"],
  "beyond.names.own-tools": [19, "`own_tools` says which of our tools are listed on `/mcp`: all, none or those named"],
  "beyond.names.init": [19, "`svc init` writes `tool_names: underscores` and `ask_reason: true`"],
  "beyond.names.connect": [19, "a client that `svc connect` points at a gateway gets those names and the question for reasons"],
  "beyond.names.doctor": [19, "`svc doctor` warns of a gateway without `tool_names: underscores`"],
  "beyond.gateway.older-sse": [19, "a tool server of the transport before Streamable HTTP is refused with a sentence that says what to do"],
  "beyond.gateway.doctor-starts": [19, "`svc doctor` starts the upstreams, lists their tools and stops them"],
});

// biome-ignore format: one statement a line
export const beyondGatewayCalls = section("beyond", "Gateway: reasons, refusals, runs", {
  "beyond.reason.listed": [19, "`ask_reason: true` adds an optional `svc_reason` to each tool's input schema"],
  "beyond.reason.recorded": [19, "`svc_reason` becomes the intent's reason"],
  "beyond.reason.taken-out": [19, "`svc_reason` is neither forwarded, nor hashed, nor named as an argument"],
  "beyond.reason.off": [19, "without `ask_reason` nothing is added to a schema and nothing is taken out of a call"],
  "beyond.refusal.text-alone": [19, "a blocked call of a tool with an output schema is text alone by default"],
  "beyond.refusal.meta": [19, "a blocked call has `_meta[\"svc/decision\"]` and `_meta[\"svc/approval_id\"]` always"],
  "beyond.await.cut": [19, "`svc.await_approval` cuts larger `seconds` to 45"],
  "beyond.await.progress": [19, "`svc.await_approval` tells progress to a client that asks for it"],
  "beyond.stdio.at-once": [19, "a `tools/call` in the same write as `initialize` gets its answer, also where standard input ends with it"],
  "beyond.runs.principal": [19, "a client without sessions has one run over its calls"],
  "beyond.runs.idle": [19, "after `runs.idle` without a call a principal's next call begins a new run"],
  "beyond.runs.by-principal": [19, "`runs.by: principal` makes all sessions of a principal one run"],
  "beyond.runs.by-call": [19, "`runs.by: call` gives each call a run of its own"],
  "beyond.runs.restart": [19, "a gateway that is started anew, or another one of the store, goes on with the principal's run"],
  "beyond.runs.scope": [19, "a principal's run is not continued under another mode or scope"],
  "beyond.runs.same-call": [19, "the same call by the same principal, while its request is open or approved, continues in that request's run"],
});

// biome-ignore format: one statement a line
export const beyondGatewayUpstreams = section("beyond", "Gateway: upstreams", {
  "beyond.isolation.principal": [19, "by default one principal never sees another's state in an upstream, in calls and in what passes through"],
  "beyond.isolation.shared": [19, "`isolation: shared` has all principals share a connection"],
  "beyond.isolation.session": [19, "`isolation: session` gives each session a connection of its own, which ends with it"],
  "beyond.isolation.undo": [19, "undos and read-backs use the connection of the run's principal"],
  "beyond.isolation.reads": [19, "reads before and after, and undos, use the connection that the call went over while it is there; what is neither as before nor as after elsewhere is left alone"],
  "beyond.isolation.idle": [19, "a connection that is not used for `idle` ends"],
  "beyond.isolation.bound": [19, "past `max_connections` a call is refused, never shared"],
  "beyond.isolation.renewed": [19, "a connection that is lost is renewed"],
  "beyond.listing.capabilities": [19, "tools that an upstream lists to a client with sampling alone are listed to such a client through us, where its passthrough allows"],
  "beyond.listing.instructions": [19, "an upstream's instructions are passed on, with ours after them"],
  "beyond.listing.joined": [19, "joined lists leave out upstreams that lack the method"],
  "beyond.listing.hanging": [19, "a hanging upstream holds up neither `initialize` nor the tools of the others"],
  "beyond.listing.task": [19, "a tool that demands a task is not listed to a client without tasks"],
  "beyond.listing.task-made": [19, "a tool that demands a task is made as one at its upstream, and its result is the call's; one that is lost there is uncertain"],
  "beyond.upstreams.undo-waits": [19, "a call, and an undo through it, wait for a tool server that is just being started"],
  "beyond.upstreams.deaf": [19, "an upstream of 2026-07-28 that never answers `subscriptions/listen` is connected all the same"],
  "beyond.upstreams.not-sent": [19, "a call to an upstream that refuses the connection is failed and not uncertain: nothing was sent"],
  "beyond.servers.matrix": [19, "public tool servers, as published, are listed, called, refused, waited for, approved, denied with an offer and undone through the gateway"],
  "beyond.clients.matrix": [19, "the clients that people use, as published, list, call, are refused, wait, and read an approval, a denial with an offer and an undo"],
  "beyond.sessions.idle-first": [19, "where a key has all sessions it may, the one that was idle the longest makes room"],
});

// biome-ignore format: one statement a line
export const beyondGatewayWaiting = section("beyond", "Gateway: waiting", {
  "beyond.wait.input-required": [19, "a client of 2026-07-28 that takes addresses is answered `input_required` with a URL elicitation and a `requestState`, and its repeated call is made once approved"],
  "beyond.wait.elicitation": [19, "a client of 2025-11-25 that takes addresses is asked `elicitation/create` in URL mode while its call is held"],
  "beyond.wait.task": [19, "a client of 2026-07-28 that declares the tasks extension gets a task for a call that waits, whose result is the call's once it is decided"],
  "beyond.wait.task-older": [19, "a client of 2025-11-25 that sends `task` with its call gets a task, whose `tasks/result` is the call's once it is decided, or the refusal; without `task` it is answered as before"],
  "beyond.wait.task-cancel": [19, "`tasks/cancel` takes the request for approval back, and the call is not made"],
  "beyond.wait.task-own": [19, "a task of another principal is not found"],
  "beyond.wait.task-declared": [19, "tasks are declared to clients of 2025-11-25 alone, and only with `approvals.wait`"],
  "beyond.wait.otherwise": [19, "any other client, and any without `approvals.wait`, gets today's answer"],
  "beyond.wait.progress": [19, "progress is reported while a call waits"],
  "beyond.wait.state-bound": [19, "a `requestState` is refused when it was changed, or comes from another principal, with another call, or late"],
  "beyond.wait.state-once": [19, "a `requestState` is good once"],
  "beyond.wait.url": [19, "the address is built from `console_url` alone, and not given where the console is open to anybody"],
  "beyond.wait.only-people": [19, "a client that accepts by itself changes nothing"],
  "beyond.wait.denied": [19, "a denied call that waited is answered with the denial, and opens no new request"],
  "beyond.wait.killed": [19, "whatever is killed while a call waits, the call is carried out once or not at all"],
});

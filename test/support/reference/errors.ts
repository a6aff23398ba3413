/** Reference page of the errors. */
import { ERROR_CAUSES, INTERNAL_CODE } from "../../../src/kernel/error-codes.ts";
import { ERROR_KINDS, type ErrorCode } from "../../../src/kernel/errors.ts";
import { codeSpan, generatedNote, tableRow } from "./markdown.ts";

export function errorsPage(): string {
  const kinds = (Object.keys(ERROR_KINDS) as ErrorCode[]).map((name) => {
    const { http, exit, rpc } = ERROR_KINDS[name];
    return tableRow([codeSpan(name), String(http), String(exit), String(rpc), ERROR_CAUSES[name].when]);
  });
  const causes = Object.entries(ERROR_CAUSES)
    .map(([name, cause]) => ({ name, ...cause, http: ERROR_KINDS[cause.kind].http }))
    .sort((a, b) => a.http - b.http || a.name.localeCompare(b.name, "en"))
    .map(({ name, kind, http, when, to_do }) =>
      tableRow([codeSpan(name), String(http), codeSpan(kind), when, to_do]),
    );
  return `# Errors

${generatedNote("src/kernel/errors.ts and src/kernel/error-codes.ts")}

Each expected failure is of one of these kinds. Over HTTP, the body is \`{"error": "<message>"}\`. On the command line, the
message is on stderr. Over MCP, it is a JSON-RPC error. A message never contains argument values.

A call that the policy blocks is not an error. It is the decision \`block\`, with its reasons.

${tableRow(["Kind", "HTTP", "Exit code", "JSON-RPC", "When"])}${tableRow(["-", "-", "-", "-", "-"])}${kinds.join("")}
An unexpected failure is a 500 without details; the server's log has the cause. After a 503 nothing was recorded, unless
the message mentions it. In that case, check the run before you retry.

## Codes

Each HTTP response of 400 and above has the header \`svc-error-code\` with the code of the cause. Let your program decide by
the code, and show the message to people. A cause without its own code has the name of its kind.

For a 409, the header \`svc-facts\` can have details, as percent-encoded JSON. To find a request in the server's log, use its
\`x-request-id\` header. With \`SVC_LOG=json\` the log line has \`code\`, \`error\` and \`request_id\`.

${tableRow(["Code", "HTTP", "Kind", "When", "Your next step"])}${tableRow(["-", "-", "-", "-", "-"])}${causes.join("")}${tableRow([codeSpan(INTERNAL_CODE), "500", "none", "The failure is not an expected one.", "Retry once. Then report the `x-request-id` to your administrator."])}`;
}

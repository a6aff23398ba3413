/** Statements on the governed proxy, credentials that agents do not hold, and confined agents. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyond2Proxy = section("beyond", "Agents that cannot go around it", {
  "beyond.http.manifest-errors": [40, "an `http` manifest with a wrong host, method or path, or with undos and reads that are not `http` tools, does not load"],
  "beyond.http.one-fit": [40, "two manifests that fit the same request do not load"],
  "beyond.http.args": [40, "`$args` come from path, query and JSON or form body; a name in two of them is 400"],
  "beyond.http.content-types": [40, "a body that is neither JSON nor a form is 415, unless `http.body` is `opaque`"],
  "beyond.http.long-body": [40, "a body over 1 MB is 413; an opaque body is `{bytes, sha256}`"],
  "beyond.http.strict-path": [40, "encoded slashes, dot segments, repeated slashes and repeated query names are 400, and paths are compared after one decoding"],
  "beyond.http.strict-headers": [40, "a method override header, two lengths of one body and a foreign Host header are 400"],
  "beyond.http.result": [40, "the result of a request is `{status, body}`; below 400 it succeeded, 4xx failed, 5xx and broken connections are uncertain"],
  "beyond.http.unfit": [40, "a request to a named host that fits no manifest is refused"],
  "beyond.http.blocked": [40, "a blocked request is 403 with the error body, `svc-decision` and `svc-approval-id`"],
  "beyond.http.held": [40, "a request that waits is held up to `approvals.wait` and sent once approved; the approval of a client that is gone stays unused"],
  "beyond.http.away": [40, "while the service cannot record, requests are 503 and not sent"],
  "beyond.http.websocket": [40, "WebSocket upgrades are refused unless a manifest allows them"],
  "beyond.proxy.key": [40, "the proxy asks for an agent key by Basic or Bearer, else 407"],
  "beyond.proxy.loopback": [40, "the proxy refuses to listen beyond loopback without TLS"],
  "beyond.proxy.net-connect": [40, "a connection to another host is a call of `net.connect` with host and port, and is passed through unread"],
  "beyond.proxy.allow-host": [40, "a host that `--allow-host` or `allow_hosts` names passes without a question; denials and halts hold"],
  "beyond.proxy.authority": [40, "the authority is made for the run, good for 24 hours, constrained to the named hosts; a client that does not trust it fails"],
  "beyond.proxy.server-name": [40, "the server name in the TLS greeting must equal the host that was asked for"],
  "beyond.proxy.private": [40, "private, loopback and metadata addresses are refused unless named literally"],
  "beyond.proxy.not-understood": [40, "a protocol that the proxy does not understand is refused with a sentence"],
  "beyond.credentials.added": [40, "the proxy adds a credential after the decision, as header, query, basic or AWS signature, to its hosts alone, over verified TLS"],
  "beyond.credentials.stripped": [40, "what the agent sent as a credential to such a host is removed"],
  "beyond.credentials.masked": [40, "a credential that comes back is masked: as sent, base64, base64url, percent-encoded and hexadecimal, in headers and bodies, across chunks and after decompression"],
  "beyond.credentials.sources": [40, "`from` is a variable, a file, or a command without a shell; one that cannot be read sends nothing"],
  "beyond.credentials.nowhere": [40, "credentials are not in ledger, data, log, answers or errors"],
  "beyond.credentials.undo": [40, "`svc rollback` makes its requests with the credential"],
  "beyond.http.undo": [40, "`svc rollback` makes the undo, the read-back and the reads of `http` tools itself; a read that answers 404 is `{status: 404}`"],
});

/** Packs of services as `http` manifests. */
import { section } from "./types.ts";
// biome-ignore format: one statement a line
export const beyond2Services = section("beyond", "Packs of services", {
  "beyond.services.packs": [42, "packs for services are http manifests with effect, undo, residue, card and effect checks"],
  "beyond.services.drilled": [42, "each undo that a pack calls proven restores the emulator's state, except what the pack says stays"],
  "beyond.services.proven": [42, "a tool is called proven only if it is drilled against the named emulator"],
  "beyond.services.table": [42, "the documentation publishes tool, undo, what stays, until when, and proven against what, from the packs"],
  "beyond.services.drift": [42, "a pack's tools are compared with the service's published API description"],
  "beyond.services.digits": [42, "{name:digits} in http.path takes digits only, so that two tools can share a place"],
  "beyond.services.graphql": [42, "http.graphql distinguishes the fields of a GraphQL API, and refuses a request that two programs could read differently"],
  "beyond.services.graphql-errors": [42, "a GraphQL answer with errors is a failed call if nothing ran, and uncertain otherwise"],
  "beyond.services.rest": [42, "a last {name:path} in http.path takes the rest of the path"],
  "beyond.services.query": [42, "a request with a query field that http.query does not list fits no manifest"],
  "beyond.services.failed": [42, "an answer below 400 that matches http.failed means that the call, or its undo, failed"],
  "beyond.services.headers": [42, "http.answer_headers shows headers of the answer to undos and checks"],
  "beyond.services.form": [42, "a form sends an unset field empty, and http.body on a DELETE sends a body"],
  "beyond.services.tau2": [42, "on tau2-bench's ground truth every rollback leaves the state equal, or the report names the step behind each difference"],
});

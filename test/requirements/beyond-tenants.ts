/** Statements on tenants. */
import { section } from "./types.ts";

// biome-ignore format: one statement a line
export const beyondTenants = section("beyond", "Tenants", {
  "beyond.tenants.key-bound": [15, "a key entry may have `tenant_only: true`; it needs a tenant"],
  "beyond.tenants.group-bound": [15, "a group of tokens may be mapped to a tenant, and binds its tokens to it"],
  "beyond.tenants.runs": [15, "runs, their plans, bundles and reports outside the tenant are a 404"],
  "beyond.tenants.records": [15, "a search of records finds the tenant's own"],
  "beyond.tenants.approvals": [15, "requests outside the tenant are a 404 to read and to decide, and are in no list"],
  "beyond.tenants.halts": [15, "halts and resumes of a bound admin are confined to its tenant"],
  "beyond.tenants.holds": [15, "legal holds of a bound admin are confined to its tenant"],
  "beyond.tenants.contain": [15, "a containment by a bound admin neither shows nor disables a key that is not bound to its tenant"],
  "beyond.tenants.keys": [15, "a bound admin sees and makes bound keys of its tenant only"],
  "beyond.tenants.whole-service": [15, "reload, registry writes, anchors, retention apply, the ledger's own routes and `/metrics` are 403"],
  "beyond.tenants.evidence-key": [15, "`/v1/evidence/key` stays open to a bound auditor"],
  "beyond.tenants.status": [15, "`/v1/status` counts the tenant's own things"],
  "beyond.tenants.reports": [15, "reports and simulations look at the tenant's own history"],
  "beyond.tenants.bundle": [15, "a run's bundle proves its records and shows no other record"],
  "beyond.tenants.console": [15, "console pages show the tenant's own things"],
  "beyond.tenants.news": [23, "open console pages of a bound person hear of the tenant's own doings, and not that a neighbour does anything"],
  "beyond.tenants.operator-tools": [15, "operator tools act within the tenant"],
  "beyond.tenants.command-line": [23, "what a command prints with a bound key tells nothing of another tenant"],
  "beyond.tenants.matrix": [15, "no answer of any route holds a byte of another tenant"],
  "beyond.tenants.parts": [23, "of what is the whole service's, a hold or a drill, a bound caller is told nothing that names a thing of another tenant"],
  "beyond.tenants.names": [23, "a run id or a key's name that another tenant has is a 409, and what has it is left as it was"],
  "beyond.tenants.apart": [23, "no byte of an answer depends on what a neighbour does, and its things are answered like ones that were never there"],
});

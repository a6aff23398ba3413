/** A draft as the policy file that it could become: the entries in force, those suggested, and the evidence as comments. */
import { Document, isMap, isScalar, isSeq } from "yaml";
import { shellQuoted } from "../../kernel/shell.ts";
import type { PolicyDoc } from "../../model/policy/schema.ts";
import type { PolicyDraft, SuggestedGrant, Suggestion, UsedPermissions } from "./draft.ts";

const KEPT = "in force already";

export function writeDraft(active: PolicyDoc, draft: PolicyDraft, head: readonly string[]): string {
  const added = (section: Suggestion["section"]) =>
    draft.suggestions.flatMap((one) => (one.section === section ? [one] : []));
  const sections = (["rules", "limits", "budgets"] as const).filter((name) => added(name).length > 0);
  const together = Object.fromEntries(
    sections.map((name) => [name, [...(active[name] ?? []), ...added(name).map(({ entry }) => entry)]]),
  );
  const doc = new Document({ ...active, ...together });
  if (isMap(doc.contents)) {
    for (const { key, value } of doc.contents.items) {
      if (!isScalar(key) || key.value === "version") continue;
      if (!isSeq(value)) key.commentBefore = comment([KEPT]);
      else {
        const fresh = added(key.value as Suggestion["section"]);
        const kept = value.items.length - fresh.length;
        value.items.forEach((item, at) => {
          if (isMap(item)) item.commentBefore = comment([at < kept ? KEPT : fresh[at - kept]!.evidence]);
        });
      }
    }
  }
  doc.commentBefore = comment([...head, ...permissionLines(draft.permissions), ...grantLines(draft.grants)]);
  return doc.toString({ lineWidth: 0 });
}

function permissionLines(permissions: readonly UsedPermissions[]): string[] {
  const lines = permissions.flatMap(({ actor, permissions: used, unused, evidence }) => [
    `  ${actor}: ${used.join(", ") || "none"} (${evidence})`,
    ...(unused.length === 0 ? [] : [`    held by its runs and never used: ${unused.join(", ")}`]),
    ...(used.length === 0 ? [] : [`    --max-permissions ${shellQuoted(used.join(","))}`]),
  ]);
  return [
    "",
    "Permissions that each agent used; a key's max_permissions can be as narrow (svc keys add):",
    ...lines,
  ];
}

function grantLines(grants: readonly SuggestedGrant[]): string[] {
  if (grants.length === 0) return [];
  const lines = grants.flatMap((grant) => [
    `  ${grant.tool} by ${grant.actor}: ${grant.evidence}`,
    `    ${grantCommand(grant)}`,
  ]);
  return ["", "Grants for what people always approved; whoever may approve gives one:", ...lines];
}

function grantCommand({ actor, tool, tenant, rule, when, max_uses, irreversible }: SuggestedGrant): string {
  return [
    `svc grants add --tool ${shellQuoted(tool)} --actor ${shellQuoted(actor)} --rule ${shellQuoted(rule)}`,
    ...(tenant === null ? [] : [`--tenant ${shellQuoted(tenant)}`]),
    ...when.map((condition) => `--when ${shellQuoted(condition)}`),
    `--max-uses ${max_uses}`,
    ...(irreversible ? ["--irreversible"] : []),
    "--expires 7d --reason 'always approved so far'",
  ].join(" ");
}

/** Names come from agents: what could end a line, or show it other than it is, is spelt out. */
function comment(lines: readonly string[]): string {
  const inert = (line: string) =>
    line.replace(
      /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu,
      (c) => `\\u${c.codePointAt(0)!.toString(16).padStart(4, "0")}`,
    );
  return lines.map((line) => (line === "" ? "" : ` ${inert(line)}`)).join("\n");
}

import { describe, expect, it } from "vitest";
import { pdfText } from "../../../test/evidence/support/pdf.ts";
import { principal, testEngine } from "../../../test/support/engine.ts";
import { verifies } from "../../../test/support/verifies.ts";
import { decideUnit } from "../../govern/approvals/decide-request.ts";
import type { LedgerEvent } from "../../ledger/events.ts";
import { BoundedTally } from "./bounded-tally.ts";
import { codeSpan, forPlainFont, spellOutInvisible } from "./external-text.ts";
import { drawPair, renderPdf } from "./pdf-page.ts";
import { collectPeriodReport, type PeriodContext } from "./period/period.ts";
import { writePeriodReport } from "./period/period-formats.ts";
import { collectRunReport } from "./run.ts";
import { runReportHtml } from "./run-html.ts";
import { runReportPdf } from "./run-pdf.ts";

const MANIFESTS = `
- {tool: crm.get, effect: read, permission: p}
- tool: crm.create
  effect: compensable
  permission: p
  version: 7
  compensation: {tool: crm.delete, args: {id: $result.id}, kind: inverse, residue: ["a welcome mail was sent"]}
- {tool: mail.send, effect: irreversible, permission: p}
- {tool: pay, effect: reversible, permission: p, compensation: {tool: unpay, args: {}, requires_approval: true}}
`;
const POLICY = `
version: 1
rules:
  - {id: no, match: {tool: pay}, when: [{path: $args.n, op: gt, value: 90}], action: deny, reason: too much}
  - {id: ask, match: {tool: mail.send}, when: [{path: $args.ask, op: eq, value: true}], action: require_approval, reason: a person must see it}
budgets:
  - {id: spend, match: {tool: pay}, path: $args.n, max: 100, per: actor, window: 30d, warn_at: 0.5}
`;
/** What an agent might write to break out of every format. */
const HOSTILE = `</td><script>alert(1)</script><img src=x onerror=alert(1)> & "q" 'a' | [x](javascript:1) \`code\` *b* @all #1 https://evil.example/ \u202egnp \u001b[31m \u200b (Tj) ET\n# heading\r\n--- 漢字 é`;
const bot = principal("bot");
const NOW = Date.parse("2026-06-15T12:00:00Z");

async function story() {
  const engine = testEngine({ manifests: MANIFESTS, policy: POLICY, environment: "prod", now: NOW });
  const { env } = engine;
  await engine.open(bot, { run_id: "r1", permissions: ["p"], reason: HOSTILE });
  const call = async (
    tool: string,
    args: object,
    outcome: "succeeded" | "failed" | "uncertain" | null,
    run = "r1",
  ) => {
    const decision = await engine.intent(bot, run, tool, args as never, { reason: `for ${tool}` });
    await env.advance(1_000);
    if (decision.decision === "block" || outcome === null) return decision;
    const error = outcome === "succeeded" ? {} : { error: HOSTILE };
    await engine.outcome(bot, run, decision.step, {
      status: outcome,
      result: { id: "secret-result" },
      ...error,
    });
    return decision;
  };
  await call("crm.get", { q: "secret-argument" }, "succeeded");
  await call("crm.create", { n: 1 }, "succeeded");
  await env.advance(86_400_000);
  await call("mail.send", { to: "x" }, "succeeded");
  await call("mail.send", { to: "y" }, "uncertain");
  await call("crm.create", { n: 2 }, "failed");
  await call("pay", { n: 60 }, "succeeded");
  await call("pay", { n: 99 }, null);
  await call("nothing.here", {}, null);
  await call("nothing.here", {}, null);
  const waiting = await call("mail.send", { ask: true }, null);
  const id = /request (apr_\S+) is/.exec((waiting as { reasons: string[] }).reasons.join())![1]!;
  await env.advance(120_000);
  await engine.store.transact(
    decideUnit(engine.core, principal("boss", "approver"), id, { decision: "approve", note: null }, []),
  );
  await call("mail.send", { ask: true }, "succeeded");
  await engine.open(bot, { run_id: "r2", permissions: [], mode: "observe" });
  await call("unknown.tool", {}, "succeeded", "r2");
  await env.advance(2 * 86_400_000);
  await call("crm.get", {}, null);
  return engine;
}

const context = { now_ms: NOW, version: "1.2.3", region: "eu-1", policy: "sha256:p" };

describe("a run report", async () => {
  const engine = await story();
  const report = await collectRunReport(engine.store, "r1", context);

  it(`names the agent, the state of each step, and the possible rollback ${verifies(
    "ops.evidence.report-who",
    "ops.evidence.report-outlook",
    "ops.evidence.report-trail",
  )}`, async () => {
    expect(report.run).toMatchObject({
      actor: "bot",
      mode: "enforce",
      environment: "prod",
      permissions: ["p"],
    });
    expect(report.steps.map(({ tool, status }) => `${tool} ${status}`)).toEqual([
      "crm.get succeeded",
      "crm.create succeeded",
      "mail.send succeeded",
      "mail.send uncertain",
      "crm.create failed",
      "pay succeeded",
      "mail.send succeeded",
      "crm.get intended",
    ]);
    const html = runReportHtml(report);
    const lines = await engine.store.records({ run_id: "r1", limit: 100 });
    for (const line of lines) expect(html).toContain((JSON.parse(line) as { hash: string }).hash);
    expect(report.problem).toBeNull();
    for (const words of [
      "Not fully reversible",
      "can be undone by crm.delete (restores the exact state, will not be read back)",
      "a welcome mail was sent",
      "needs an approval",
      "cannot be undone",
      "2 steps have an unknown outcome",
      "eu-1",
      report.ledger.head,
    ]) {
      expect(html).toContain(words);
    }
  });

  it("holds no value of an argument or a result", async () => {
    const pdf = pdfText(await runReportPdf(report));
    for (const text of [runReportHtml(report), pdf])
      expect(text).not.toMatch(/secret-argument|secret-result/);
  });

  it("is inert as HTML: no tag, no attribute, nothing unseen comes from the outside", () => {
    const html = runReportHtml(report);
    expect(html).not.toMatch(/<script|<img|onerror=alert\(1\)>|\u202e|\u001b|\u200b/);
    expect(html).toContain("&lt;script&gt;alert(1)&lt;/script&gt;");
    expect(html).toContain("\\u{202e}gnp \\u{1b}[31m \\u{200b}");
    expect(html).toContain("default-src &#39;none&#39;");
    expect(html).toContain("<svg");
    const tags = new Set([...html.matchAll(/<([a-z][a-z0-9]*)/g)].map(([, name]) => name));
    expect(
      [...tags].filter((name) => ["script", "img", "iframe", "a", "link", "object", "form"].includes(name!)),
    ).toEqual([]);
  });

  it(`is a PDF of text on A4 that names region and head ${verifies(
    "ops.evidence.pdf-region",
    "ops.evidence.pdf-a4",
    "ops.egress.region-evidence",
  )}`, async () => {
    const bytes = Buffer.from(await runReportPdf(report));
    expect(bytes.subarray(0, 5).toString()).toBe("%PDF-");
    const boxes = [...bytes.toString("latin1").matchAll(/\/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]/g)];
    expect(boxes.length).toBeGreaterThan(1);
    for (const [, width, height] of boxes) expect([Number(width), Number(height)]).toEqual([595.28, 841.89]);
    expect(bytes.toString("latin1")).not.toMatch(/\/(?:JavaScript|JS|Link|URI|Launch|EmbeddedFile)\b/);
    const text = pdfText(bytes);
    for (const words of [
      "eu-1",
      report.ledger.head,
      "Data region",
      "Ledger head",
      "crm.create",
      "by bot",
      "Page 1 of",
    ]) {
      expect(text).toContain(words);
    }
    expect(text.replaceAll(/\s+/g, "")).toContain("\\u{6f22}\\u{5b57}é");
    expect(text).not.toContain("\u001b");
    for (const { hash } of report.trail) expect(text).toContain(hash);
  });

  it("of a run whose working data is gone is made from the ledger", async () => {
    const { store } = await story();
    await store.transact({ run: (tx) => tx.delete("runs", "r1") });
    const left = await collectRunReport(store, "r1", context);
    expect(left.run).toBeNull();
    expect(left.steps.map(({ tool, status }) => `${tool} ${status}`)).toEqual(
      report.steps.map(({ tool, status }) => `${tool} ${status}`),
    );
    expect(runReportHtml(left)).toContain("based on the ledger alone");
    expect(pdfText(await runReportPdf(left))).toContain("based on the ledger alone");
  });

  it("of a run whose stored scope was edited reports it, and trusts the ledger instead", async () => {
    const { store } = await story();
    const run = (await store.get("runs", "r1"))!;
    const widened = { ...run, scope: { ...run.scope, permissions: ["everything"] } };
    await store.transact({ run: (tx) => tx.put("runs", "r1", widened) });
    const found = await collectRunReport(store, "r1", context);
    expect(found).toMatchObject({
      without: "changed",
      run: null,
      problem: expect.stringContaining("scope seal mismatch"),
    });
    expect(found.steps).toHaveLength(8);
    expect(runReportHtml(found)).toContain("changed outside the service");
    expect(runReportHtml(found)).not.toContain("everything");
  });

  it("reports a trail that does not verify, and an unknown run", async () => {
    const records = engine.store.records.bind(engine.store);
    engine.store.records = async (query) =>
      (await records(query)).map((line) => line.replace('"run_seq":2,', '"run_seq":9,'));
    const bad = await collectRunReport(engine.store, "r1", context);
    engine.store.records = records;
    expect(bad.problem).toContain("it was changed");
    expect(runReportHtml(bad)).toContain("This run does not verify");
    expect(pdfText(await runReportPdf(bad))).toContain("DOES NOT VERIFY");
    await expect(collectRunReport(engine.store, "nobody", context)).rejects.toThrow("unknown run nobody");
  });

  it("leaves room under a name that takes two lines", async () => {
    const lines = [1, 1];
    const about = { title: "t", author: "a", made_ms: 0, footer: "f" };
    await renderPdf(about, async (doc) => {
      for (const [i, name] of ["short", "a name that needs more than a line"].entries()) {
        const { y } = doc;
        drawPair(doc, name, "1");
        lines[i] = (doc.y - y) / doc.currentLineHeight();
      }
    });
    expect(lines[1]! - lines[0]!).toBeGreaterThan(0.9);
  });

  it("of a run with very many steps stays whole", async () => {
    const steps = Array.from({ length: 500 }, (_, i) => ({ ...report.steps[0]!, step: i }));
    const html = runReportHtml({ ...report, steps });
    expect(html).toContain("The first 60 steps; 440 more are listed below");
    expect(Buffer.from(await runReportPdf({ ...report, steps })).length).toBeGreaterThan(10_000);
    expect(
      runReportHtml({ ...report, steps: [], trail: [], outlook: { fully_reversible: true, actions: [] } }),
    ).toContain("No call was accepted");
  });
});

describe("a period report", async () => {
  const engine = await story();
  const periodContext: PeriodContext = {
    since_ms: NOW - 86_400_000,
    until_ms: engine.env.now(),
    version: "1.2.3",
    environment: "prod",
    region: "eu-1",
    policy: engine.core.rules().policy,
    attention: { runs: [{ run_id: "r1", actor: HOSTILE, created_ms: NOW, unresolved: 2 }], more: false },
  };
  const report = await collectPeriodReport(engine.store, periodContext);

  it(`counts calls, runs and outcomes ${verifies("ops.period.calls", "ops.period.blocked")}`, () => {
    expect(report.calls).toEqual({ total: 13, accepted: 9, blocked: 4, would_block: 1 });
    expect(report.runs).toEqual({ active: 2, opened: 2 });
    expect(report.outcomes).toEqual({ succeeded: 6, failed: 1, uncertain: 1 });
    expect(report.ledger).toMatchObject({
      in_period: report.ledger.records,
      first_seq: 0,
      last_seq: report.ledger.records - 1,
    });
    expect(report.blocked_reasons[0]).toEqual({
      reason: "no manifest is registered for this tool",
      count: 2,
    });
    expect(report.blocked_reasons.filter(({ reason }) => reason.includes("approved"))).toEqual([
      {
        reason: "approval required: request is pending an operator decision; retry after it is approved",
        count: 1,
      },
    ]);
  });

  it(`breaks them down ${verifies("ops.period.by-dimension", "ops.period.unmanifested")}`, () => {
    expect(report.by_tool.find(({ name }) => name === "mail.send")).toEqual({
      name: "mail.send",
      accepted: 3,
      blocked: 1,
      would_block: 0,
      succeeded: 2,
      failed: 0,
      uncertain: 1,
    });
    expect(report.by_actor).toEqual([{ name: "bot", accepted: 9, blocked: 4, would_block: 1 }]);
    expect(Object.fromEntries(report.by_effect.map(({ name, accepted }) => [name, accepted]))).toEqual({
      irreversible: 3,
      compensable: 2,
      "no manifest": 1,
      read: 2,
      reversible: 1,
    });
    expect(report.unmanifested).toEqual([
      { name: "nothing.here", accepted: 0, blocked: 2 },
      { name: "unknown.tool", accepted: 1, blocked: 0 },
    ]);
  });

  it(`counts approvals, rollbacks and what cannot be undone ${verifies(
    "ops.period.approvals",
    "ops.period.rollbacks",
    "ops.period.irreversible",
    "ops.period.attention",
  )}`, async () => {
    expect(report.approvals).toMatchObject({
      requested: 1,
      approved: 1,
      denied: 0,
      expired: 0,
      escalated: 0,
      used: 1,
    });
    expect(report.approvals.median_decision_ms).toBe(121_000);
    expect(report.irreversible.ran).toBe(3);
    expect(report.irreversible.latest[0]).toMatchObject({
      tool: "mail.send",
      run_id: "r1",
      outcome: "succeeded",
    });
    expect(report.attention.runs).toHaveLength(1);
    expect(report.rollbacks).toEqual({
      begun: 0,
      compensated: 0,
      failed: 0,
      verified: 0,
      verification_failed: 0,
      unverified: 0,
      verification_rate: null,
    });
    const store = (await story()).store;
    const events = [
      "compensating",
      "verified",
      "compensated",
      "compensating",
      "verification_failed",
      "compensation_failed",
      "unverified",
      "verified",
      "approval_expired",
      "approval_escalated",
      "denied",
    ] as const;
    await store.transact({
      run(tx) {
        for (const event of events) tx.append({ ts_ms: NOW + 10, event, actor: "x" });
        tx.append({ ts_ms: NOW + 10, event: "approved", actor: "x", detail: "request apr_1 (1 of 2)" });
        tx.append({ ts_ms: NOW + 10, event: "approved", actor: "x", detail: "break-glass: it burns" });
        tx.append({ ts_ms: NOW + 10, event: "approved", actor: "x", detail: "pre-approved: yes" });
      },
    });
    const more = await collectPeriodReport(store, periodContext);
    expect(more.rollbacks).toMatchObject({
      begun: 2,
      compensated: 1,
      failed: 1,
      verified: 2,
      verification_rate: 0.5,
    });
    expect(more.approvals).toMatchObject({
      approved: 1,
      denied: 1,
      expired: 1,
      escalated: 1,
      break_glass: 1,
      pre_approved: 1,
    });
  });

  it("counts a step once, for any number of undo attempts and reports of its outcome", async () => {
    const { store } = await story();
    const at = (step: number, ...events: LedgerEvent[]) =>
      events.map((event) => ({ ts_ms: NOW + 10, event, actor: "x", run_id: "r9", run_seq: 0, step }));
    const drafts = [
      ...at(0, "compensating", "compensation_failed", "compensating", "compensation_failed"),
      ...at(1, "compensating", "verification_failed", "compensation_failed"),
      ...at(1, "compensating", "verified", "compensated"),
      ...at(2, "compensating", "compensating", "unverified", "compensated"),
      ...at(3, "compensating", "verification_failed", "compensation_failed"),
      ...at(3, "compensating", "compensation_failed"),
      ...at(4, "compensating"),
    ];
    const resolved = { tool: "mail.send", effect: "irreversible" } as const;
    await store.transact({
      run(tx) {
        for (const draft of drafts) tx.append(draft);
        for (const draft of at(5, "uncertain", "succeeded")) tx.append({ ...draft, ...resolved });
        for (const draft of at(6, "uncertain", "failed")) tx.append({ ...draft, ...resolved });
      },
    });
    const more = await collectPeriodReport(store, periodContext);
    expect(more.rollbacks).toEqual({
      begun: 5,
      compensated: 2,
      failed: 2,
      verified: 1,
      verification_failed: 0,
      unverified: 1,
      verification_rate: 0.5,
    });
    expect(more.outcomes).toEqual({
      succeeded: report.outcomes.succeeded + 1,
      failed: report.outcomes.failed + 1,
      uncertain: report.outcomes.uncertain,
    });
    expect(more.irreversible.ran).toBe(report.irreversible.ran + 1);
    expect(more.irreversible.latest[0]).toMatchObject({ run_id: "r9", step: 5, outcome: "succeeded" });
    const sends = (rows: typeof more.by_tool) => rows.find(({ name }) => name === "mail.send")!;
    expect(sends(more.by_tool).uncertain).toBe(sends(report.by_tool).uncertain);
    expect(sends(more.by_tool).failed).toBe(sends(report.by_tool).failed + 1);
  });

  it(`says it in the words of the JSON ${verifies("contract.readings.same-words")}`, () => {
    const md = writePeriodReport(report, "md");
    for (const [word, count] of Object.entries({ ...report.outcomes, ...report.calls }))
      if (word !== "total") expect(md).toContain(`- ${word}: ${count}\n`);
    expect(md).toContain("| Tool | accepted | blocked | would_block | succeeded | failed | uncertain |");
    const { verification_rate: _, begun: __, failed: ___, ...undos } = report.rollbacks;
    for (const [word, count] of Object.entries(undos)) expect(md).toContain(`- ${word}: ${count}\n`);
    for (const status of ["requested", "approved", "denied", "expired", "escalated"] as const)
      expect(md).toContain(`- ${status}: ${report.approvals[status]}\n`);
    expect(md).not.toMatch(/outcome unknown|\bUnknown\b|[Ww]ould be blocked/);
  });

  it(`shows budgets near their limit, and every day ${verifies("ops.period.budgets", "ops.period.per-day")}`, () => {
    expect(report.budgets).toEqual([
      { id: "spend", per: "actor", value: "bot", used: 60, max: 100, share: 0.6 },
    ]);
    expect(report.per_day).toEqual([
      { day: "2026-06-15", accepted: 2, blocked: 0 },
      { day: "2026-06-16", accepted: 6, blocked: 4 },
      { day: "2026-06-17", accepted: 0, blocked: 0 },
      { day: "2026-06-18", accepted: 1, blocked: 0 },
    ]);
  });

  it("covers only its period", async () => {
    const later = await collectPeriodReport(engine.store, {
      ...periodContext,
      since_ms: NOW + 2 * 86_400_000,
    });
    expect(later.calls).toEqual({ total: 1, accepted: 1, blocked: 0, would_block: 0 });
    const none = await collectPeriodReport(engine.store, {
      ...periodContext,
      since_ms: NOW - 10,
      until_ms: NOW - 5,
    });
    expect(none).toMatchObject({
      calls: { total: 0 },
      per_day: [{ day: "2026-06-15" }],
      ledger: { in_period: 0, first_seq: null },
    });
    for (const format of ["md", "html", "json"] as const)
      expect(writePeriodReport(none, format)).toContain("eriod");
  });

  it(`is written as Markdown, as a page and as JSON, and inert in each ${verifies("ops.evidence.period-formats")}`, () => {
    expect(JSON.parse(writePeriodReport(report, "json"))).toEqual(report);
    const html = writePeriodReport(report, "html");
    expect(html).toContain("<svg");
    expect(html).not.toMatch(/<script|<img|\u202e|\u001b/);
    const md = writePeriodReport(report, "md");
    expect(md).toContain("| `mail.send` | 3 | 1 | 0 | 2 | 0 | 1 |");
    expect(md).not.toMatch(/\u202e|\u001b|\r/);
    // Outside code spans nothing of the hostile text is left, so nothing of it can work.
    const outside = md.replace(/(`+)(?:(?!\1)[\s\S])*?\1(?!`)/g, "");
    expect(outside).not.toMatch(/script|evil|javascript|@all|heading/);
    for (const line of md.split("\n").filter((one) => one.startsWith("| `r1`"))) {
      expect(line.replaceAll("\\|", "").split("|")).toHaveLength(6);
    }
  });
});

describe("text of others", () => {
  it("is seen in full", () => {
    expect(spellOutInvisible("a\u0000\u202e\u200b\ufeff\ud800 b\u00a0\n")).toBe(
      "a\\u{0}\\u{202e}\\u{200b}\\u{feff}\\u{d800} b\\u{a0}\\n",
    );
    expect(spellOutInvisible("漢字 é 😀")).toBe("漢字 é 😀");
    expect(forPlainFont("漢 é € 😀 “x”")).toBe("\\u{6f22} é € \\u{1f600} “x”");
    // A font has a shape for the soft hyphen, and readers do not see it.
    expect(forPlainFont("a\u00adb\n")).toBe("a\\u{ad}b\\n");
  });

  it("fits a code span with any content", () => {
    expect(codeSpan("a`b")).toBe("``a`b``");
    expect(codeSpan("`")).toBe("`` ` ``");
    expect(codeSpan("a|b")).toBe("`a\\|b`");
    expect(codeSpan("")).toBe("(empty)");
  });

  it("is counted within bounds", () => {
    const tally = new BoundedTally(["n"] as const);
    for (let i = 0; i < 6_000; i++) tally.add(`tool ${i}`, "n");
    const rows = tally.list();
    expect(rows).toHaveLength(5_001);
    expect(rows[0]).toEqual({ name: "(others)", n: 1_000 });
  });
});

/** Containing an agent: what it would mean, the one button that does it, and what became of it. */
import type { ContainReport, RunContainment } from "../../app/operations/contain/report.ts";
import { contain as containOp, getContain } from "../../app/operations/contain.ts";
import type { Json } from "../../kernel/json.ts";
import { LIMITS } from "../../kernel/limits.ts";
import { type Answer, type Ctx, get, post } from "../ctx.ts";
import { type Html, html, nothing, type Part } from "../html.ts";
import { bullets, card, empty, factList, notice, pageHead } from "../parts/blocks.ts";
import { outcomeMark } from "../parts/containments.ts";
import { button, checkbox, form, input } from "../parts/forms.ts";
import { idText, runLink } from "../parts/ids.ts";
import { mark, plural, type Tone } from "../parts/marks.ts";
import { when } from "../parts/time.ts";

export const containRoutes = [
  get("/contain", forecast),
  post("/contain", containOp, start),
  get("/contain/:id", containment),
];

/** The way in from wherever an actor is shown; nothing for those who may not. */
export function containLink(ctx: Ctx, actor?: string): Html {
  if (!ctx.may(containOp)) return nothing;
  const query = actor === undefined ? "" : `?${new URLSearchParams({ actor })}`;
  return html`<a class="button danger" href="/console/contain${query}">${actor === undefined ? "Contain an agent" : "Contain this agent"}</a>`;
}

interface Asked {
  actor: string;
  tenant: string | undefined;
  since: string | undefined;
  reason: string;
  no_rollback: boolean;
}

const FIELDS = ["actor", "tenant", "since", "reason"] as const;

async function forecast(ctx: Ctx): Promise<Answer> {
  ctx.demand(containOp);
  const asked: Asked = {
    actor: ctx.query["actor"]?.trim() ?? "",
    tenant: ctx.query["tenant"]?.trim() || undefined,
    since: ctx.query["since"]?.trim() || undefined,
    reason: ctx.query["reason"]?.trim() ?? "",
    no_rollback: ctx.query["no_rollback"] === "yes",
  };
  const known = asked.actor !== "" && asked.reason !== "";
  const body = html`${pageHead("Contain an agent", "Everything it has is stopped and taken back, and what it did is undone, newest first.")}
${askCard(asked)}${known ? await forecastCards(ctx, asked) : nothing}`;
  return { page: { title: "Contain", nav: "evidence", body } };
}

function askCard(asked: Asked): Html {
  return card(
    { title: "Whom" },
    html`<form method="get" action="/console/contain" class="form">
<div class="row">${input({ label: "Actor", name: "actor", value: asked.actor, required: true, maxlength: 256, hint: "a name, or a glob" })}${input({ label: "Tenant", name: "tenant", value: asked.tenant ?? "", placeholder: "*", maxlength: 256 })}${input({ label: "Since", name: "since", value: asked.since ?? "", placeholder: "everything", hint: "24h, or a time" })}</div>
${input({ label: "Reason", name: "reason", value: asked.reason, required: true, maxlength: LIMITS.reason_chars, placeholder: "what is going on; every blocked call carries it" })}
${checkbox("no_rollback", "Undo nothing", asked.no_rollback)}
${button("Show what would be done", "primary")}</form>`,
  );
}

async function forecastCards(ctx: Ctx, asked: Asked): Promise<Html> {
  const answer = await ctx.call(containOp, asked);
  if ("job" in answer) return nothing;
  const { actors } = answer;
  const hidden = FIELDS.map(
    (name) => html`<input type="hidden" name="${name}" value="${asked[name] ?? ""}">`,
  );
  const ask = form(
    ctx,
    {
      action: "/console/contain",
      class: "form halt-form",
      confirm: `Contain ${actors.join(", ")} now. The halt and the disabled keys stay until a person lifts them.`,
      verb: "Contain",
    },
    ...hidden,
    asked.no_rollback ? html`<input type="hidden" name="no_rollback" value="yes">` : nothing,
    html`<input type="hidden" name="expect_actors" value="${actors.length}">`,
    button(`Contain ${plural(actors.length, "actor")}`, "danger"),
  );
  return html`${reportCards(answer, true)}${card({ title: "Contain", class: "alarm" }, ask)}`;
}

async function start(ctx: Ctx): Promise<Answer> {
  ctx.demandConfirmed(containOp);
  const expected = Number(ctx.form.text("expect_actors"));
  const answer = await ctx.call(containOp, {
    actor: ctx.form.text("actor"),
    tenant: ctx.form.optional("tenant"),
    since: ctx.form.optional("since"),
    reason: ctx.form.text("reason"),
    no_rollback: ctx.form.checked("no_rollback"),
    expect_actors: expected,
    confirm: true,
  });
  if (!("job" in answer)) return { to: "/console/contain" };
  return {
    to: `/console/contain/${answer.job.id}`,
    notice: { kind: "warn", text: `Halted: ${answer.job.actors.join(", ")}` },
  };
}

async function containment(ctx: Ctx): Promise<Answer> {
  const id = ctx.params["id"] ?? "";
  const { job } = await ctx.call(getContain, { contain_id: id });
  const body = html`${pageHead("Containment", job.reason)}
<div id="containment" data-live>${card(
    { title: job.actor, aside: outcomeMark({ state: job.state, report: job.report as Json }) },
    factList([
      ["Id", idText(job.id)],
      ["Actors", job.actors.join(", ")],
      job.tenant === null ? null : ["Tenant", job.tenant],
      ["By", job.by],
      ["Started", when(job.started_ms)],
      job.finished_ms === null ? null : ["Ended", when(job.finished_ms)],
      job.since_ms === null ? null : ["What was called since", when(job.since_ms)],
    ]),
    job.state === "running"
      ? html`<p class="working" role="status">Under way: ${PHASES[job.phase] ?? job.phase}. The halt is in force.</p>`
      : nothing,
    job.error === null ? null : notice("bad", html`<p>${job.error}</p>`),
  )}${job.report === null ? nothing : reportCards(job.report, false)}</div>`;
  return {
    page: { title: "Containment", nav: "evidence", body, live: `/console/contain/${encodeURIComponent(id)}` },
  };
}

const PHASES: Record<string, string> = {
  keys: "disabling keys",
  requests: "denying requests",
  authority: "taking back what was lent",
  rollback: "undoing steps",
  bundles: "writing evidence",
};

function reportCards(report: ContainReport, dry: boolean): Html {
  const { halt, keys, requests, revoked, wider, runs, bundles } = report;
  const names = (list: readonly string[]): Part => (list.length === 0 ? "none" : list.join(", "));
  const would = dry ? "to " : "";
  const rows: (readonly [string, Part])[] = [
    ["Halt", halt.was_there ? "in force already" : dry ? "will be put in force" : (halt.id ?? "")],
    [
      dry ? "Keys to disable" : "Keys disabled",
      names(keys.disabled.map(({ name, fingerprint }) => `${name} (${fingerprint})`)),
    ],
    [dry ? "Requests to deny" : "Requests denied", names(requests.denied)],
    [`Plans ${would}${dry ? "revoke" : "revoked"}`, names(revoked.plans)],
    [`Delegations ${would}${dry ? "revoke" : "revoked"}`, names(revoked.delegations)],
    [`Grants ${would}${dry ? "revoke" : "revoked"}`, names(revoked.grants)],
    ["Evidence", bundles.note ?? bundles.folder ?? "a signed bundle for each run"],
  ];
  const left = [
    ...keys.left.map(({ name, fingerprint, why }) => `key ${name} (${fingerprint}) ${why}`),
    ...(keys.note === null ? [] : [keys.note]),
    ...requests.approved.map((id) => `request ${id} was approved before and is unused; the halt holds it`),
    ...wider.map(({ kind, id, covers }) => `${kind} ${id} covers ${covers}, which is more than this`),
  ];
  const title = dry ? "What would be done" : "What was done";
  return html`${card({ title, id: "contain-report", aside: verdict(report, dry) }, factList(rows), left.length === 0 ? nothing : html`<h3>For a person</h3>${bullets(left)}`)}${
    runs.length === 0
      ? card({ title: "Runs" }, empty("It opened no run."))
      : runs.map((run) => runCard(run, dry))
  }`;
}

function verdict({ undone, left, complete }: ContainReport, dry: boolean): Html {
  const words = `${plural(undone, "step")} ${dry ? "to undo" : "undone"}, ${left} left`;
  return mark(complete ? "good" : "warn", words);
}

function runCard(run: RunContainment, dry: boolean): Html {
  const lines = (tone: Tone, word: string, list: readonly { step: number; tool: string; why?: string }[]) =>
    list.map(
      ({ step, tool, why }) =>
        html`step ${step} <code>${tool}</code> ${mark(tone, word)}${why === undefined ? null : html` ${why}`}`,
    );
  const items = [
    ...lines("good", dry ? "will be undone" : "undone", run.undone),
    ...lines("bad", "stays", run.cannot),
    ...lines("warn", "unknown", run.unknown),
  ];
  return card(
    { title: `Run of ${run.actor}`, aside: runLink(run.run_id) },
    items.length === 0 ? html`<p class="soft">Nothing of it stands.</p>` : bullets(items),
    run.error === null ? null : notice("bad", html`<p>${run.error}</p>`),
    run.bundle === null ? null : html`<p class="soft">Bundle: <code>${run.bundle}</code></p>`,
  );
}

/** Containment pages: preview, start and report of stopping an agent and undoing its work. */
import type { JsonValue } from "../../kernel/json/json.ts";
import { SERVICE_LIMITS } from "../../kernel/limits.ts";
import { containAgent as containOp, getContain } from "../../operations/contain/contain.ts";
import type { ContainReport, RunContainment } from "../../operations/contain/report.ts";
import { listIncidents } from "../../operations/incidents/incidents.ts";
import { emptyHtml, type HtmlFragment, safeHtml, type TemplateValue } from "../html.ts";
import { getRoute, type PageAnswer, type PageContext, postRoute } from "../page-context.ts";
import {
  bulletList,
  cardBlock,
  emptyState,
  factList,
  noticeBox,
  pageHead,
  tableBlock,
} from "../parts/blocks.ts";
import { outcomeMark } from "../parts/containments.ts";
import { checkboxField, formElement, inputField, submitButton } from "../parts/forms.ts";
import { idText, runLink, runPath } from "../parts/ids.ts";
import { formatCountOf, type MarkTone, markLabel } from "../parts/marks.ts";
import { formatTime } from "../parts/time.ts";
import { actorPath, incidentPath } from "./incidents/incident-list.ts";

export const containRoutes = [
  getRoute("/contain", forecast),
  postRoute("/contain", containOp, start),
  getRoute("/contain/:id", containment),
];

/** Link to the containment form, for pages that show an actor. Empty for users without the role. */
export function containLink(ctx: PageContext, actor?: string): HtmlFragment {
  if (!ctx.may(containOp)) return emptyHtml;
  const query = actor === undefined ? "" : `?${new URLSearchParams({ actor })}`;
  return safeHtml`<a class="button danger" href="/console/contain${query}">${actor === undefined ? "Contain an agent" : "Contain this agent"}</a>`;
}

interface Asked {
  actor: string;
  tenant: string | undefined;
  since: string | undefined;
  reason: string;
  no_rollback: boolean;
}

const FIELDS = ["actor", "tenant", "since", "reason"] as const;

async function forecast(ctx: PageContext): Promise<PageAnswer> {
  ctx.demand(containOp);
  const asked: Asked = {
    actor: ctx.query["actor"]?.trim() ?? "",
    tenant: ctx.query["tenant"]?.trim() || undefined,
    since: ctx.query["since"]?.trim() || undefined,
    reason: ctx.query["reason"]?.trim() ?? "",
    no_rollback: ctx.query["no_rollback"] === "yes",
  };
  const known = asked.actor !== "" && asked.reason !== "";
  const body = safeHtml`${pageHead("Contain an agent", "Halt an agent, disable its keys, revoke its authority and undo its calls, newest first.")}
${askCard(asked)}${known ? await forecastCards(ctx, asked) : emptyHtml}`;
  return { page: { title: "Contain", nav: "evidence", body } };
}

function askCard(asked: Asked): HtmlFragment {
  return cardBlock(
    { title: "Agent" },
    safeHtml`<form method="get" action="/console/contain" class="form">
<div class="row">${inputField({ label: "Actor", name: "actor", value: asked.actor, required: true, maxlength: 256, hint: "a name, or a glob" })}${inputField({ label: "Tenant", name: "tenant", value: asked.tenant ?? "", placeholder: "*", maxlength: 256 })}${inputField({ label: "Since", name: "since", value: asked.since ?? "", placeholder: "everything", hint: "24h, or a time" })}</div>
${inputField({ label: "Reason", name: "reason", value: asked.reason, required: true, maxlength: SERVICE_LIMITS.reason_chars, placeholder: "shown with every blocked call" })}
${checkboxField("no_rollback", "Do not undo anything", asked.no_rollback)}
${submitButton("Preview", "primary")}</form>`,
  );
}

async function forecastCards(ctx: PageContext, asked: Asked): Promise<HtmlFragment> {
  const answer = await ctx.call(containOp, asked);
  if ("job" in answer) return emptyHtml;
  const { actors } = answer;
  const hidden = FIELDS.map(
    (name) => safeHtml`<input type="hidden" name="${name}" value="${asked[name] ?? ""}">`,
  );
  const ask = formElement(
    ctx,
    {
      action: "/console/contain",
      class: "form halt-form",
      confirm: `Contain ${actors.join(", ")} now. The halt and the disabled keys stay until you lift and enable them again.`,
      verb: "Contain",
    },
    ...hidden,
    asked.no_rollback ? safeHtml`<input type="hidden" name="no_rollback" value="yes">` : emptyHtml,
    safeHtml`<input type="hidden" name="expect_actors" value="${actors.length}">`,
    submitButton(`Contain ${formatCountOf(actors.length, "actor")}`, "danger"),
  );
  return safeHtml`${reportCards(answer, true)}${cardBlock({ title: "Contain", class: "alarm" }, ask)}`;
}

async function start(ctx: PageContext): Promise<PageAnswer> {
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

async function containment(ctx: PageContext): Promise<PageAnswer> {
  const id = ctx.params["id"] ?? "";
  const { job } = await ctx.call(getContain, { contain_id: id });
  const { incidents } = await ctx.call(listIncidents, { status: "open" });
  const links = job.actors.map((actor) => {
    const open = incidents.find((one) => one.actor === actor);
    if (open === undefined) return safeHtml`<a class="button" href="${actorPath(actor)}">See ${actor}</a> `;
    return safeHtml`<a class="button" href="${incidentPath(open.id)}">Incident: ${formatCountOf(open.left, "task")} left</a> `;
  });
  // The number of tasks changes while the job works.
  const aside = safeHtml`<div class="links" id="next" data-live>${links}</div>`;
  const body = safeHtml`${pageHead("Containment", job.reason, aside)}
<div id="containment" data-live>${cardBlock(
    { title: job.actor, aside: outcomeMark({ state: job.state, report: job.report as JsonValue }) },
    factList([
      ["Id", idText(job.id)],
      ["Actors", job.actors.join(", ")],
      job.tenant === null ? null : ["Tenant", job.tenant],
      ["By", job.by],
      ["Started", formatTime(job.started_ms)],
      job.finished_ms === null ? null : ["Ended", formatTime(job.finished_ms)],
      job.since_ms === null ? null : ["Calls since", formatTime(job.since_ms)],
    ]),
    job.state === "running"
      ? safeHtml`<p class="working" role="status">In progress: ${PHASES[job.phase] ?? job.phase}. The halt is active.</p>`
      : emptyHtml,
    job.error === null ? null : noticeBox("bad", safeHtml`<p>${job.error}</p>`),
  )}${job.report === null ? emptyHtml : reportCards(job.report, false)}</div>`;
  return {
    page: { title: "Containment", nav: "evidence", body, live: `/console/contain/${encodeURIComponent(id)}` },
  };
}

const PHASES: Record<string, string> = {
  keys: "disabling keys",
  requests: "denying requests",
  authority: "revoking authority",
  rollback: "undoing steps",
  bundles: "writing evidence",
};

function reportCards(report: ContainReport, dry: boolean): HtmlFragment {
  const { halt, keys, requests, revoked, wider, runs, bundles } = report;
  const names = (list: readonly string[]): TemplateValue => (list.length === 0 ? "none" : list.join(", "));
  const would = dry ? "to " : "";
  const rows: (readonly [string, TemplateValue])[] = [
    ["Halt", halt.was_there ? "already active" : dry ? "will be placed" : (halt.id ?? "")],
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
    ...requests.approved.map((id) => `request ${id} was approved earlier and is unused; the halt blocks it`),
    ...wider.map(
      ({ kind, id, covers }) => `${kind} ${id} covers ${covers}, which is wider than this containment`,
    ),
  ];
  const title = dry ? "Preview" : "Result";
  return safeHtml`${cardBlock({ title, id: "contain-report", aside: verdict(report, dry) }, factList(rows), left.length === 0 ? emptyHtml : safeHtml`<h3>Left for you to review</h3>${bulletList(left)}`, comparison(report))}${dependentsCard(report)}${
    runs.length === 0
      ? cardBlock({ title: "Runs" }, emptyState("This agent has no runs."))
      : runCards(runs, dry)
  }`;
}

/** A card for each run with something to read, and one line for all others. */
function runCards(runs: readonly RunContainment[], dry: boolean): HtmlFragment {
  const isQuiet = ({ undone, cannot, unknown, error, bundle }: RunContainment) =>
    undone.length + cannot.length + unknown.length === 0 && error === null && bundle === null;
  const quiet = runs.filter(isQuiet);
  const names = quiet.map(({ run_id }) => safeHtml`${runLink(run_id)} `);
  return safeHtml`${runs.filter((run) => !isQuiet(run)).map((run) => runCard(run, dry))}${
    quiet.length === 0
      ? emptyHtml
      : cardBlock(
          { title: `Nothing to undo in ${formatCountOf(quiet.length, "run")}` },
          safeHtml`<p>${names}</p>`,
        )
  }`;
}

/** Calls of other runs that were built on the contained ones, by the run whose page undoes them. */
function dependentsCard({ dependents = [], runs }: ContainReport): HtmlFragment {
  if (dependents.length === 0) return emptyHtml;
  const own = new Set(runs.map(({ run_id }) => run_id));
  const from = [...new Set(dependents.flatMap(({ because }) => because.map(({ run_id }) => run_id)))];
  const pages = from
    .filter((run_id) => own.has(run_id))
    .map(
      (run_id) => safeHtml`<a href="${runPath(run_id)}/dependents">choose what to undo with ${run_id}</a>`,
    );
  const rows = dependents.map(
    ({ run_id, step, tool }) => safeHtml`step ${step} <code>${tool}</code> of ${runLink(run_id)}`,
  );
  return cardBlock({ title: "What other runs built on this" }, bulletList(rows), bulletList(pages));
}

/** Compares the preview with the result. */
function comparison({ differences }: ContainReport): HtmlFragment {
  if (differences === undefined) return emptyHtml;
  if (differences.length === 0)
    return safeHtml`<p class="calm" id="promised">Every step ended as the preview showed.</p>`;
  const rows = differences.map(({ run_id, step, tool, promised, happened }) => [
    runLink(run_id),
    safeHtml`${step} <code>${tool}</code>`,
    promised,
    happened,
  ]);
  return safeHtml`<h3>Otherwise than previewed</h3>${tableBlock("Otherwise than previewed", ["Run", "Step", "Preview", "Result"], rows)}`;
}

function verdict({ undone, left, complete }: ContainReport, dry: boolean): HtmlFragment {
  const words = `${formatCountOf(undone, "step")} ${dry ? "to undo" : "undone"}, ${left} left`;
  return markLabel(complete ? "good" : "warn", words);
}

function runCard(run: RunContainment, dry: boolean): HtmlFragment {
  const lines = (
    tone: MarkTone,
    word: string,
    list: readonly { step: number; tool: string; why?: string }[],
  ) =>
    list.map(
      ({ step, tool, why }) =>
        safeHtml`step ${step} <code>${tool}</code> ${markLabel(tone, word)}${why === undefined ? null : safeHtml` ${why}`}`,
    );
  const items = [
    ...lines("good", dry ? "will be undone" : "undone", run.undone),
    ...lines("bad", "not undone", run.cannot),
    ...lines("warn", "unknown", run.unknown),
  ];
  return cardBlock(
    { title: `Run of ${run.actor}`, aside: runLink(run.run_id) },
    items.length === 0 ? safeHtml`<p class="soft">Nothing to undo.</p>` : bulletList(items),
    run.error === null ? null : noticeBox("bad", safeHtml`<p>${run.error}</p>`),
    run.bundle === null ? null : safeHtml`<p class="soft">Bundle: <code>${run.bundle}</code></p>`,
  );
}

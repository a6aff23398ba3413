/** What belongs to one page: approvals, a run's timeline and plan, trails, alerts, policies. */
export const PAGES = `
.desk { display: grid; grid-template-columns: minmax(260px, 2fr) minmax(0, 5fr); gap: 18px; align-items: start; }
.desk.alone { grid-template-columns: minmax(0, 1fr); }
.desk > div { display: grid; gap: 12px; min-width: 0; }
.back { display: none; }
.sorts { display: flex; flex-wrap: wrap; gap: 4px 12px; font-size: 13px; }
.sorts a[aria-current] { font-weight: 640; color: var(--ink); text-decoration: none; }
.requests { display: grid; gap: 6px; }
.request { display: grid; grid-template-columns: 20px minmax(0, 1fr); gap: 6px; align-items: start; padding: 9px 10px; border: 1px solid var(--line); border-radius: var(--radius); background: var(--card); }
.request.at { border-color: var(--accent); box-shadow: inset 3px 0 0 var(--accent); }
.request a { display: grid; gap: 3px; color: inherit; text-decoration: none; min-width: 0; }
.request-what { font-weight: 560; overflow-wrap: anywhere; display: -webkit-box; -webkit-line-clamp: 3; -webkit-box-orient: vertical; overflow: hidden; }
.request-facts { display: flex; flex-wrap: wrap; gap: 1px 10px; color: var(--soft); font-size: 12.5px; overflow-wrap: anywhere; }
.request-facts .tone.bad { color: var(--bad); font-weight: 620; }
.request-facts .tone.warn { color: var(--warn); font-weight: 620; }
.request-facts .tone.good { color: var(--good); }
.value { font-weight: 700; }
.approval h2 .value { background: var(--accent-wash); border-radius: 4px; padding: 0 3px; }
.irreversible { padding: 9px 14px; border-radius: 8px; background: var(--bad-wash); color: var(--bad); font-weight: 640; }
.fields { display: grid; gap: 9px; min-width: 0; }
.card-field { display: grid; grid-template-columns: minmax(90px, 1fr) minmax(0, 4fr); gap: 4px 12px; overflow-wrap: anywhere; }
.card-field.wide { grid-template-columns: minmax(0, 1fr); }
.card-field h4 { margin: 0; font-size: 13px; font-weight: 560; color: var(--soft); }
.card-field p { font-size: 15px; }
.card-field > p:not(.remarks), .approval h2 .value, .judged .value { white-space: pre-wrap; }
.size { font-weight: 480; white-space: nowrap; }
.size::before { content: "· "; }
.remarks { display: flex; flex-wrap: wrap; gap: 4px; min-width: 0; }
.remarks span { padding: 1px 8px; border-radius: 8px; background: var(--warn-wash); color: var(--warn); font-size: 12.5px; overflow-wrap: anywhere; min-width: 0; }
.uncovered { display: grid; gap: 9px; padding-left: 12px; border-left: 3px solid var(--warn); min-width: 0; }
.long { min-width: 0; }
.long > summary { display: grid; gap: 4px; padding: 9px 12px; border: 1px solid var(--edge); border-radius: 8px; background: var(--sunk); cursor: pointer; list-style: none; min-width: 0; overflow-wrap: anywhere; }
.long > summary::-webkit-details-marker { display: none; }
.long-start { font: 12.5px var(--mono); white-space: pre-wrap; overflow-wrap: anywhere; color: var(--soft); }
.long-all, .long-less { justify-self: start; color: var(--accent); font-weight: 620; }
.long-all::before { content: "\\25b8 "; }
.long-less::before { content: "\\25be "; }
.long[open] > summary { margin-bottom: 6px; padding: 4px 12px; }
.long[open] > summary .long-start, .long[open] > summary .long-all, .long:not([open]) > summary .long-less { display: none; }
.card-field .preview, .fields .diff { max-height: none; }
.expand-first { display: flex; flex-wrap: wrap; gap: 6px 12px; align-items: center; padding-bottom: 6px; }
.expand-first[hidden] { display: none; }
.second:has(input:disabled) .check { opacity: 0.55; }
.card-note { padding: 9px 14px; border-radius: 8px; background: var(--warn-wash); color: var(--warn); }
.second { grid-column: 1 / -1; padding: 8px 12px; border: 1px solid var(--bad); border-radius: 8px; }
.who-may { padding: 9px 14px; border-radius: 8px; background: var(--info-wash); color: var(--info); }
.approval, .judged { display: grid; grid-template-columns: minmax(0, 1fr); gap: 14px; overflow-wrap: anywhere; }
.approval-head { display: flex; align-items: flex-start; gap: 10px 14px; flex-wrap: wrap; }
.approval-what { flex: 1 1 260px; min-width: 0; }
.approval-head h2 { font-size: 17px; letter-spacing: -0.015em; overflow-wrap: anywhere; }
.approval-who { color: var(--soft); overflow-wrap: anywhere; }
.approval-who .id { display: inline; }
.approval-who b { color: var(--ink); }
.approval-state { display: grid; justify-items: end; gap: 3px; font-size: 12.5px; }
.pick { padding: 3px 0; }
.reason { padding: 10px 16px; border-left: 3px solid var(--edge); background: var(--sunk); border-radius: 0 8px 8px 0; overflow-wrap: anywhere; }
.reason footer { font-size: 12px; color: var(--soft); }
.approval-grid { display: grid; grid-template-columns: repeat(auto-fit, minmax(190px, 1fr)); gap: 14px 26px; }
.approval-grid section { display: grid; gap: 4px; align-content: start; min-width: 0; overflow-wrap: anywhere; }
.approval-grid .facts > div { display: block; }
.preview, .sample { white-space: pre-wrap; overflow-wrap: anywhere; padding: 9px 12px; max-height: 220px; border-radius: 8px; background: var(--sunk); border: 1px solid var(--line); font-size: 12.5px; }
.sample { max-width: 100%; color: var(--ink); }
.decide { display: grid; grid-template-columns: minmax(120px, 1fr) auto auto; gap: 8px; align-items: center; }
.decide button { min-width: 96px; }
.approval-id { display: flex; align-items: center; gap: 4px; color: var(--soft); font-size: 12px; }
.bulk { padding: 6px 10px; }
.group { display: grid; gap: 8px; padding: 10px; border-bottom: 1px solid var(--line); }
.group-what { font-weight: 600; }
.group-table td { max-width: 260px; overflow-wrap: anywhere; vertical-align: top; }
.unusual { background: var(--warn-wash); color: var(--warn); font-weight: 640; border-radius: 4px; padding: 0 3px; }
.group-table td:has(.folded) > div { min-width: 180px; }
.folded > summary { cursor: pointer; }
.unusual:has(.folded) { display: block; padding: 3px 6px; }
.allows { padding: 10px 14px; border-radius: 8px; background: var(--warn-wash); color: var(--warn); overflow-wrap: anywhere; }
.arguments { display: grid; gap: 8px; min-width: 0; padding: 0; border: 0; }
#containment { display: grid; gap: 18px; }
.group > .decide { grid-template-columns: 1fr 1fr; gap: 8px; }
.group > .decide .field { grid-column: 1 / -1; }
.group > .decide button { padding-inline: 6px; font-size: 13.5px; }
.bulk .decide { grid-template-columns: 1fr 1fr; gap: 8px; }
.bulk .decide .field { grid-column: 1 / -1; }
.gone { opacity: 0.55; }
.gone-note { font-weight: 620; }

.run-columns { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); grid-template-rows: auto 1fr; gap: 18px; align-items: start; }
.run-side { grid-column: 2; grid-row: 1 / span 2; }
.run-reason { max-width: 46ch; color: var(--soft); font-size: 12.5px; overflow: hidden; text-overflow: ellipsis; white-space: nowrap; }
.arcs-frame { overflow-x: auto; padding: 2px 0; }
.arcs { display: block; overflow: visible; }
.arcs a { text-decoration: none; }
.arc { fill: none; stroke: var(--edge); stroke-width: 1.5; }
.node { fill: var(--quiet-wash); stroke: var(--quiet); stroke-width: 1.2; }
.node.good { fill: var(--good-wash); stroke: var(--good); }
.node.bad { fill: var(--bad-wash); stroke: var(--bad); }
.node.warn { fill: var(--warn-wash); stroke: var(--warn); }
.node.info { fill: var(--info-wash); stroke: var(--info); }
.node-number { fill: var(--ink); font: 600 10.5px var(--sans); font-variant-numeric: tabular-nums; }
.timeline { display: grid; }
.step { position: relative; display: grid; gap: 4px; padding: 0 0 20px 38px; min-width: 0; overflow-wrap: anywhere; scroll-margin-top: 20px; }
.step:last-child { padding-bottom: 2px; }
.step::before { content: ""; position: absolute; left: 12px; top: 26px; bottom: -2px; width: 2px; background: var(--line); }
.step:last-child::before { display: none; }
.step-number { display: grid; place-items: center; flex: none; width: 26px; height: 26px; border-radius: 50%; border: 1.5px solid var(--quiet); background: var(--quiet-wash); color: var(--ink); font-size: 11.5px; font-weight: 640; font-variant-numeric: tabular-nums; text-decoration: none; }
.step .step-number { position: absolute; left: 0; top: -2px; }
.step.good > .step-head .step-number { border-color: var(--good); background: var(--good-wash); }
.step.bad > .step-head .step-number { border-color: var(--bad); background: var(--bad-wash); }
.step.warn > .step-head .step-number { border-color: var(--warn); background: var(--warn-wash); }
.step.info > .step-head .step-number { border-color: var(--info); background: var(--info-wash); }
.step:target .step-number { box-shadow: 0 0 0 3px var(--accent-wash), 0 0 0 4.5px var(--accent); }
.step-head { display: flex; align-items: center; gap: 4px 8px; flex-wrap: wrap; }
.step-tool { font-weight: 640; font-size: 13.5px; }
.step-time { margin-left: auto; color: var(--soft); font-size: 12.5px; }
.step-way { color: var(--soft); font-size: 13px; }
.step-final { color: var(--bad); font-weight: 560; }
.refusal { grid-column: 1 / -1; color: var(--soft); overflow-wrap: anywhere; }
.more > summary { width: fit-content; cursor: pointer; color: var(--accent); font-size: 12.5px; }
.more[open] > summary { margin-bottom: 6px; }
.more .timeline { padding-top: 6px; }
.step-error { color: var(--bad); font-family: var(--mono); font-size: 12.5px; white-space: pre-wrap; }
.step-foot { display: flex; align-items: center; flex-wrap: wrap; gap: 2px 16px; color: var(--soft); font-size: 12.5px; }
.plan { display: grid; }
.plan-step { display: grid; grid-template-columns: auto minmax(0, 1fr) auto; gap: 3px 10px; align-items: center; padding: 10px 0; border-top: 1px solid var(--line); }
.plan-how, .plan-call { grid-column: 2 / -1; color: var(--soft); font-size: 13px; }
.plan-how:empty { display: none; }
.plan-call summary { cursor: pointer; color: var(--accent); }
.states { display: grid; grid-template-columns: repeat(auto-fit, minmax(180px, 1fr)); gap: 8px; }
.states pre { margin: 6px 0; padding: 8px 10px; border-radius: 8px; background: var(--sunk); color: var(--ink); overflow: auto; max-height: 320px; white-space: pre-wrap; }
.conflict { grid-column: 2 / -1; }
.plan-call pre { margin: 6px 0; padding: 8px 10px; border-radius: 8px; background: var(--sunk); color: var(--ink); }
.rollback-form { padding-top: 12px; border-top: 1px solid var(--line); }
.job { display: grid; gap: 10px; padding: 12px 14px; border-radius: var(--radius); background: var(--sunk); }
.working { font-weight: 580; }
.working::before { content: ""; display: inline-block; width: 9px; height: 9px; margin-right: 8px; border-radius: 50%; background: var(--info); animation: breathe 1.4s ease-in-out infinite; }
@keyframes breathe { 50% { opacity: 0.25; } }
@media (prefers-reduced-motion: reduce) { .working::before { animation: none; } }
.report, .tests, .counts, .reasons { display: grid; gap: 5px; }
.report li, .counts li { padding-left: 0; }
.report li::before { display: none; }
.counts { display: flex; flex-wrap: wrap; gap: 6px 18px; }
.steps-list { list-style: decimal; padding-left: 20px; display: grid; gap: 8px; color: var(--ink); }

.trail { display: grid; }
.record { position: relative; padding: 8px 0 8px 22px; min-width: 0; }
.record::before { content: ""; position: absolute; left: 4px; top: 15px; width: 8px; height: 8px; border-radius: 50%; background: var(--card); border: 2px solid var(--edge); }
.record.linked::after { content: ""; position: absolute; left: 7px; top: 25px; bottom: -13px; width: 2px; background: var(--edge); }
.record-head { display: flex; align-items: center; flex-wrap: wrap; gap: 2px 9px; overflow-wrap: anywhere; }
.seq { color: var(--soft); font: 12px var(--mono); }
.record-by { font-weight: 540; }
.record-head time { margin-left: auto; color: var(--soft); font-size: 12.5px; }
.record-detail { color: var(--soft); overflow-wrap: anywhere; }
.record-foot { display: flex; align-items: center; flex-wrap: wrap; gap: 2px 16px; color: var(--soft); font-size: 12px; }

.alerts { display: grid; gap: 12px; }
.alert { display: grid; gap: 7px; box-shadow: inset 3px 0 0 var(--warn); overflow-wrap: anywhere; }
.alert.critical, .alert.error { box-shadow: inset 3px 0 0 var(--bad); }
.alert-head { display: flex; align-items: center; gap: 4px 10px; flex-wrap: wrap; }
.impact h2 { font-family: var(--mono); }
.bench { display: grid; gap: 18px; }
.bench textarea[name="yaml"] { min-height: 260px; }
.trial { display: grid; gap: 10px; align-content: start; min-width: 0; }
.trial[aria-busy] { opacity: 0.7; }
.verdict { font-size: 15px; }
button.small { min-height: 22px; padding: 0 8px; font-size: 12px; }
.example { overflow-wrap: anywhere; white-space: pre-wrap; }
.diff { padding: 10px 0; border-radius: 8px; background: var(--sunk); font-size: 12.5px; max-height: 480px; line-height: 1.5; }
.line { display: inline-block; width: 100%; padding: 0 12px 0 calc(12px + 2ch); text-indent: -2ch; white-space: pre-wrap; overflow-wrap: anywhere; }
.line.added { background: var(--good-wash); color: var(--good); }
.line.removed { background: var(--bad-wash); color: var(--bad); }
.line.gap { color: var(--soft); }
.new-key { display: flex; align-items: center; gap: 8px; padding: 10px 12px; border-radius: 8px; background: var(--card); font-size: 15px; }
`;

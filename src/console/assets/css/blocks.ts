/** Cards, facts, notices, empty places, charts: what pages are built of. */
export const BLOCKS = `
.card, .approval, .alert { min-width: 0; padding: 16px 18px 18px; background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow); }
.card { display: grid; gap: 12px; align-content: start; }
.card-head { display: flex; align-items: baseline; justify-content: space-between; gap: 6px 16px; flex-wrap: wrap; }
.card-head .aside { display: flex; align-items: center; gap: 10px; font-size: 13px; }
.card.alarm { border-color: var(--bad); box-shadow: inset 3px 0 0 var(--bad); }
.columns { display: grid; grid-template-columns: repeat(2, minmax(0, 1fr)); gap: 18px; align-items: start; }
.columns > div, .run-columns > div { display: grid; gap: 18px; min-width: 0; }
.columns.lean { grid-template-columns: minmax(0, 2fr) minmax(0, 3fr); }
#halts:empty { display: none; }
#overview, #waiting, #results { display: grid; gap: 18px; min-width: 0; }

.facts { display: grid; gap: 7px; }
.facts > div { display: grid; grid-template-columns: minmax(88px, 128px) minmax(0, 1fr); gap: 12px; }
.facts dt { color: var(--soft); }
.facts dd { min-width: 0; overflow-wrap: anywhere; }
.facts.bar { display: flex; flex-wrap: wrap; gap: 12px 30px; padding: 13px 18px; background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow); }
.facts.bar > div { display: block; }
.facts.bar dt { font-size: 12px; }
.facts.wide { grid-template-columns: repeat(auto-fill, minmax(300px, 1fr)); gap: 8px 28px; padding-top: 4px; }

.notice { padding: 11px 16px; border-radius: var(--radius); border: 1px solid var(--line); background: var(--info-wash); color: var(--ink); display: grid; gap: 6px; min-width: 0; overflow-wrap: anywhere; }
.notice.ok { background: var(--good-wash); border-color: color-mix(in srgb, var(--good) 30%, transparent); }
.notice.warn { background: var(--warn-wash); border-color: color-mix(in srgb, var(--warn) 30%, transparent); }
.notice.bad { background: var(--bad-wash); border-color: color-mix(in srgb, var(--bad) 35%, transparent); }
.notice .said { font-weight: 590; }
.problems { display: grid; gap: 4px; }

.empty { display: grid; gap: 8px; justify-items: start; padding: 22px 20px; border: 1px dashed var(--edge); border-radius: var(--radius); color: var(--soft); background: var(--sunk); }
.empty-title { color: var(--ink); font-weight: 620; font-size: 15px; }
.empty .button { margin-top: 2px; }
.small-only { display: none; }
.calm { color: var(--soft); }
.command { display: flex; align-items: center; gap: 8px; min-width: 0; padding: 8px 12px; border-radius: 8px; background: var(--sunk); border: 1px solid var(--line); }
.command code { flex: 1; min-width: 0; }
.pager { display: flex; align-items: center; gap: 10px; }
.tabs { display: flex; gap: 4px; border-bottom: 1px solid var(--line); }
.tabs a { padding: 7px 12px; color: var(--soft); text-decoration: none; font-weight: 540; border-bottom: 2px solid transparent; margin-bottom: -1px; }
.tabs a[aria-current] { color: var(--ink); border-color: var(--accent); }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(168px, 1fr)); gap: 14px; }
.tile { display: grid; align-content: start; gap: 1px; padding: 14px 18px 15px; background: var(--card); border: 1px solid var(--line); border-radius: var(--radius); box-shadow: var(--shadow); color: inherit; text-decoration: none; }
.tile:hover { border-color: var(--edge); }
.tile-label { font-size: 12.5px; color: var(--soft); }
.tile-value { font-size: 27px; line-height: 1.25; font-weight: 600; letter-spacing: -0.025em; font-variant-numeric: tabular-nums; }
.tile-note { font-size: 12.5px; line-height: 1.35; color: var(--soft); overflow-wrap: anywhere; }
.tile.warn .tile-value { color: var(--warn); }
.tile.bad .tile-value { color: var(--bad); }

.chart { display: block; width: 100%; height: auto; overflow: visible; }
.chart .grid { stroke: var(--line); stroke-width: 1; }
.chart .axis { fill: var(--soft); font: 9.5px var(--sans); font-variant-numeric: tabular-nums; }
.chart .hover { fill: transparent; }
.chart g:hover .hover { fill: var(--sunk); }
.d-allowed { fill: var(--allowed); background: var(--allowed); }
.d-would_block { fill: var(--would_block); background: var(--would_block); }
.d-waiting { fill: var(--waiting); background: var(--waiting); }
.d-refused { fill: var(--blocked); background: var(--blocked); }
.legend { display: flex; flex-wrap: wrap; gap: 2px 16px; color: var(--soft); font-size: 12.5px; }
.legend b { color: var(--ink); font-variant-numeric: tabular-nums; }
.swatch { display: inline-block; width: 9px; height: 9px; border-radius: 2.5px; margin-right: 6px; }
.meter { display: block; width: 100%; height: 6px; }
.meter .track { fill: var(--quiet-wash); }
.meter .fill { fill: var(--allowed); }
.meter.warn .fill { fill: var(--would_block); }
.meter.bad .fill { fill: var(--blocked); }
.risk { display: flex; gap: 10px; align-items: center; font-variant-numeric: tabular-nums; }
.risk .meter { max-width: 130px; }
.risk b { font-size: 17px; }

.items { display: grid; margin: -4px 0; }
.items li + li { border-top: 1px solid var(--line); }
.item { display: grid; grid-template-columns: minmax(0, 1fr) auto; gap: 1px 12px; padding: 9px 0; color: inherit; text-decoration: none; }
a.item:hover .item-main { text-decoration: underline; text-underline-offset: 3px; }
.item-main { overflow-wrap: anywhere; font-weight: 540; }
.item-side { color: var(--soft); font-size: 12.5px; }
.item-note { grid-column: 1 / -1; color: var(--soft); overflow: hidden; display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow-wrap: anywhere; }
`;

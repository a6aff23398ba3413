// The record browser: search, the list, and one record in full.

import { byId, el, icon, show } from "./dom.js";
import { count, number, time, tone } from "./format.js";
import { VirtualList } from "./list.js";

// What people look for first comes first; whatever else a record has follows by name, and the hashes end it.
const FIRST = [
  "seq",
  "ts_ms",
  "event",
  "tool",
  "run_id",
  "run_seq",
  "step",
  "actor",
  "tenant",
  "reason",
  "detail",
  "effect",
];
const LAST = ["args_hash", "result_hash", "manifest_version", "scope_seal", "prev", "hash"];

export class Records {
  constructor(send) {
    this.send = send;
    this.judged = { broken: null };
    this.opened = null;
    this.list = new VirtualList(byId("list"), {
      drawRow: (node, row, index) => this.drawRow(node, row, index),
      fetch: (from, to) => send({ type: "rows", from, to }),
      onOpen: (index) => this.open(index),
    });
    byId("search").addEventListener("input", () => this.searchSoon());
    byId("event").addEventListener("change", () => this.search());
    byId("previous").addEventListener("click", () => this.step(-1));
    byId("next").addEventListener("click", () => this.step(1));
    byId("close").addEventListener("click", () => byId("detail").close());
    byId("detail").addEventListener("close", () => byId("list").focus({ preventScroll: true }));
    byId("detail").addEventListener("click", (event) => {
      if (event.target === byId("detail")) byId("detail").close();
    });
  }

  /** A file was judged. A new one starts unfiltered; the same one, judged again, keeps its place. */
  judge(state, isNew) {
    this.judged = {
      broken: state.verdict.problem?.position ?? null,
      text: state.verdict.problem?.text ?? "",
    };
    if (!isNew) return this.list.draw();
    byId("search").value = "";
    byId("event").replaceChildren(
      el("option", { value: "" }, "All events"),
      ...state.events.map(([event, times]) => el("option", { value: event }, `${event} (${number(times)})`)),
    );
    this.filtered({ count: state.total, all: true });
  }

  searchSoon() {
    clearTimeout(this.pending);
    this.pending = setTimeout(() => this.search(), 250);
  }

  search() {
    this.send({ type: "filter", query: { text: byId("search").value, event: byId("event").value } });
  }

  searching({ done, total, found }) {
    byId("matches").textContent =
      `Searching ${Math.round((100 * done) / total)}%, ${count(found, "match")}`.replace("matchs", "matches");
  }

  filtered({ count: matching, all }) {
    byId("matches").textContent = all ? count(matching, "record") : `${number(matching)} found`;
    show(byId("nothing"), matching === 0);
    this.list.reset(matching);
  }

  give({ from, rows }) {
    this.list.give(from, rows);
    if (this.opened !== null && byId("detail").open) this.drawDetail();
  }

  /** Bring a record into view, wherever it stands under the current filter; where it is filtered out, unfilter. */
  placed({ index, position }) {
    if (index === -1) {
      byId("search").value = "";
      byId("event").value = "";
      this.search();
      this.awaited = position;
      return;
    }
    this.list.moveTo(index, { focus: true });
    this.open(index);
  }

  afterFilter() {
    if (this.awaited === undefined) return;
    const position = this.awaited;
    delete this.awaited;
    this.send({ type: "place", position });
  }

  drawRow(node, row, index) {
    const stamp = row === undefined ? `${index}…` : `${row.position}`;
    const { broken } = this.judged;
    const state =
      row === undefined || broken === null
        ? ""
        : row.position === broken
          ? "bad"
          : row.position > broken
            ? "after"
            : "";
    if (node.dataset.stamp === stamp && node.dataset.state === state) return;
    node.dataset.stamp = stamp;
    node.dataset.state = state;
    node.dataset.tone = tone(row?.record?.event);
    if (row === undefined) {
      node.replaceChildren(el("span", { className: "wait" }, "…"));
      return;
    }
    const record = row.record;
    if (record === null) {
      node.replaceChildren(cell("seq", row.position), cell("raw", row.text.slice(0, 300)));
      return;
    }
    node.replaceChildren(
      cell("seq", record.seq),
      cell("event", record.event),
      cell("tool", record.tool ?? record.reason ?? record.detail),
      cell("run", record.run_id),
      cell("actor", record.actor),
      cell("time", time(record.ts_ms)),
    );
  }

  open(index) {
    this.opened = index;
    this.drawDetail();
    if (!byId("detail").open) byId("detail").showModal();
  }

  step(by) {
    const next = this.opened + by;
    if (next < 0 || next >= this.list.count) return;
    this.opened = next;
    this.list.moveTo(next);
    this.drawDetail();
  }

  drawDetail() {
    const row = this.list.at(this.opened);
    byId("previous").disabled = this.opened === 0;
    byId("next").disabled = this.opened === this.list.count - 1;
    byId("place").textContent = `${number(this.opened + 1)} of ${number(this.list.count)}`;
    if (row === undefined) {
      byId("detail-title").textContent = "…";
      byId("fields").replaceChildren();
      return;
    }
    byId("detail-title").textContent =
      row.record === null ? `Line ${number(row.position + 1)}` : `Record ${row.record.seq}`;
    byId("detail-state").replaceChildren(...this.stateOf(row.position));
    byId("detail-state").dataset.state =
      this.judged.broken === null
        ? "ok"
        : row.position < this.judged.broken
          ? "ok"
          : row.position === this.judged.broken
            ? "bad"
            : "off";
    byId("fields").replaceChildren(...(row.record === null ? [] : fieldRows(row.record)));
    byId("raw").textContent = row.text.length > 200_000 ? `${row.text.slice(0, 200_000)}…` : row.text;
  }

  stateOf(position) {
    const { broken, text } = this.judged;
    if (broken === null || position < broken) return [icon("ok"), "This record holds"];
    if (position === broken) return [icon("bad"), text];
    return [icon("off"), "Not judged: it comes after the first bad one"];
  }
}

function cell(name, value) {
  return el("span", { className: name }, value === undefined || value === null ? "" : String(value));
}

function fieldRows(record) {
  const others = Object.keys(record).filter((field) => !FIRST.includes(field) && !LAST.includes(field));
  return [...FIRST, ...others.sort(), ...LAST]
    .filter((field) => Object.hasOwn(record, field))
    .flatMap((field) => [
      el("dt", {}, field),
      el("dd", { className: LAST.includes(field) ? "code" : "" }, fieldText(field, record[field])),
    ]);
}

function fieldText(field, value) {
  if (field === "ts_ms") return `${time(value)} (${value})`;
  return typeof value === "string" ? value : JSON.stringify(value);
}

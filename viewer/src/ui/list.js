// A list of any length of which only the visible rows exist. Rows are fetched a page at a time and drawn in a pane that
// stays put while the box around it scrolls.

import { el } from "./dom.js";

const PAGE = 64;
const KEPT_PAGES = 40;
// Browsers stop growing an element somewhere above 15 million pixels; beyond this the scroll bar is scaled.
const MAX_HEIGHT = 8_000_000;

export class VirtualList {
  /** `drawRow(node, data, index)` fills a row; `fetch(from, to)` asks for rows, which come back through `give`. */
  constructor(box, { drawRow, fetch, onOpen }) {
    Object.assign(this, { box, drawRow, fetch, onOpen, count: 0, active: 0, top: 0, seen: 0 });
    this.pages = new Map();
    this.asked = new Set();
    this.pane = el("div", { className: "pane", role: "presentation" });
    this.filler = el("div", { className: "filler", role: "presentation" });
    this.nodes = [];
    box.append(this.pane, this.filler);
    box.addEventListener("scroll", () => this.scrolled(), { passive: true });
    box.addEventListener("keydown", (event) => this.key(event));
    box.addEventListener("click", (event) => this.click(event));
    new ResizeObserver(() => this.resize()).observe(box);
  }

  reset(count) {
    this.count = count;
    this.active = 0;
    this.pages.clear();
    this.asked.clear();
    this.top = 0;
    this.box.scrollTop = 0;
    this.seen = 0;
    this.resize();
  }

  resize() {
    this.rowHeight = Number.parseFloat(getComputedStyle(this.box).getPropertyValue("--row")) || 44;
    this.view = this.box.clientHeight;
    this.real = this.count * this.rowHeight;
    this.filler.style.height = `${Math.max(0, Math.min(this.real, MAX_HEIGHT) - this.view)}px`;
    this.pane.style.height = `${this.view}px`;
    this.draw();
  }

  get end() {
    return Math.max(0, this.real - this.view);
  }

  /** A small move is a move by so many pixels; a large one is a jump to that part of the list. */
  scrolled() {
    const position = this.box.scrollTop;
    const scale = this.real > MAX_HEIGHT;
    const room = this.box.scrollHeight - this.view;
    if (!scale) this.top = position;
    else if (position <= 0) this.top = 0;
    else if (position >= room - 1) this.top = this.end;
    else if (Math.abs(position - this.seen) < this.view * 2)
      this.top = clamp(this.top + position - this.seen, 0, this.end);
    else this.top = (position / room) * this.end;
    this.seen = position;
    this.draw();
    if (scale) {
      clearTimeout(this.settling);
      this.settling = setTimeout(() => this.settle(), 180);
    }
  }

  /** Puts the scroll bar where the rows are, once the hand is off it. */
  settle() {
    const room = this.box.scrollHeight - this.view;
    this.seen = Math.round(this.end === 0 ? 0 : (this.top / this.end) * room);
    if (this.top > 0 && this.top < this.end) this.seen = clamp(this.seen, 1, room - 2);
    this.box.scrollTop = this.seen;
  }

  moveTo(index, { focus = false } = {}) {
    if (this.count === 0) return;
    this.active = clamp(index, 0, this.count - 1);
    const y = this.active * this.rowHeight;
    if (y < this.top) this.top = y;
    else if (y + this.rowHeight > this.top + this.view) this.top = y + this.rowHeight - this.view;
    this.top = clamp(this.top, 0, this.end);
    this.settle();
    this.draw();
    if (focus) this.box.focus({ preventScroll: true });
  }

  key(event) {
    const page = Math.max(1, Math.floor(this.view / this.rowHeight) - 1);
    const moves = {
      ArrowDown: 1,
      ArrowUp: -1,
      PageDown: page,
      PageUp: -page,
      Home: -Infinity,
      End: Infinity,
    };
    if (event.key in moves) {
      event.preventDefault();
      this.moveTo(this.active + moves[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      if (this.count > 0) this.onOpen(this.active);
    }
  }

  click(event) {
    const row = event.target.closest("[data-index]");
    if (row === null) return;
    this.active = Number(row.dataset.index);
    this.draw();
    this.onOpen(this.active);
  }

  give(from, rows) {
    const page = Math.floor(from / PAGE);
    this.asked.delete(page);
    this.pages.delete(page);
    this.pages.set(page, rows);
    for (const old of this.pages.keys()) {
      if (this.pages.size <= KEPT_PAGES) break;
      this.pages.delete(old);
    }
    this.draw();
  }

  /** The row's data, or undefined while it is on its way. */
  at(index) {
    const page = Math.floor(index / PAGE);
    const rows = this.pages.get(page);
    if (rows === undefined && !this.asked.has(page) && index < this.count) {
      this.asked.add(page);
      this.fetch(page * PAGE, Math.min(this.count, (page + 1) * PAGE));
    }
    return rows?.[index % PAGE];
  }

  draw() {
    const first = Math.floor(this.top / this.rowHeight);
    const needed =
      this.count === 0 ? 0 : Math.min(this.count - first, Math.ceil(this.view / this.rowHeight) + 1);
    while (this.nodes.length < needed) {
      const node = el("div", { className: "row", role: "option" });
      this.nodes.push(node);
      this.pane.append(node);
    }
    this.nodes.forEach((node, i) => {
      node.hidden = i >= needed;
      if (node.hidden) return;
      const index = first + i;
      node.id = `row-${index}`;
      node.dataset.index = index;
      node.style.transform = `translateY(${index * this.rowHeight - this.top}px)`;
      node.setAttribute("aria-posinset", index + 1);
      node.setAttribute("aria-setsize", this.count);
      node.setAttribute("aria-selected", index === this.active);
      this.drawRow(node, this.at(index), index);
    });
    if (this.count > 0) this.box.setAttribute("aria-activedescendant", `row-${this.active}`);
    else this.box.removeAttribute("aria-activedescendant");
  }
}

function clamp(value, low, high) {
  return Math.min(high, Math.max(low, value));
}

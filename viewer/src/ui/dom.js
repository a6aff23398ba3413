// Building the page. Text from files enters only as text nodes and attribute values: nothing here parses markup.

const SVG = "http://www.w3.org/2000/svg";
const PATHS = {
  ok: "M5 12.5l4.5 4.5L19 7.5",
  bad: "M6 6l12 12M18 6L6 18",
  off: "M6 12h12",
  partial: "M12 6v7M12 17v.5",
  close: "M6 6l12 12M18 6L6 18",
  left: "M14 6l-6 6 6 6",
  right: "M10 6l6 6-6 6",
};

/** An element with properties, attributes (`aria-*`, `data-*`, `role`) and children; strings become text. */
export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined) continue;
    if (name.includes("-") || name === "role") node.setAttribute(name, value);
    else node[name] = value;
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/** A decorative icon; what it means is always said in words beside it. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("aria-hidden", "true");
  svg.classList.add("icon");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

export const byId = (id) => document.getElementById(id);

export function show(node, visible) {
  node.hidden = !visible;
}

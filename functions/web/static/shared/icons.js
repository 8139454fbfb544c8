// The page's icons: 24-unit stroke paths, drawn in the colour of the text beside them.

const PATHS = {
  add: "M12 5v14M5 12h14",
  alert: "M12 8.5v4.5M12 16.5v.01M10.3 4 2.9 17a2 2 0 0 0 1.7 3h14.8a2 2 0 0 0 1.7-3L13.7 4a2 2 0 0 0-3.4 0Z",
  approximately: "M5 10c2.5-2.5 4.5-2.5 7 0s4.5 2.5 7 0M5 15.5c2.5-2.5 4.5-2.5 7 0s4.5 2.5 7 0",
  attach: "M20 11.5 12.2 19.3a5 5 0 0 1-7-7l8-8a3.3 3.3 0 0 1 4.7 4.7l-8 8a1.7 1.7 0 0 1-2.4-2.4L14.7 7.5",
  check: "m5 12.5 4.7 4.7L19 7.5",
  close: "M6 6l12 12M18 6 6 18",
  copy: "M9 9h10.5v10.5H9zM15 9V4.5H4.5V15H9",
  delete: "M4.5 7h15M9.5 7V4.5h5V7M6.5 7l.8 12.5h9.4L17.5 7M10 11v5M14 11v5",
  detach: "M9.5 14.5l5-5M7 12l-2 2a3.5 3.5 0 0 0 5 5l2-2M12 7l2-2a3.5 3.5 0 0 1 5 5l-2 2",
  document: "M6.5 3.5h7.5l4 4v13H6.5zM14 3.5v4h4M9.5 12.5h5M9.5 16h5",
  down: "M12 5v13M6.5 12.5 12 18l5.5-5.5",
  download: "M12 4v11M7.5 10.5 12 15l4.5-4.5M5 19.5h14",
  edit: "m4.5 19.5.8-3.8L16 5l3 3L8.3 18.7z",
  filter: "M4.5 7h15M7.5 12h9M10.5 17h3",
  info: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17ZM12 11v5.5M12 7.8v.01",
  key: "M8.5 11.5a4 4 0 1 0 0 8 4 4 0 0 0 0-8ZM11.5 12.5l8-8M16 8l3 3",
  keyboard: "M3.5 6.5h17v11h-17zM7 10v.01M10.3 10v.01M13.7 10v.01M17 10v.01M8 14h8",
  thumbDown: "M7.5 13.5V4.5h9.3l2.7 7.2v1.8h-5.4l.9 4.9-1.4 1.6-5.1-6.5H4.5v-9h3",
  thumbUp: "M7.5 10.5v9h9.3l2.7-7.2v-1.8h-5.4l.9-4.9L13.6 4 8.5 10.5h-4v9h3",
  theme: "M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17ZM12 3.5v17",
  language: "M3.5 12h17M12 3.5c5 5.5 5 11.5 0 17M12 3.5c-5 5.5-5 11.5 0 17M12 3.5a8.5 8.5 0 1 0 0 17 8.5 8.5 0 0 0 0-17Z",
  leave: "M13.5 4.5H5.5v15h8M10 12h10.5M17 8.5l3.5 3.5-3.5 3.5",
  left: "m14.5 6-6 6 6 6",
  note: "M5 4.5h14v10l-5 5H5zM19 14.5h-5v5M8.5 9h7M8.5 12.5h4",
  notebook: "M7 3.5h11.5v17H7zM7 3.5a2 2 0 0 0-2 2v13a2 2 0 0 0 2 2M10.5 8h4.5M10.5 11.5h4.5",
  outline: "M4.5 6.5h15M7.5 12h12M10.5 17.5h9",
  quote: "M9.5 7.5C6.8 8.2 5.5 10 5.5 13v3.5h4.5v-4.5H7.8M18 7.5c-2.7.7-4 2.5-4 5.5v3.5h4.5v-4.5h-2.2",
  restore: "M4.5 9.5h10a5 5 0 0 1 0 10H9M4.5 9.5 8.5 5.5M4.5 9.5l4 4",
  right: "m9.5 6 6 6-6 6",
  search: "M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12ZM15 15l5 5",
  send: "M12 19V5.5M6 11.5l6-6 6 6",
  settings: "M4.5 7.5h9M17.5 7.5h2M4.5 16.5h2M10.5 16.5h9M15.5 5.5a2 2 0 1 0 0 4 2 2 0 0 0 0-4ZM8.5 14.5a2 2 0 1 0 0 4 2 2 0 0 0 0-4Z",
  stop: "M7.5 7.5h9v9h-9z",
  retry: "M19 12a7 7 0 1 1-2.2-5.1M19 4v4h-4",
  unverified: "M9.3 9.3a2.8 2.8 0 1 1 4 2.6c-.9.4-1.3 1-1.3 2M12 17.2v.01",
  upload: "M12 16V5M7.5 9.5 12 5l4.5 4.5M5 19.5h14",
  zoomIn: "M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12ZM15 15l5 5M10.5 8v5M8 10.5h5",
  zoomOut: "M10.5 4.5a6 6 0 1 0 0 12 6 6 0 0 0 0-12ZM15 15l5 5M8 10.5h5",
};

const SVG = "http://www.w3.org/2000/svg";

/** A decorative icon; the control around it carries the name. */
export function icon(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("viewBox", "0 0 24 24");
  svg.setAttribute("class", "icon");
  svg.setAttribute("aria-hidden", "true");
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

/** Put the icons where the HTML asks for them with `data-icon`. */
export function drawIcons(root = document) {
  for (const node of root.querySelectorAll("[data-icon]")) {
    if (!node.querySelector(":scope > .icon")) node.prepend(icon(node.dataset.icon));
  }
}

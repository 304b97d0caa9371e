"use strict";
const filters = document.getElementById("filters");
if (filters) {
  filters.hidden = false;
  const boxes = [...filters.querySelectorAll("input")];
  filters.addEventListener("change", () => {
    const shown = new Set(boxes.filter((box) => box.checked).map((box) => box.value));
    for (const piece of document.querySelectorAll("[data-kind]")) {
      piece.hidden = !shown.has(piece.dataset.kind);
    }
  });
}

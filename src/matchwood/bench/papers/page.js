"use strict";
// A button of the legend shows or hides its series.  In a picture the arrow keys go from point to point
// (left, right) and from series to series (up, down); the line below says what stands there.
for (const panel of document.querySelectorAll(".panel")) {
  const say = panel.querySelector("output");
  for (const button of panel.querySelectorAll(".legend button")) {
    button.addEventListener("click", () => {
      const on = button.getAttribute("aria-pressed") !== "true";
      button.setAttribute("aria-pressed", String(on));
      for (const group of panel.querySelectorAll(`g.series[data-series="${button.dataset.series}"]`)) {
        group.classList.toggle("hidden", !on);
      }
    });
  }
  for (const svg of panel.querySelectorAll("svg")) {
    let line = 0, at = -1;
    const read = (mark) => {
      for (const old of panel.querySelectorAll(".mark")) old.classList.remove("mark");
      if (!mark) return;
      mark.classList.add("mark");
      say.textContent = mark.querySelector("title").textContent;
    };
    svg.addEventListener("keydown", (event) => {
      const groups = [...svg.querySelectorAll("g.series:not(.hidden)")].filter((g) => g.querySelector("[data-i]"));
      if (!groups.length || !event.key.startsWith("Arrow")) return;
      event.preventDefault();
      if (event.key === "ArrowDown") line += 1;
      if (event.key === "ArrowUp") line -= 1;
      line = (line + groups.length) % groups.length;
      const points = [...groups[line].querySelectorAll("[data-i]")];
      points.sort((a, b) => Number(a.dataset.i) - Number(b.dataset.i));
      if (event.key === "ArrowRight") at += 1;
      if (event.key === "ArrowLeft") at -= 1;
      at = Math.max(0, Math.min(points.length - 1, at));
      read(points[at]);
    });
    svg.addEventListener("click", (event) => {
      if (event.target.dataset && event.target.dataset.i) read(event.target);
    });
  }
}

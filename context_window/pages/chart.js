"use strict";
// Charts: arrow keys and the pointer walk over the points, and the line below the chart shows the values of one. The page may replace a
// chart at any time, so everything listens at the document.
(() => {
  const pointsOf = (chart) => [...chart.querySelectorAll(".point")];

  const choose = (point) => {
    const chart = point.closest(".chart");
    for (const other of chart.querySelectorAll(".point.chosen")) other.classList.remove("chosen");
    point.classList.add("chosen");
    chart.querySelector(".readout").textContent = point.getAttribute("aria-label");
  };

  // Tab stops once at a chart: at the point that was chosen last, else at the newest.
  const prepare = () => {
    for (const chart of document.querySelectorAll(".chart")) {
      const points = pointsOf(chart);
      const stop = points.find((point) => point.classList.contains("chosen")) || points[points.length - 1];
      for (const point of points) point.setAttribute("tabindex", point === stop ? "0" : "-1");
    }
  };

  document.addEventListener("keydown", (event) => {
    const point = event.target.closest && event.target.closest(".point");
    if (!point || event.ctrlKey || event.altKey || event.metaKey) return;
    const points = pointsOf(point.closest(".chart"));
    const place = points.indexOf(point);
    const target = { ArrowLeft: place - 1, ArrowRight: place + 1, Home: 0, End: points.length - 1 }[event.key];
    if (target === undefined) return;
    event.preventDefault();
    const next = points[Math.max(0, Math.min(points.length - 1, target))];
    next.setAttribute("tabindex", "0");
    next.focus();
    if (next !== point) point.setAttribute("tabindex", "-1");
  });
  document.addEventListener("focusin", (event) => {
    const point = event.target.closest && event.target.closest(".point");
    if (point) choose(point);
  });
  document.addEventListener("pointerover", (event) => {
    const point = event.target.closest && event.target.closest(".point");
    if (point) choose(point);
  });
  document.addEventListener("charts-replaced", prepare);
  prepare();
})();

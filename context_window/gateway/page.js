"use strict";
// Asks the gateway every two seconds for the part of the page that changes, and puts it in place. It draws nothing itself. What has the
// focus keeps it, what is open stays open, and what is scrolled stays where it is.
(() => {
  const PERIOD = 2000;
  const state = document.getElementById("state");
  const pause = document.getElementById("pause");

  const say = (text, isBad) => {
    if (state.textContent !== text) state.textContent = text;
    state.className = isBad ? "bad" : "quiet";
  };

  const pointLike = (point) => {
    const chart = document.getElementById(point.closest(".chart").id);
    const points = chart ? [...chart.querySelectorAll(".point")] : [];
    const label = point.getAttribute("aria-label");
    return points.find((other) => other.getAttribute("aria-label") === label) || points[points.length - 1];
  };

  const replace = (html) => {
    const old = document.querySelector("main");
    const fresh = new DOMParser().parseFromString(html, "text/html").querySelector("main");
    if (!fresh) return;
    const focused = old.contains(document.activeElement) ? document.activeElement : null;
    const open = [...old.querySelectorAll("details[open]")].map((details) => details.id);
    const scrolled = [...old.querySelectorAll(".scroll")].map((area) => [area.scrollLeft, area.scrollTop]);
    const chosen = [...old.querySelectorAll(".point.chosen")];
    old.replaceWith(document.adoptNode(fresh));
    for (const id of open) document.getElementById(id)?.setAttribute("open", "");
    [...fresh.querySelectorAll(".scroll")].forEach((area, place) => {
      if (scrolled[place]) [area.scrollLeft, area.scrollTop] = scrolled[place];
    });
    for (const point of chosen) {
      const same = pointLike(point);
      if (!same) continue;
      same.classList.add("chosen");
      same.closest(".chart").querySelector(".readout").textContent = same.getAttribute("aria-label");
    }
    document.dispatchEvent(new Event("charts-replaced"));
    const again = focused && (focused.classList.contains("point") ? pointLike(focused) : sameIn(fresh, old, focused));
    if (again) again.focus({ preventScroll: true });
  };

  // The element at the same place among all that can have the focus, or the one with the same id.
  const FOCUSABLE = "a[href], summary, [tabindex='0']:not(.point)";
  const sameIn = (fresh, old, element) => {
    if (element.id) return document.getElementById(element.id);
    return [...fresh.querySelectorAll(FOCUSABLE)][[...old.querySelectorAll(FOCUSABLE)].indexOf(element)];
  };

  const update = async () => {
    if (document.hidden || pause.getAttribute("aria-pressed") === "true") return;
    const { version, conversation } = document.querySelector("main").dataset;
    try {
      const answer = await fetch(`/live?version=${version}&conversation=${conversation}`, { cache: "no-store" });
      if (answer.status === 200) replace(await answer.text());
      say(answer.ok ? "Live" : "The gateway refuses to answer", !answer.ok);
    } catch {
      say("The gateway does not answer", true);
    }
  };

  pause.addEventListener("click", () => {
    const isPaused = pause.getAttribute("aria-pressed") !== "true";
    pause.setAttribute("aria-pressed", String(isPaused));
    say(isPaused ? "Paused" : "Live", false);
    if (!isPaused) update();
  });

  const loop = async () => {
    await update();
    setTimeout(loop, PERIOD);
  };
  setTimeout(loop, PERIOD);
})();

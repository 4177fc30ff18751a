// Shows the slot under the pointer. The page says everything that matters without this.
"use strict";
const runs = JSON.parse(document.getElementById("runs").textContent);
for (const figure of document.querySelectorAll("figure[data-run]")) {
  const { at, said } = runs[Number(figure.dataset.run)];
  const chart = figure.querySelector("svg.timeline");
  const cursor = chart.querySelector(".cursor");
  const words = figure.querySelector(".hover");
  if (at.length === 0) continue;
  chart.addEventListener("pointermove", (event) => {
    const box = chart.getBoundingClientRect();
    const x = (event.clientX - box.left) / box.width;
    let nearest = 0;
    for (let i = 1; i < at.length; i++) {
      if (Math.abs(at[i] - x) < Math.abs(at[nearest] - x)) nearest = i;
    }
    cursor.setAttribute("x1", `${100 * at[nearest]}%`);
    cursor.setAttribute("x2", `${100 * at[nearest]}%`);
    words.textContent = said[nearest];
    figure.classList.add("hovered");
  });
  chart.addEventListener("pointerleave", () => figure.classList.remove("hovered"));
}

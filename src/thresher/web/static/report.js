// Draws the figures that the report carries, in the reader's scheme; on paper in the light one.
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
function draw() {
  figures[dark.matches ? "dark" : "light"].forEach((figure, i) =>
    Plotly.react(`figure-${i}`, figure.data, { ...figure.layout, title: undefined, template: undefined, margin: { ...figure.layout.margin, t: i ? 26 : 8 } }, { displayModeBar: false, responsive: true }));
}
dark.addEventListener("change", draw);
draw();

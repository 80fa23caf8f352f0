// Draws the report's figures in the colours of the reader's scheme, and on paper in the light one.
const figures = JSON.parse(document.getElementById("figures").textContent);
const dark = matchMedia("screen and (prefers-color-scheme: dark)");
// On a screen that is too narrow for the names of the arms, the axis has their ranks.
function fittingAxis(axis, { clientWidth }) {
  return axis.tickvals && clientWidth < 20 * axis.tickvals.length ? { ...axis, tickvals: undefined, ticktext: undefined, title: { ...axis.title, text: "rank" } } : axis;
}
function draw() {
  figures[dark.matches ? "dark" : "light"].forEach((figure, i) =>
    Plotly.react(`figure-${i}`, figure.data, { ...figure.layout, xaxis: fittingAxis(figure.layout.xaxis, document.getElementById(`figure-${i}`)), title: undefined, template: undefined, margin: { ...figure.layout.margin, t: i ? 26 : 8 } }, { displayModeBar: false, responsive: true }));
}
dark.addEventListener("change", draw);
draw();

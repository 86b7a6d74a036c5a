// Rows of a listing that are clicked are added up by the program that serves the page.
const bar = document.querySelector(".chosen"), chosen = new Set();
const say = (text) => { bar.querySelector("output").textContent = text; };
const mark = () => { for (const row of document.querySelectorAll(".listing tr[data-row]")) {
  row.setAttribute("aria-selected", chosen.has(row.dataset.row)); } };
const ask = async () => {
  bar.hidden = chosen.size === 0;
  mark();
  if (!chosen.size) return;
  say("…");
  const asked = [...chosen].join(",");
  const found = await (await fetch(`/sum?rows=${asked}`)).json();
  if (asked !== [...chosen].join(",")) return;
  const said = (n) => n.toLocaleString("en-US");
  say(found.error ?? `${said(found.counts)} count${found.counts === 1 ? "" : "s"}: released ${said(found.released)}; the true sum is from ${said(found.low)} to ${said(found.high)} in 95 of 100 releases.`);
};
const turn = (row) => { chosen.delete(row) || chosen.add(row); ask(); };
const body = document.querySelector(".listing tbody");
body.addEventListener("click", (event) => { const row = event.target.closest("tr[data-row]"); if (row) turn(row.dataset.row); });
body.addEventListener("keydown", (event) => { if (event.key === "Enter" || event.key === " ") {
  const row = event.target.closest("tr[data-row]"); if (row) { event.preventDefault(); turn(row.dataset.row); } } });
bar.querySelector("button").onclick = () => { chosen.clear(); ask(); };
new MutationObserver(() => { for (const row of body.querySelectorAll("tr[data-row]")) row.tabIndex = 0; mark(); }).observe(body, { childList: true });
for (const row of body.querySelectorAll("tr[data-row]")) row.tabIndex = 0;

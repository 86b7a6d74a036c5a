// Every listing of the page: unpacks its rows, and shows those that are searched for, page by page.
for (const box of document.querySelectorAll(".listing")) (async () => {
  const find = (what) => box.querySelector(what);
  const bytes = Uint8Array.from(atob(JSON.parse(find(".packed").textContent)), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { labels, numbers } = JSON.parse(await new Response(stream).text());
  for (const each of labels) { let code = 0; each.codes = each.steps.map((step) => (code += step)); }
  const rows = numbers[0].values.length, page = Number(box.dataset.page);
  const lower = labels.map((each) => each.labels.map((label) => label.toLowerCase()));
  const said = (value, places) => (value / 10 ** places).toLocaleString("en-US",
    { minimumFractionDigits: places, maximumFractionDigits: places });
  let shown = null, first = 0;
  const count = () => (shown ? shown.length : rows);

  const cell = (kind, text, number) => {
    const made = document.createElement(kind);
    made.textContent = text;
    if (number) made.className = "n";
    if (kind === "th") made.scope = "row";
    return made;
  };
  const line = (i) => {
    const tr = document.createElement("tr");
    tr.dataset.row = i;
    labels.forEach((each, k) => tr.append(cell(k ? "td" : "th", each.codes[i] < 0 ? "" : each.labels[each.codes[i]])));
    for (const each of numbers) {
      const low = said(each.values[i], each.places);
      tr.append(cell("td", each.widths ? `${low} to ${said(each.values[i] + each.widths[i], each.places)}` : low, true));
    }
    return tr;
  };
  const draw = (all) => {
    const last = all ? count() : Math.min(first + page, count());
    const from = all ? 0 : first;
    const lines = [];
    for (let k = from; k < last; k++) lines.push(line(shown ? shown[k] : k));
    find("tbody").replaceChildren(...lines);
    find(".place").textContent = count() ? `${(from + 1).toLocaleString("en-US")} to ${last.toLocaleString("en-US")} of ${count().toLocaleString("en-US")}` : "nothing found";
    find(".back").disabled = from === 0;
    find(".on").disabled = last === count();
  };
  // A row is found where each word is part of one of its labels.
  const search = (text) => {
    const words = text.toLowerCase().split(/\s+/).filter(Boolean);
    first = 0;
    shown = null;
    if (words.length) {
      const hits = words.map((word) => lower.map((own) => new Set(own.flatMap((label, k) => (label.includes(word) ? [k] : [])))));
      shown = [];
      for (let i = 0; i < rows; i++)
        if (hits.every((hit) => hit.some((set, k) => set.has(labels[k].codes[i])))) shown.push(i);
    }
    find(".found").textContent = words.length ? `${count().toLocaleString("en-US")} of ${rows.toLocaleString("en-US")}` : "";
    draw();
  };
  find(".back").onclick = () => { first -= page; draw(); };
  find(".on").onclick = () => { first += page; draw(); };
  find("input").oninput = (event) => search(event.target.value);
  addEventListener("beforeprint", () => draw(count() <= 2000));
  addEventListener("afterprint", () => draw());
  for (const tool of box.querySelectorAll(".tools")) tool.hidden = false;
  draw();
  box.dataset.ready = "";
})();

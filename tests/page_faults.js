// What a person would find wrong with a page: run in the browser, returns a list of sentences.
(smallest) => {
  const faults = [];
  const root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`wider than the screen: ${root.scrollWidth} > ${root.clientWidth}`);
  if (!root.lang) faults.push("no lang");
  if (!document.title) faults.push("no title");
  for (const mark of ["main", "header", "footer"])
    if (document.querySelectorAll(`body > ${mark}`).length !== 1) faults.push(`not one ${mark}`);

  const heads = [...document.querySelectorAll("h1, h2, h3, h4")].map((each) => Number(each.tagName[1]));
  if (heads.filter((each) => each === 1).length !== 1) faults.push("not one h1");
  heads.forEach((each, i) => { if (i && each > heads[i - 1] + 1) faults.push(`heading h${each} after h${heads[i - 1]}`); });

  for (const svg of document.querySelectorAll("svg"))
    if (!svg.parentElement.closest("svg") && svg.getAttribute("aria-hidden") !== "true"
      && !(svg.getAttribute("role") === "img" && svg.getAttribute("aria-label") && svg.querySelector("title")))
      faults.push(`svg without words: ${svg.outerHTML.slice(0, 80)}`);
  for (const th of document.querySelectorAll("th")) if (!th.scope) faults.push(`th without scope: ${th.textContent}`);

  const light = (color) => {
    const parts = color.match(/[\d.]+/g).slice(0, 3).map((each) => Number(each) / 255)
      .map((each) => (each <= 0.04045 ? each / 12.92 : ((each + 0.055) / 1.055) ** 2.4));
    return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
  };
  const behind = (element) => {
    for (let each = element; each; each = each.parentElement) {
      const color = getComputedStyle(each).backgroundColor;
      if (!/, 0\)$|transparent/.test(color)) return color;
    }
    return "rgb(255, 255, 255)";
  };

  const seen = new Map();
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim();
    const element = walker.currentNode.parentElement;
    if (!text || element.closest("title, desc, style, .unseen")) continue;
    const box = element.getBoundingClientRect();
    if (!box.width) continue;
    const style = getComputedStyle(element);
    const drawn = element instanceof SVGElement;
    const size = parseFloat(style.fontSize) * (drawn ? element.getScreenCTM().a : 1);
    if (size < smallest) faults.push(`${size.toFixed(1)} px: ${text.slice(0, 40)}`);
    const [a, b] = [light(drawn ? style.fill : style.color), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faults.push(`contrast ${contrast.toFixed(1)}: ${text.slice(0, 40)}`);
    if (!drawn) continue;
    if (box.left < 0 || box.right > root.clientWidth) faults.push(`off the screen: ${text}`);
    const line = [element.ownerSVGElement, Math.round(box.top)];
    for (const other of seen.get(line[0]) ?? [])
      if (other.top === line[1] && box.left < other.right && other.left < box.right)
        faults.push(`overlaps: ${other.text} and ${text}`);
    seen.set(line[0], [...(seen.get(line[0]) ?? []), { top: line[1], left: box.left, right: box.right, text }]);
  }
  const labels = [...document.querySelectorAll(".rows .label")].map((each) => each.getBoundingClientRect());
  labels.forEach((box, i) => { if (i && box.height && box.top < labels[i - 1].bottom - 1 && box.bottom > labels[i - 1].top + 1)
    faults.push(`labels ${i} and ${i + 1} overlap`); });
  return faults;
}

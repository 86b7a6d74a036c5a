// What would keep a person from using a page: run in the browser, returns a list of sentences.
() => {
  const faults = [], root = document.documentElement;
  if (root.scrollWidth > root.clientWidth) faults.push(`wider than the screen by ${root.scrollWidth - root.clientWidth}`);
  if (document.querySelectorAll("h1").length !== 1) faults.push("not one h1");
  for (const each of document.querySelectorAll("input:not([type=hidden]):not([hidden]), select"))
    if (!each.labels.length) faults.push(`no label: ${each.name}`);
  for (const each of document.querySelectorAll("button, a, summary, [role=img]")) {
    const name = each.getAttribute("aria-label") || each.textContent.trim();
    if (!name) faults.push(`no name: ${each.outerHTML.slice(0, 80)}`);
  }
  for (const each of document.querySelectorAll("[aria-describedby]"))
    for (const id of each.getAttribute("aria-describedby").split(" "))
      if (!document.getElementById(id)) faults.push(`describedby nothing: ${id}`);
  for (const each of document.querySelectorAll("button, .button, input:not([type=hidden]):not([hidden]), select, nav a")) {
    const box = each.getBoundingClientRect();
    if (!box.width || each.type === "checkbox") continue;
    if (box.height < 30) faults.push(`too low to touch, ${box.height}: ${each.textContent || each.name}`);
    if (box.right > root.clientWidth + 1 || box.left < -1) faults.push(`off the screen: ${each.textContent || each.name}`);
  }
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
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const text = walker.currentNode.textContent.trim(), element = walker.currentNode.parentElement;
    if (!text || element.closest("svg, title, option, .unseen, .skip, :disabled")) continue;
    if (!element.getBoundingClientRect().width) continue;
    const style = getComputedStyle(element);
    const [a, b] = [light(style.color), light(behind(element))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) faults.push(`contrast ${contrast.toFixed(1)}: ${text.slice(0, 40)}`);
    if (parseFloat(style.fontSize) < 12) faults.push(`${style.fontSize}: ${text.slice(0, 40)}`);
  }
  return faults;
}

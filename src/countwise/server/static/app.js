// Small help: chips write into fields, messages mark the fields they are about, and trouble is said.
"use strict";

document.addEventListener("click", (event) => {
  const chip = event.target.closest("button.chip");
  if (!chip) return;
  const field = document.getElementById(chip.dataset.into);
  if (chip.dataset.replace !== undefined) {
    field.value = chip.dataset.replace;
  } else {
    const start = field.selectionStart ?? field.value.length;
    const before = field.value.slice(0, start);
    const after = field.value.slice(field.selectionEnd ?? start);
    field.value = joined(field.id, before, chip.dataset.insert) + after;
  }
  field.focus();
  field.dispatchEvent(new Event("change", { bubbles: true }));
});

// The first column of a model is its response, the others are terms.
function joined(field, before, name) {
  const text = before.trimEnd();
  if (!text) return field === "model" ? name + " ~ " : name;
  if (field === "model" && !/[~+*:(\-]$/.test(text)) return text + (text.includes("~") ? " + " : " ~ ") + name;
  return text + " " + name;
}

document.addEventListener("htmx:afterSettle", () => {
  for (const message of document.querySelectorAll("form.ask .error")) {
    const field = document.getElementById(message.id.replace("error-", ""));
    if (!field) continue;
    if (message.textContent.trim()) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  }
});

// A refusal of a request in the background is put there by htmx; silence of the server by this.
const trouble = (text) => { document.getElementById("trouble").textContent = text; };
document.addEventListener("htmx:sendError", () => trouble("The server can not be reached at the moment."));
document.addEventListener("htmx:afterRequest", (event) => { if (event.detail.successful) trouble(""); });

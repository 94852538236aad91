"use strict";
// All that is written here also works without it; a click copies code, two keys walk the findings.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button.copy");
  if (!button) return;
  const code = button.dataset.copy;
  try {
    await navigator.clipboard.writeText(code);
  } catch {
    // A page opened from a file may not use the clipboard: select the text instead.
    const range = document.createRange();
    range.selectNodeContents(button.previousElementSibling);
    getSelection().removeAllRanges();
    getSelection().addRange(range);
    button.textContent = "Selected";
    return;
  }
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
});
document.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || !"jk".includes(event.key)) return;
  const cards = [...document.querySelectorAll(".card")];
  if (!cards.length) return;
  const top = (card) => card.getBoundingClientRect().top;
  const next = event.key === "j"
    ? cards.find((card) => top(card) > 24)
    : cards.reverse().find((card) => top(card) < -24);
  next?.scrollIntoView();
});

// Names the search dialog, and lets the keyboard reach code, tables and drawings that are wider than the page.
(function () {
  const dialog = document.querySelector("[data-md-component=search]");
  if (dialog) dialog.setAttribute("aria-label", "Search");

  function mark() {
    for (const box of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset p:has(> img)")) {
      if (box.scrollWidth > box.clientWidth) box.tabIndex = 0;
      else box.removeAttribute("tabindex");
    }
  }
  addEventListener("load", mark);
  addEventListener("resize", mark);
})();

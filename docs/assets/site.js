// Names the search dialog, and lets the keyboard reach code, tables and pictures that are wider than the page.
(function () {
  const dialog = document.querySelector("[data-md-component=search]");
  if (dialog) dialog.setAttribute("aria-label", "Search");

  function mark() {
    for (const box of document.querySelectorAll(".md-typeset pre > code, .md-typeset__scrollwrap, .md-typeset p:has(> img)")) {
      const scrolls = box.scrollWidth > box.clientWidth;
      if (scrolls && box.tabIndex !== 0) box.tabIndex = 0;
      if (!scrolls && box.hasAttribute("tabindex")) box.removeAttribute("tabindex");
    }
  }
  addEventListener("load", mark);
  addEventListener("resize", mark);
  // The theme removes tabindex on screens without a pointer, where a keyboard can be attached as well.
  new MutationObserver(mark).observe(document.body, { subtree: true, attributeFilter: ["tabindex"] });
})();

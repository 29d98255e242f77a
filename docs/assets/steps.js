// Turns the tables of recorded generations into buttons: one for each token, with its details below.
// Without JavaScript the tables remain.
document.addEventListener("DOMContentLoaded", () => {
  for (const place of document.querySelectorAll("div.recorded")) {
    const table = place.querySelector("table");
    if (!table) continue;
    const rows = [...table.tBodies[0].rows].map((row) => [...row.cells].map((cell) => cell.textContent));
    const names = [...table.tHead.rows[0].cells].map((cell) => cell.textContent);
    const view = document.createElement("div");
    view.className = "steps";
    const detail = document.createElement("div");
    detail.className = "detail";
    detail.setAttribute("aria-live", "polite");
    const buttons = rows.map((cells, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.className = "token" + (cells[2] === "forced" ? " forced" : parseFloat(cells[4]) >= 50 ? " removed" : "");
      button.textContent = JSON.parse(cells[1]);
      if (!button.textContent.trim()) button.setAttribute("aria-label", "white space " + cells[1]);
      button.setAttribute("aria-pressed", "false");
      button.addEventListener("click", () => show(index));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (step && buttons[index + step]) buttons[index + step].focus(), show(index + step);
      });
      view.append(button);
      return button;
    });
    function show(index) {
      buttons.forEach((button, other) => button.setAttribute("aria-pressed", String(other === index)));
      detail.replaceChildren(
        ...rows[index].map((value, column) => {
          const line = document.createElement("div");
          line.textContent = names[column] + ": " + value;
          return line;
        }),
      );
    }
    view.append(detail);
    const whole = document.createElement("details");
    const summary = document.createElement("summary");
    summary.textContent = "All tokens as a table";
    whole.append(summary, table.parentElement === place ? table : table.parentElement);
    place.append(view, whole);
    show(0);
  }
});

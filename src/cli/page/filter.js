(() => {
  const find = document.getElementById("find");
  const rows = [...document.querySelectorAll("tr[data-node]")];
  const texts = rows.map((row) => row.textContent.toLowerCase());
  find.hidden = false;
  find.addEventListener("input", () => {
    const wanted = find.value.toLowerCase();
    rows.forEach((row, at) => { row.hidden = !texts[at].includes(wanted); });
  });
})();

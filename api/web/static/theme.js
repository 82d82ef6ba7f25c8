// The theme: the system's, unless the reader has chosen. Runs before the page is drawn.
(() => {
  const key = "tailrace-theme";
  const chosen = localStorage.getItem(key);
  if (chosen === "dark" || chosen === "light") document.documentElement.dataset.theme = chosen;

  function isDark() {
    const forced = document.documentElement.dataset.theme;
    return forced ? forced === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function announce() {
    document.dispatchEvent(new Event("themechange"));
  }

  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", announce);
  document.addEventListener("DOMContentLoaded", () => {
    document.getElementById("theme").addEventListener("click", () => {
      const theme = isDark() ? "light" : "dark";
      document.documentElement.dataset.theme = theme;
      localStorage.setItem(key, theme);
      announce();
    });
  });
})();

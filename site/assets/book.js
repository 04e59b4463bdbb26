// Chapters for reading: old addresses go on to the page that has their section, and predictions take
// a guess before they say what comes out. Without scripts both are plain links and folds.
const onward = () => {
  const link = document.getElementById(location.hash.slice(1));
  if (link?.matches("a.ut-moved")) location.replace(link.href);
};
addEventListener("hashchange", onward);
onward();

// As the notebook compares (grader/student/predict.py): no matter the case, blanks, the kind of
// brackets, or where a dtype lives; numbers by their value.
const said = (text) =>
  text.replace(/\s+/g, "").toLowerCase().replace(/[[\]]/g, (mark) => (mark === "[" ? "(" : ")"))
    .replace(/,\)/g, ")").replace(/['"]/g, "").replace(/\btorch\./g, "");
const same = (guess, truth) => {
  const numbers = [Number(guess), Number(truth)];
  if (guess.trim() && truth.trim() && numbers.every(Number.isFinite)) {
    return Math.abs(numbers[0] - numbers[1]) <= 1e-9 * Math.max(...numbers.map(Math.abs));
  }
  return said(guess) === said(truth) || `(${said(guess)})` === said(truth);
};

document.querySelectorAll(".ut-reveal[data-is]").forEach((fold, number) => {
  const form = document.createElement("form");
  form.className = "ut-guess";
  form.innerHTML =
    `<label for="guess-${number}">Your guess</label><input id="guess-${number}" autocomplete="off" ` +
    'autocapitalize="off" spellcheck="false"><button>See what comes out</button><p role="status"></p>';
  const [input, status] = [form.querySelector("input"), form.querySelector("p")];
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const guess = input.value.trim();
    const truth = fold.dataset.is;
    const right = guess !== "" && same(guess, truth);
    form.dataset.right = guess === "" ? "" : right;
    status.textContent = guess && `You predicted ${guess}${right ? ", and so it is." : "."}`;
    fold.open = true;
  });
  fold.classList.add("ut-asked");
  fold.before(form);
});

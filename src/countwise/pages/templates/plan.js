"use strict";
// What the page says at other losses and shares: the closed form of docs/explain/crossed-least-squares.md,
// section 3, where the plan has one; else errors between those of the curve.
(() => {
  const plan = JSON.parse(document.getElementById("plan-data").textContent);
  const NORMAL = 1.959964, LEAST = 1e-25, MOST = 1e25, EXAMPLE = 40;
  const form = plan.form, tables = plan.tables;

  // Variance of noise that loses `rate` a step: of a person's L1 distance in ε, of its square in ρ.
  const laws = {
    geometric: (rate) => 0.5 / Math.sinh(rate / 2) ** 2,
    laplace: (rate) => Math.exp(-rate / 2) * (1 + Math.exp(-rate)) / Math.expm1(-rate) ** 2,
    gaussian: (rate) => {
      const wide = 1 / (2 * rate);
      if (wide > 12) return wide;
      let mass = 1, square = 0;
      for (let k = 1; k < 60; k++) {
        const p = 2 * Math.exp(-k * k / (2 * wide));
        mass += p; square += k * k * p;
      }
      return square / mass;
    },
  };

  // Weighted least squares along the spine, for one combination of parts: mean variance of each level.
  function meanVariances(precision) {
    const { nodes, parents, times } = form, last = nodes.length - 1;
    const upward = [], sums = [];
    for (let level = last; level >= 0; level--) {
      let below = null;
      if (level < last) {
        below = new Float64Array(nodes[level].length);
        upward[level + 1].forEach((value, i) => { below[parents[level][i]] += times[level][i] * value; });
        sums[level] = below;
      }
      upward[level] = nodes[level].map((_, i) => 1 / (precision[level] + (below ? 1 / below[i] : 0)));
    }
    let found = upward[0];
    const means = [found[0]];
    for (let level = 1; level <= last; level++) {
      const above = found;
      found = upward[level].map((own, i) => {
        const parent = parents[level - 1][i], share = own / sums[level - 1][parent];
        return own * (1 - share) + share * share * above[parent];
      });
      let total = 0, weight = 0;
      nodes[level].forEach((count, i) => { total += count * found[i]; weight += count; });
      means.push(total / weight);
    }
    return means;
  }

  function errorsByForm(loss, weights) {
    const whole = weights.reduce((a, b) => a + b, 0), levels = form.nodes.length, parts = form.parts;
    const at = new Float64Array(levels * parts);
    form.measured.forEach((each, i) => {
      const bought = each.reach === 0 ? MOST : weights[i] > 0 ?
        1 / laws[form.law](weights[i] / whole * loss / each.reach) : 0;
      each.gains[0].forEach((place, j) => { at[place] += bought * each.gains[1][j]; });
    });
    const means = new Float64Array(levels * parts);
    for (let part = 0; part < parts; part++) {
      const column = [];
      for (let level = 0; level < levels; level++)
        column.push(Math.min(MOST, Math.max(LEAST, at[level * parts + part])));
      meanVariances(column).forEach((value, level) => { means[level * parts + part] = value; });
    }
    return form.spreads.map(([places, values]) => {
      let sum = 0;
      places.forEach((place, j) => { sum += values[j] * means[place]; });
      return NORMAL * Math.sqrt(sum < 1e-15 ? 0 : sum);
    });
  }

  function errorsByCurve(loss) {
    const xs = plan.curve.losses.map(Math.log), x = Math.log(loss);
    let i = xs.findIndex((each) => each >= x);
    i = i < 0 ? xs.length - 1 : Math.max(i, 1);
    const share = Math.min(1, Math.max(0, (x - xs[i - 1]) / (xs[i] - xs[i - 1])));
    return plan.curve.widths[i].map((high, j) => {
      const low = plan.curve.widths[i - 1][j];
      return low > 0 && high > 0 ? low * (high / low) ** share : high;
    });
  }

  const sliders = [...document.querySelectorAll("[data-measured]")];
  const lossSlider = document.getElementById("loss");
  // Four digits, as the plan below the tables states it.
  const lossNow = () => Number(Math.exp(Number(lossSlider.value)).toPrecision(4));
  const weightsNow = () => sliders.map((each) => Number(each.value));
  const errors = (loss, weights) => form ? errorsByForm(loss, weights) : errorsByCurve(loss);

  const shown = (width) => width > 1e9 ? "not determined" : "±" + width.toLocaleString("en",
    { minimumFractionDigits: 1, maximumFractionDigits: 1 });

  function planText(loss, weights) {
    const lines = [`${plan.unit} = "${loss}"`];
    if (form) {
      lines.push("", "[split]");
      form.measured.forEach((each, i) => {
        if (each.reach > 0 && weights[i] > 0) lines.push(`${JSON.stringify(each.name)} = ${weights[i]}`);
      });
    }
    return lines.join("\n");
  }

  function curves(loss, weights) {
    const lines = [...document.querySelectorAll("[data-curve]")];
    if (!form) return;
    const at = plan.curve.losses.map((each) => errorsByForm(each, weights));
    const [low, high] = plan.axes.y.map(Math.log), [first, last] = plan.axes.x.map(Math.log);
    for (const line of lines) {
      const table = Number(line.dataset.curve);
      line.setAttribute("points", at.map((widths, i) => {
        const x = 100 * (Math.log(plan.curve.losses[i]) - first) / (last - first);
        const y = Math.log(Math.min(Math.max(widths[table], plan.axes.y[0]), plan.axes.y[1]));
        return `${x.toFixed(2)},${(plan.axes.height * (high - y) / (high - low)).toFixed(2)}`;
      }).join(" "));
    }
  }

  function mark(loss) {
    const [first, last] = plan.axes.x.map(Math.log);
    const x = 100 * Math.min(1, Math.max(0, (Math.log(loss) - first) / (last - first)));
    const line = document.getElementById("now");
    for (const end of ["x1", "x2"]) line.setAttribute(end, `${x}%`);
  }

  function update() {
    const loss = lossNow(), weights = weightsNow(), found = errors(loss, weights);
    document.getElementById("loss-text").textContent = loss;
    const whole = weights.reduce((a, b) => a + b, 0);
    sliders.forEach((each, i) => {
      const share = whole > 0 ? weights[i] / whole : 0;
      document.getElementById(`share-${i}`).textContent = `${(100 * share).toFixed(1)}%`;
    });
    document.getElementById("nothing").hidden = whole > 0 || sliders.length === 0;
    tables.forEach((table, i) => {
      const cell = document.getElementById(`width-${i}`), width = found[i];
      cell.textContent = shown(width);
      cell.dataset.width = width;
      cell.classList.toggle("missed", table.within !== null && width > table.within);
      document.getElementById(`example-${i}`).textContent = width > 1e9 ? "–" :
        `${Math.max(0, Math.floor(EXAMPLE - width)).toLocaleString("en")} to ${Math.ceil(EXAMPLE + width).toLocaleString("en")}`;
    });
    document.getElementById("plan-text").textContent = planText(loss, weights);
    curves(loss, weights);
    mark(loss);
  }

  document.querySelectorAll("[data-live]").forEach((each) => { each.hidden = false; });
  document.addEventListener("input", update);
  document.getElementById("reset").addEventListener("click", () => {
    lossSlider.value = lossSlider.defaultValue;
    sliders.forEach((each) => { each.value = each.defaultValue; });
    update();
  });
  update();
})();

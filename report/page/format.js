// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: few digits and a unit. What is absent reads "not known". Durations,
// percents and ranges are the texts of report/quantities.h, so that findings and tables agree.
'use strict';
const report = {};

(() => {
  const kUnknown = 'not known';
  const kDurations = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
  const kSizes = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];

  const isKnown = (value) => typeof value === 'number' && Number.isFinite(value);

  // With so many digits after the point, thousands parted by commas. As in C, a value that lies
  // exactly between two goes to the even digit.
  function fixed(value, digits) {
    if (!isKnown(value)) return kUnknown;
    if (Math.abs(value) >= 1e15) return value.toExponential(2);
    const size = Math.abs(value);
    const parts = size * 2 ** digits;
    const isTie = Number.isInteger(2 * parts) && !Number.isInteger(parts);
    let text = size.toFixed(digits);
    if (isTie && Number(text.at(-1)) % 2) text = (size - 0.4 / 10 ** digits).toFixed(digits);
    const [whole, fraction] = text.split('.');
    const sign = value < 0 && Number(text) !== 0 ? '-' : '';
    const parted = sign + whole.replace(/\B(?=(\d{3})+$)/g, ',');
    return fraction ? `${parted}.${fraction}` : parted;
  }

  // How many digits after the point show three digits of the largest value.
  function digitsFor(largest) {
    if (!(largest > 0)) return 0;
    return Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(largest))));
  }

  const plain = (value) => fixed(value, Number.isInteger(value) ? 0 : digitsFor(Math.abs(value)));

  // Three digits at least, in the largest unit of which there is one after rounding.
  function scaled(value, units) {
    if (!isKnown(value)) return kUnknown;
    const size = Math.abs(value);
    const [scale, unit] = units.find(([least]) => size >= 0.9995 * least) ?? units.at(-1);
    const amount = size / scale;
    const digits = amount >= 99.95 || (scale === 1 && Number.isInteger(value)) ? 0 :
        amount >= 9.995 ? 1 : 2;
    // Whole numbers are rounded away from 0.
    return `${fixed(Math.sign(value) * (digits ? amount : Math.round(amount)), digits)} ${unit}`;
  }

  const nanoseconds = (value) => scaled(value, kDurations);

  // "0-3, 8": runs of numbers, each once.
  function ranges(numbers) {
    const runs = [];
    for (const value of [...new Set(numbers)].sort((a, b) => a - b)) {
      const last = runs.at(-1);
      if (last && value === last[1] + 1) last[1] = value; else runs.push([value, value]);
    }
    return runs.map(([low, high]) => low === high ? `${low}` : `${low}-${high}`).join(', ');
  }

  report.format = {
    isKnown, fixed, digitsFor, plain, kUnknown, nanoseconds, ranges,
    microseconds: (value) => isKnown(value) ? nanoseconds(value * 1e3) : kUnknown,
    milliseconds: (value) => isKnown(value) ? nanoseconds(value * 1e6) : kUnknown,
    bytes: (value) => scaled(value, kSizes),
    rate: (gb_per_s) => isKnown(gb_per_s) ? `${plain(gb_per_s)} GB/s` : kUnknown,
    percent: (share) => isKnown(share) ?
        `${fixed(100 * share, share > 0 && share < 0.095 ? 1 : 0)} %` : kUnknown,
    count: (value, one, many = one + 's') =>
        isKnown(value) ? `${fixed(value, 0)} ${value === 1 ? one : many}` : `${many}: ${kUnknown}`,
  };
})();

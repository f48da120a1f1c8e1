// SPDX-License-Identifier: Apache-2.0
// Numbers as people read them: few digits and a unit. What is absent reads "not known".
'use strict';
const report = {};

(() => {
  const kUnknown = 'not known';
  const kFormats = [0, 1, 2, 3, 4, 5, 6].map((digits) => new Intl.NumberFormat(
      'en-US', {minimumFractionDigits: digits, maximumFractionDigits: digits}));
  const kDurations = [[1e9, 's'], [1e6, 'ms'], [1e3, 'µs'], [1, 'ns']];
  const kSizes = [[2 ** 40, 'TiB'], [2 ** 30, 'GiB'], [2 ** 20, 'MiB'], [2 ** 10, 'KiB'], [1, 'B']];

  const isKnown = (value) => typeof value === 'number' && Number.isFinite(value);

  // With so many digits after the point, thousands parted by commas.
  function fixed(value, digits) {
    if (!isKnown(value)) return kUnknown;
    if (Math.abs(value) >= 1e15) return value.toExponential(2);
    const text = kFormats[Math.max(0, Math.min(6, digits))].format(value);
    return /^-[0.]+$/.test(text) ? text.slice(1) : text;
  }

  // How many digits after the point show three digits of the largest value.
  function digitsFor(largest) {
    if (!(largest > 0)) return 0;
    return Math.max(0, Math.min(6, 2 - Math.floor(Math.log10(largest))));
  }

  const plain = (value) => fixed(value, Number.isInteger(value) ? 0 : digitsFor(Math.abs(value)));

  function scaled(value, units) {
    if (!isKnown(value)) return kUnknown;
    const [scale, unit] = units.find(([size]) => Math.abs(value) >= size) || units[units.length - 1];
    const amount = value / scale;
    return `${scale === 1 && Number.isInteger(amount) ? fixed(amount, 0) :
        fixed(amount, digitsFor(Math.abs(amount)))} ${unit}`;
  }

  const nanoseconds = (value) => value === 0 ? '0 ms' : scaled(value, kDurations);

  report.format = {
    isKnown, fixed, digitsFor, plain, kUnknown, nanoseconds,
    microseconds: (value) => isKnown(value) ? nanoseconds(value * 1e3) : kUnknown,
    milliseconds: (value) => isKnown(value) ? nanoseconds(value * 1e6) : kUnknown,
    bytes: (value) => scaled(value, kSizes),
    rate: (gb_per_s) => isKnown(gb_per_s) ? `${plain(gb_per_s)} GB/s` : kUnknown,
    percent: (share) => isKnown(share) ?
        `${fixed(share * 100, Math.abs(share) < 0.01 && share !== 0 ? 1 : 0)} %` : kUnknown,
    count: (value, one, many = one + 's') =>
        isKnown(value) ? `${fixed(value, 0)} ${value === 1 ? one : many}` : `${many}: ${kUnknown}`,
  };
})();
